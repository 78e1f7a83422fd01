"""`jumar doctor`."""

import json
import os
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from jumar.cli import several_ranks
from jumar.cli.options import DeviceOption, JsonFlag
from jumar.ground.machine_advice import machine_advice
from jumar.ground.tables import aligned_lines
from jumar.ground.text import print_plain, size_text
from jumar.launching.hccl import hccl_advice
from jumar.launching.matrix import Stack

if TYPE_CHECKING:
    from jumar.environment import Environment


def doctor(
    *,
    json_: JsonFlag = False,
    ranks: bool = False,
    device: Annotated[
        DeviceOption, Parameter(help="The device that the ranks compute on.")
    ] = "auto",
) -> int:
    """Show the hardware and software of this machine, and what is missing for training.

    The exit code is 1 if a problem would prevent a run.

    Parameters
    ----------
    ranks
        Under torchrun: time each rank and each link between ranks, and name the slow ones.
    """
    if ranks:
        from jumar.runs.rank_speed import check_ranks

        return check_ranks(device, as_json=json_)
    if not several_ranks.alone_or_first("doctor"):
        return 0
    return inspect(Path("/"), os.environ, as_json=json_)


def inspect(root: Path, variables: Mapping[str, str], *, as_json: bool = False) -> int:
    """Print a machine's hardware, software and problems.

    Args:
        root: Root of the machine's files.
        variables: The machine's environment variables.
        as_json: Whether to print JSON.

    Returns:
        The exit code.
    """
    from jumar.environment import Finding, check, inspect_environment, worst_first

    environment = inspect_environment(root)
    stack = stack_of(environment)
    advice = [*filter(None, [stack.first_mismatch()]), *hccl_advice(variables, root)]
    limits = machine_advice(root, variables, accelerators=len(environment.accelerators))
    findings = worst_first(
        [
            *(Finding(item.level, item.what, item.todo) for item in advice),
            *(Finding(item.level, item.what, item.todo, item.source) for item in limits),
            *check(environment),
        ]
    )
    if as_json:
        print(
            json.dumps(
                {**asdict(environment), "findings": [asdict(finding) for finding in findings]},
                indent=2,
            )
        )
    else:
        for line in environment_lines(environment):
            print_plain(line)
        if stack.line:
            print_plain(f"ascend, from driver to framework: {stack.line}")
        for finding in findings:
            source = f" [{finding.source}]" if finding.source else ""
            print_plain(f"{finding.level}: {finding.what}{source}\n  {finding.todo}")
    return int(any(finding.level == "error" for finding in findings))


def stack_of(environment: "Environment") -> Stack:
    """Return the versions that must match on a machine with NPUs."""
    from jumar.devices.npu_package import NPU_PACKAGE

    versions = environment.versions
    return Stack(
        driver=versions["npu_driver"],
        firmware=versions["npu_firmware"],
        firmware_range=environment.ascend.firmware_range,
        cann=versions["cann"],
        adapter=versions[NPU_PACKAGE],
        adapter_name=NPU_PACKAGE,
        torch=versions["torch"],
    )


def environment_lines(environment: "Environment") -> list[str]:
    """Return the lines that `jumar doctor` prints about an environment, before the findings."""
    processor = environment.processor
    no_accelerators = "none" if environment.versions["torch"] else "unknown without torch"
    bf16 = {True: "accelerated", False: "not accelerated", None: "unknown"}
    threads = (processor.intra_op_threads, processor.inter_op_threads)
    accelerators = [
        (f"{device.kind}:{device.index}", f"{device.name}, {_size_text(device.memory_bytes)}")
        for device in environment.accelerators
    ]
    rows = [
        ("system", environment.system),
        *((name, version or "-") for name, version in environment.versions.items()),
        (
            "processor",
            f"{processor.name or 'unknown'}, {processor.usable_cores} of {processor.cores} cores, "
            f"bf16 {bf16[processor.accelerates_bf16]}",
        ),
        ("threads", "unknown" if None in threads else "intra-op {}, inter-op {}".format(*threads)),
        (
            "memory",
            f"{_size_text(processor.memory_free_bytes)} free of "
            f"{_size_text(processor.memory_total_bytes)}",
        ),
        *(accelerators or [("accelerators", no_accelerators)]),
        *(
            (
                f"disk, {storage.purpose}",
                f"{_size_text(storage.free_bytes)} free at {storage.place}",
            )
            for storage in environment.storage
        ),
    ]
    return aligned_lines(rows)


def _size_text(size: int | None) -> str:
    return "unknown" if size is None else size_text(size)
