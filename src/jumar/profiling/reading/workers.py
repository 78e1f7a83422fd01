"""One capture per worker, all of one time: a capture from another time is not another rank."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import PurePath
from typing import Final

import polars as pl

from jumar.profiling.profile import Missing
from jumar.profiling.reading.part import Part

_WORKER: Final = re.compile(r"^(.+?)[._]\d{10,}(?:\.pt\.trace\.json(?:\.gz)?|_ascend_(?:pt|ms))$")
"""Names of torch's and torch_npu's handlers: the worker, then when it recorded."""


_MINDSPORE: Final = re.compile(r"_(\d{1,5})(?:_[a-z_]+)?\.[a-z]+$")

_SINCE_1970: Final = 10**18
"""Nanoseconds that only a clock since 1970 shows; others begin anew on each machine."""
_APART: Final = 3_600 * 10**9
"""Nanoseconds by which the ranks of one job do not differ, even if their clocks do."""


def one_of_each_worker(captures: Mapping[str, list[Part]]) -> dict[str, list[Part]]:
    """The newest capture of each worker; the content of the others is reported as missing.

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
            result.setdefault(kept, []).append(_unread(file, what))
    return _of_one_time(_without_copies(result))


def _without_copies(captures: Mapping[str, list[Part]]) -> dict[str, list[Part]]:
    """Each recording once: one with the same ops at the same times is a copy, not another rank.

    Where a capture names its rank, that counts.
    """
    result: dict[str, list[Part]] = {}
    originals: dict[tuple[int, int, int], str] = {}
    for name, parts in captures.items():
        sums = _sums(parts) if all(part.rank is None for part in parts) else None
        original = originals.setdefault(sums, name) if sums else name
        if original == name:
            result.setdefault(name, []).extend(parts)
        else:
            what = f"not read: a copy of {captures[original][0].file}, with the same ops"
            result[original].append(_unread(parts[0].file, what))
    return result


_TELLING: Final = 8
"""So many ops of two ranks do not agree to the nanosecond by chance."""


def _sums(parts: Sequence[Part]) -> tuple[int, int, int] | None:
    """Number of a capture's ops, and the sums of their starts and durations in nanoseconds."""
    tables = [
        part.ops.select("start_ns", "duration_ns").drop_nulls()
        for part in parts
        if part.ops is not None and {"start_ns", "duration_ns"} <= set(part.ops.columns)
    ]
    count = sum(table.height for table in tables)
    starts, durations = (
        # The sum of a million times since 1970 does not fit into 64 bits.
        sum(int(table[name].cast(pl.Int128).sum()) for table in tables)
        for name in ("start_ns", "duration_ns")
    )
    return (count, starts, durations) if count >= _TELLING else None


def _unread(file: str, what: str) -> Part:
    gap = Missing(file=file, what=f"{what}; name this one alone to see it")
    return Part(file=file, kind="", missing=(gap,))


def _of_one_time(captures: Mapping[str, list[Part]]) -> dict[str, list[Part]]:
    """The captures of the last recording; those that ended hours before it are named.

    Ranks of one job are recorded at one time, if not in the same second. Captures before and after
    a change are not, and a rank of one would seem days late to the collectives of the other.
    """
    extents = {name: extent for name, parts in captures.items() if (extent := _extent(parts))}
    begins = {begin: name for name, (begin, _) in reversed(extents.items())}
    last, end = 0, 0
    for begin, until in sorted(extents.values()):
        if begin - end > _APART:
            last = begin
        end = max(end, until)
    result: dict[str, list[Part]] = {}
    for name, parts in captures.items():
        if name not in extents or extents[name][0] >= last:
            result.setdefault(name, []).extend(parts)
            continue
        later = f"{(last - extents[name][1]) / _APART:.1f} h"
        what = f"not read: {captures[begins[last]][0].file} was recorded {later} later"
        gap = _unread(parts[0].file, f"{what}, so they are not ranks of one job")
        # What is known of broken and older files remains.
        known = [part for part in parts if not part.kind]
        result.setdefault(begins[last], []).extend([gap, *known])
    return result


