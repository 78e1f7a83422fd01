"""Keeps one capture per worker, all from the same recording; older ones are not extra ranks."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import PurePath
from typing import Final

from jumar.profiling.profile import Missing
from jumar.profiling.reading.file_content import FileContent

_WORKER: Final = re.compile(r"^(.+?)[._]\d{10,}(?:\.pt\.trace\.json(?:\.gz)?|_ascend_(?:pt|ms))$")
"""Names written by the trace handlers of torch and torch_npu: worker, then recording time."""


_MINDSPORE_DEVICE: Final = re.compile(r"_(\d{1,5})(?:_[a-z_]+)?\.[a-z]+$")

_EPOCH_NS: Final = 10**18
"""Times above this are nanoseconds since 1970; other clocks are not comparable across machines."""
_HOUR_NS: Final = 3_600 * 10**9
_MAX_BETWEEN_RANKS_NS: Final = _HOUR_NS
"""Captures that start further apart than this are not ranks of one job, whatever their clocks."""


def newest_of_each_worker(
    captures: Mapping[str, list[FileContent]],
) -> dict[str, list[FileContent]]:
    """The newest capture of each worker; the others are listed as missing.

    Each torch.profiler trace in a folder is a separate capture.
    """
    separated = _separated(captures)
    newest: dict[str, str] = {}
    for name, contents in separated.items():
        worker = _worker(name, contents)
        if worker not in newest or _first_start(contents) > _first_start(separated[newest[worker]]):
            newest[worker] = name
    result: dict[str, list[FileContent]] = {}
    for name, contents in separated.items():
        kept = newest[_worker(name, contents)]
        if name == kept:
            result.setdefault(kept, []).extend(contents)
        else:
            what = f"not read: {separated[kept][0].file} is a newer capture of the same worker"
            result.setdefault(kept, []).append(_not_read(contents[0].file, what))
    return _of_last_recording(_without_copies(result))


def _without_copies(captures: Mapping[str, list[FileContent]]) -> dict[str, list[FileContent]]:
    """Each recording once: a capture with the same ops at the same times is a copy, not a rank.

    Captures with a recorded rank are kept.
    """
    result: dict[str, list[FileContent]] = {}
    originals: dict[tuple[int, int, int], str] = {}
    for name, contents in captures.items():
        has_rank = any(content.rank is not None for content in contents)
        fingerprint = None if has_rank else _fingerprint(contents)
        original = originals.setdefault(fingerprint, name) if fingerprint else name
        if original == name:
            result.setdefault(name, []).extend(contents)
        else:
            what = f"not read: a copy of {captures[original][0].file}, with the same ops"
            result[original].append(_not_read(contents[0].file, what))
    return result


_MIN_OPS: Final = 8
"""With at least this many ops, captures of two ranks do not agree to the nanosecond by chance."""


def _fingerprint(contents: Sequence[FileContent]) -> tuple[int, int, int] | None:
    """Number of ops, sum of start times and sum of durations (ns); None for a few ops."""
    tables = [
        content.ops.select("start_ns", "duration_ns").drop_nulls()
        for content in contents
        if content.ops is not None and {"start_ns", "duration_ns"} <= set(content.ops.columns)
    ]
    count = sum(table.height for table in tables)
    starts, durations = (
        # A sum that exceeds 64 bits wraps around, in a copy as in its original.
        sum(int(table[name].sum()) for table in tables)
        for name in ("start_ns", "duration_ns")
    )
    return (count, starts, durations) if count >= _MIN_OPS else None


def _not_read(file: str, what: str) -> FileContent:
    gap = Missing(file=file, what=f"{what}; to see this one, pass it alone")
    return FileContent(file=file, kind="", missing=(gap,))


def _of_last_recording(captures: Mapping[str, list[FileContent]]) -> dict[str, list[FileContent]]:
    """The captures of the last recording; those that ended hours before it are listed as missing.

    Ranks of one job are recorded at about the same time. Captures from before and after a change
    are not: read as ranks, one would seem to enter the other's collectives days late.
    """
    extents = {name: extent for name, contents in captures.items() if (extent := _extent(contents))}
    capture_at = {start: name for name, (start, _) in reversed(extents.items())}
    last_start, end = 0, 0
    for start, capture_end in sorted(extents.values()):
        if start - end > _MAX_BETWEEN_RANKS_NS:
            last_start = start
        end = max(end, capture_end)
    result: dict[str, list[FileContent]] = {}
    for name, contents in captures.items():
        if name not in extents or extents[name][0] >= last_start:
            result.setdefault(name, []).extend(contents)
            continue
        delay = _time_span(last_start - extents[name][1])
        what = f"not read: {captures[capture_at[last_start]][0].file} was recorded {delay} later"
        gap = _not_read(contents[0].file, f"{what}, so they are not ranks of one job")
        # Notes on broken files and on older captures are kept.
        broken = [content for content in contents if not content.kind]
        result.setdefault(capture_at[last_start], []).extend([gap, *broken])
    return result


def _time_span(nanoseconds: int) -> str:
    """A time of hours to years, in the largest unit of which there are at least two."""
    hours = nanoseconds / _HOUR_NS
    for hours_each, unit in ((24 * 365.25, "years"), (24, "days")):
        if hours >= 2 * hours_each:
            return f"{hours / hours_each:.1f} {unit}"
    return f"{hours:.1f} h"


def _separated(captures: Mapping[str, list[FileContent]]) -> dict[str, list[FileContent]]:
    """The captures, split into one for each torch.profiler trace, MindSpore device and rank."""
    result: dict[str, list[FileContent]] = {}
    for name, contents in captures.items():
        traces = [content for content in contents if content.kind == "kineto"]
        if len(traces) > 1:
            contents = [content for content in contents if content.kind != "kineto"]
            result.update({content.file: [content] for content in traces})
        devices = sorted(
            {
                device
                for content in contents
                if _has_rows_of_device(content) and (device := _device(content)) is not None
            }
        )
        if len(devices) > 1:
            for device in devices:
                device_contents = [content for content in contents if _device(content) == device]
                result[f"{name}, device {device}"] = [
                    replace(content, rank=device) for content in device_contents
                ]
            contents = [content for content in contents if _device(content) not in devices]
        ranks = sorted({content.rank for content in contents if content.rank is not None})
        if len(ranks) > 1 and len(devices) < 2:
            by_rank, contents = _by_rank(contents, ranks)
            result.update(
                {f"{name}, rank {rank}": rank_contents for rank, rank_contents in by_rank.items()}
            )
        if contents:
            result[name] = contents
    return result


def _has_rows_of_device(content: FileContent) -> bool:
    """Whether a file has ops, steps or collectives of a device."""
    return any(table is not None for table in (content.ops, content.steps, content.collectives))


def _by_rank(
    contents: Sequence[FileContent], ranks: Sequence[int]
) -> tuple[dict[int, list[FileContent]], list[FileContent]]:
    """The contents of each rank in a folder of several ranks, and the contents of unknown rank.

    A file contains its rank, or its name ends with it. If only `profiler_info` files do, the rank
    of the tables is unknown and reported as missing.
    """
    by_rank: dict[int, list[FileContent]] = {rank: [] for rank in ranks}
    unassigned: list[FileContent] = []
    for content in contents:
        match = _RANK_SUFFIX.search(PurePath(content.file).name)
        suffix_rank = int(match[1]) if match else None
        rank = content.rank if content.rank is not None else suffix_rank
        if rank in by_rank:
            by_rank[rank].append(replace(content, rank=rank))
        else:
            unassigned.append(content)
    info_only = [
        rank
        for rank, rank_contents in by_rank.items()
        if all(content.kind == _PROFILER_INFO for content in rank_contents)
    ]
    if info_only and unassigned:
        ranks_listed = ", ".join(map(str, info_only))
        what = f"its rank: the folder has profiler_info files of ranks {ranks_listed}"
        gap = Missing(file=unassigned[0].file, what=what, needed_for=("ranks",))
        unassigned[0] = replace(unassigned[0], missing=(*unassigned[0].missing, gap))
    return {
        rank: rank_contents for rank, rank_contents in by_rank.items() if rank not in info_only
    }, unassigned


_PROFILER_INFO: Final = "profiler_info"
_RANK_SUFFIX: Final = re.compile(r"_(\d{1,5})\.(?:csv|json|json\.gz|db)$")
"""File names that end with a rank: `ascend_pytorch_profiler_3.db`, `kernel_details_3.csv`."""


def _device(content: FileContent) -> int | None:
    """The device in the name of a MindSpore file; one folder has the files of all devices."""
    match = (
        _MINDSPORE_DEVICE.search(content.file) if content.kind.startswith("mindspore_") else None
    )
    return int(match[1]) if match else None


def _worker(name: str, contents: Sequence[FileContent]) -> str:
    """The recorder of a capture: its rank, else the worker in its name, else the capture itself."""
    rank = next((content.rank for content in contents if content.rank is not None), None)
    if rank is not None:
        return f"rank {rank}"
    match = _WORKER.match(PurePath(name).name)
    return f"worker {match[1]}" if match else f"capture {name}"


def _first_start(contents: Sequence[FileContent]) -> int:
    """The earliest start in a capture's tables; 0 if unknown."""
    return min((start for start, _ in _starts(contents)), default=0)


def _extent(contents: Sequence[FileContent]) -> tuple[int, int] | None:
    """Earliest and latest start in a capture; None if its clock does not count from 1970."""
    starts = _starts(contents)
    start = min((first for first, _ in starts), default=0)
    return (start, max(last for _, last in starts)) if start >= _EPOCH_NS else None


def _starts(contents: Sequence[FileContent]) -> list[tuple[int, int]]:
    """The first and the last start in each table that has start times."""
    return [
        (int(str(table["start_ns"].min())), int(str(table["start_ns"].max())))
        for content in contents
        for table in (content.ops, content.host, content.steps)
        if table is not None
        and "start_ns" in table.columns
        and table["start_ns"].null_count() < table.height
    ]
