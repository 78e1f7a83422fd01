"""One capture of each worker: what it recorded at another time is not another rank."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import PurePath
from typing import Final

from jumar.profiling.profile import Missing
from jumar.profiling.reading.part import Part

_WORKER: Final = re.compile(r"^(.+?)[._]\d{10,}(?:\.pt\.trace\.json(?:\.gz)?|_ascend_(?:pt|ms))$")
"""Names of torch's and torch_npu's handlers: the worker, then when it recorded."""


_MINDSPORE: Final = re.compile(r"_(\d{1,5})(?:_[a-z_]+)?\.[a-z]+$")


def one_of_each_worker(captures: Mapping[str, list[Part]]) -> dict[str, list[Part]]:
    """The newest capture of each worker; what the others hold is named as missing.

    Each trace of torch.profiler in a folder is a capture of its own.
    """
    apart = _apart(captures)
    newest: dict[str, str] = {}
    for name, parts in apart.items():
        worker = _worker(name, parts)
        if worker not in newest or _begins(parts) > _begins(apart[newest[worker]]):
            newest[worker] = name
    result: dict[str, list[Part]] = {}
    for name, parts in apart.items():
        kept = newest[_worker(name, parts)]
        if name == kept:
            result.setdefault(kept, []).extend(parts)
        else:
            file = parts[0].file
            what = f"not read: {apart[kept][0].file} is a newer capture of the same worker"
            gap = Missing(file=file, what=f"{what}; name this one alone to see it")
            result.setdefault(kept, []).append(Part(file=file, kind="", missing=(gap,)))
    return result


def _apart(captures: Mapping[str, list[Part]]) -> dict[str, list[Part]]:
    """Each trace of torch.profiler in a folder as a capture, and each device of MindSpore."""
    result: dict[str, list[Part]] = {}
    for name, parts in captures.items():
        traces = [part for part in parts if part.kind == "kineto"]
        if len(traces) > 1:
            parts = [part for part in parts if part.kind != "kineto"]
            result.update({part.file: [part] for part in traces})
        devices = {_device(part) for part in parts if part.ops is not None} - {None}
        if len(devices) > 1:
            for device in sorted(device for device in devices if device is not None):
                own = [part for part in parts if _device(part) == device]
                result[f"{name}, device {device}"] = [replace(part, rank=device) for part in own]
            parts = [part for part in parts if _device(part) not in devices]
        if parts:
            result[name] = parts
    return result


def _device(part: Part) -> int | None:
    """The device in the name of a file of MindSpore, which has those of all devices in a folder."""
    match = _MINDSPORE.search(part.file) if part.kind.startswith("mindspore_") else None
    return int(match[1]) if match else None


def _worker(name: str, parts: Sequence[Part]) -> str:
    """Who recorded a capture: the rank that it names, else the worker in its name, else itself."""
    rank = next((part.rank for part in parts if part.rank is not None), None)
    if rank is not None:
        return f"rank {rank}"
    match = _WORKER.match(PurePath(name).name)
    return f"worker {match[1]}" if match else f"capture {name}"


def _begins(parts: Sequence[Part]) -> int:
    """When a capture begins, by its tables."""
    starts = [
        int(str(table["start_ns"].min()))
        for part in parts
        for table in (part.ops, part.host, part.steps)
        if table is not None
        and "start_ns" in table.columns
        and table["start_ns"].null_count() < table.height
    ]
    return min(starts, default=0)
