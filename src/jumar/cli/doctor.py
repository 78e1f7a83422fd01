"""`jumar doctor`."""

import json
from dataclasses import asdict
from typing import TYPE_CHECKING

from jumar.cli.options import JsonFlag
from jumar.ground.text import print_plain, size_text

if TYPE_CHECKING:
    from jumar.environment import Environment


def doctor(*, json_: JsonFlag = False) -> int:
    """Show what this machine has for training, what is missing and how to get it.

    The exit code is 1 if something would stop a run.

    Parameters
    ----------
    json_
        Print JSON.
    """
    from jumar.environment import check, inspect_environment

    environment = inspect_environment()
    findings = check(environment)
    if json_:
        print(
            json.dumps(
                {**asdict(environment), "findings": [asdict(finding) for finding in findings]},
                indent=2,
            )
        )
    else:
        for line in environment_lines(environment):
            print_plain(line)
        for finding in findings:
            print_plain(f"{finding.level}: {finding.what}\n  {finding.todo}")
    return int(any(finding.level == "error" for finding in findings))


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
        (f"disk, {place.purpose}", f"{_gib(place.free_bytes)} free at {place.place}")
        for place in environment.storage
    ]
    width = max(len(name) for name, _ in rows)
    return [f"{name:<{width}}  {text}" for name, text in rows]


def _gib(size: int | None) -> str:
    return "unknown" if size is None else size_text(size)
