"""`jumar doctor`."""

import json
import os
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from jumar.cli import several_ranks
from jumar.cli.options import DeviceOption, JsonFlag
from jumar.ground.text import print_plain, size_text

if TYPE_CHECKING:
    from jumar.environment import Environment
    from jumar.launching.matrix import Stack


def doctor(*, json_: JsonFlag = False, ranks: bool = False, device: DeviceOption = "auto") -> int:
    """Show what this machine has for training, what is missing and how to get it.

    The exit code is 1 if something would stop a run.

    Parameters
    ----------
    json_
        Print JSON.
    ranks
        Under torchrun: time each rank and each link between ranks, and name the slow ones.
    device
        The device that the ranks compute on.
    """
    if ranks:
        from jumar.runs.rank_speed import check_ranks

        return check_ranks(device, as_json=json_)
    if not several_ranks.alone_or_first("doctor"):
        return 0
    return inspect(Path("/"), os.environ, as_json=json_)


def inspect(root: Path, variables: Mapping[str, str], *, as_json: bool = False) -> int:
    """Print what a machine has and what is wrong with it.

    Args:
        root: Root of its files.
        variables: Its environment variables.
        as_json: Whether to print JSON.

    Returns:
        The exit code.
    """
    from jumar.environment import Finding, check, inspect_environment, worst_first
    from jumar.ground.machine_advice import machine_advice
    from jumar.launching.hccl import hccl_advice

    environment = inspect_environment(root)
    stack = stack_of(environment)
    advice = [*filter(None, [stack.first_mismatch()]), *hccl_advice(variables, root)]
    stack_findings = [Finding(each.level, each.what, each.todo) for each in advice]
    limits = machine_advice(root, variables, accelerators=len(environment.accelerators))
    limit_findings = [Finding(each.level, each.what, each.todo, each.source) for each in limits]
    findings = worst_first([*stack_findings, *limit_findings, *check(environment)])
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
            print_plain(f"ascend, from the metal up: {stack.line}")
        for finding in findings:
            source = f" [{finding.source}]" if finding.source else ""
            print_plain(f"{finding.level}: {finding.what}{source}\n  {finding.todo}")
    return int(any(finding.level == "error" for finding in findings))


def stack_of(environment: "Environment") -> "Stack":
    """The versions that must match on a machine with NPUs."""
    from jumar.devices.npu import NPU_PACKAGE
    from jumar.launching.matrix import Stack

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
    """The lines that `jumar doctor` prints about an environment, before the findings."""
    processor = environment.processor
    rows = [("system", environment.system)]
    rows += [(name, version or "-") for name, version in environment.versions.items()]
    rows.append(
        (
            "processor",
            f"{processor.name or 'unknown'}, {processor.usable_cores} of {processor.cores} cores, "
            f"bf16 {'accelerated' if processor.accelerates_bf16 else 'not accelerated'}",
        )
    )
    rows.append(
        (
            "threads",
            f"intra-op {processor.intra_op_threads}, inter-op {processor.inter_op_threads}",
        )
    )
    rows.append(
        (
            "memory",
            f"{_gib(processor.memory_free_bytes)} free of {_gib(processor.memory_total_bytes)}",
        )
    )
    for device in environment.accelerators:
        rows.append(
            (f"{device.kind}:{device.index}", f"{device.name}, {_gib(device.memory_bytes)}")
        )
    if not environment.accelerators:
        rows.append(("accelerators", "none"))
    rows += [
        (f"disk, {storage.purpose}", f"{_gib(storage.free_bytes)} free at {storage.place}")
        for storage in environment.storage
    ]
    width = max(len(name) for name, _ in rows)
    return [f"{name:<{width}}  {text}" for name, text in rows]


def _gib(size: int | None) -> str:
    return "unknown" if size is None else size_text(size)