def _apart(captures: Mapping[str, list[Part]]) -> dict[str, list[Part]]:
    """Each torch.profiler trace, MindSpore device and rank in a folder as a capture."""
    result: dict[str, list[Part]] = {}
    for name, parts in captures.items():
        traces = [part for part in parts if part.kind == "kineto"]
        if len(traces) > 1:
            parts = [part for part in parts if part.kind != "kineto"]
            result.update({part.file: [part] for part in traces})
        devices = {_device(part) for part in parts if _has_times(part)} - {None}
        if len(devices) > 1:
            for device in sorted(device for device in devices if device is not None):
                own = [part for part in parts if _device(part) == device]
                result[f"{name}, device {device}"] = [replace(part, rank=device) for part in own]
            parts = [part for part in parts if _device(part) not in devices]
        ranks = sorted({part.rank for part in parts if part.rank is not None})
        if len(ranks) > 1 and len(devices) < 2:
            by_rank, parts = _by_rank(parts, ranks)
            result.update({f"{name}, rank {rank}": own for rank, own in by_rank.items()})
        if parts:
            result[name] = parts
    return result


def _has_times(part: Part) -> bool:
    """Whether a file says what a device did and when, or in which step."""
    return any(table is not None for table in (part.ops, part.steps, part.collectives))


def _by_rank(
    parts: Sequence[Part], ranks: Sequence[int]
) -> tuple[dict[int, list[Part]], list[Part]]:
    """The parts of each rank whose files share a folder, and those of unknown owner.

    A file names its rank, or has it at the end of its name. If only `profiler_info` does, the
    owner of the tables is unknown and reported as such.
    """
    by_rank: dict[int, list[Part]] = {rank: [] for rank in ranks}
    rest: list[Part] = []
    for part in parts:
        match = _NUMBERED.search(PurePath(part.file).name)
        named = int(match[1]) if match else None
        rank = part.rank if part.rank is not None else named
        if rank in by_rank:
            by_rank[rank].append(replace(part, rank=rank))
        else:
            rest.append(part)
    bare = [rank for rank, own in by_rank.items() if all(each.kind == _INFO for each in own)]
    if bare and rest:
        told = ", ".join(map(str, bare))
        what = f"whose it is: information of the ranks {told} lies in one folder with it"
        gap = Missing(file=rest[0].file, what=what, needed_for=("ranks",))
        rest[0] = replace(rest[0], missing=(*rest[0].missing, gap))
    return {rank: own for rank, own in by_rank.items() if rank not in bare}, rest


_INFO: Final = "profiler_info"
_NUMBERED: Final = re.compile(r"_(\d{1,5})\.(?:csv|json|json\.gz|db)$")
"""What ends in the number of a rank: `ascend_pytorch_profiler_3.db`, `kernel_details_3.csv`."""


def _device(part: Part) -> int | None:
    """The device in a MindSpore file name; one folder has the files of all devices."""
    match = _MINDSPORE.search(part.file) if part.kind.startswith("mindspore_") else None
    return int(match[1]) if match else None


def _worker(name: str, parts: Sequence[Part]) -> str:
    """The recorder of a capture: the rank it names, else the worker in its name, else itself."""
    rank = next((part.rank for part in parts if part.rank is not None), None)
    if rank is not None:
        return f"rank {rank}"
    match = _WORKER.match(PurePath(name).name)
    return f"worker {match[1]}" if match else f"capture {name}"


def _begins(parts: Sequence[Part]) -> int:
    """When a capture starts, by its tables."""
    return min((start for start, _ in _starts(parts)), default=0)


def _extent(parts: Sequence[Part]) -> tuple[int, int] | None:
    """Between which moments a capture's rows start; None if no clock since 1970 tells."""
    starts = _starts(parts)
    begin = min((first for first, _ in starts), default=0)
    return (begin, max(last for _, last in starts)) if begin >= _SINCE_1970 else None


def _starts(parts: Sequence[Part]) -> list[tuple[int, int]]:
    """The first and the last start of each table that has some."""
    return [
        (int(str(table["start_ns"].min())), int(str(table["start_ns"].max())))
        for part in parts
        for table in (part.ops, part.host, part.steps)
        if table is not None
        and "start_ns" in table.columns
        and table["start_ns"].null_count() < table.height
    ]
