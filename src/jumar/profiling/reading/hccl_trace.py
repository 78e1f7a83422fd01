"""Reads graph mode's `hccl_*.json`: collectives and the tasks they consist of.

One thread has the collectives (`Communication Kernel`), the others the tasks of their planes:
copies, with bytes and ranks, and `Notify_Wait`, in which a plane waits for another rank.
"""

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, Final

import polars as pl

from jumar.profiling.profile import COLLECTIVES_SCHEMA, COMMUNICATION, LINKS_SCHEMA
from jumar.profiling.reading.events import EventReader, arguments_of
from jumar.profiling.reading.file_content import FileContent
from jumar.profiling.reading.files.opening import opened
from jumar.profiling.reading.unreadable import Unreadable, span_of

_KERNEL_THREAD: Final = "Communication Kernel"
_WAIT: Final = "Notify_Wait"
_NO_RANK: Final = (1 << 32) - 1
_MAX_EVENTS: Final = 2_000_000
_TYPE_IN_NAME: Final = r"([A-Za-z][A-Za-z0-9]*?)(?:-op\d+)?(?:_\d+)*$"

Span = tuple[int, int]


def read_hccl_trace(path: Path, display_name: str, kind: str) -> FileContent:
    """Read the collectives, how their time is spent, and the traffic on each link."""
    del kind
    with opened(path) as file:
        reader = EventReader(file)
        events = list(islice(reader, _MAX_EVENTS))
    collective_lanes = {
        _lane(event)
        for event in events
        if event.get("name") == "thread_name" and arguments_of(event).get("name") == _KERNEL_THREAD
    }
    unreadable = Unreadable(display_name)
    slices = [(event, span) for event in events if (span := _span(event, unreadable)) is not None]
    kernels = [(event, span) for event, span in slices if _lane(event) in collective_lanes]
    tasks = [(event, span) for event, span in slices if _lane(event) not in collective_lanes]
    tasks.sort(key=lambda pair: pair[1])
    rows: list[dict[str, Any]] = []
    links: list[dict[str, Any]] = []
    starts = [span[0] for _, span in tasks]
    for event, span in sorted(kernels, key=lambda pair: pair[1]):
        name = str(event.get("name", ""))
        kernel_tasks = tasks[bisect_left(starts, span[0]) : bisect_left(starts, span[1])]
        rows.append({"name": name, **_spent_times(kernel_tasks, span)})
        links += [{"name": name, **link} for link in _links(kernel_tasks)]
    collectives = pl.DataFrame(rows, schema=dict(COLLECTIVES_SCHEMA))
    unreadable.note_end(
        reader.problem
        or ("" if len(events) < _MAX_EVENTS else f"only the first {_MAX_EVENTS:,} events were read")
    )
    return FileContent(
        file=display_name,
        # Treated like any trace: the ops of one iteration are spread over several files.
        kind="trace",
        producer="msprof",
        device="npu",
        ops=_ops(collectives),
        collectives=collectives,
        links=pl.DataFrame(links, schema=dict(LINKS_SCHEMA), strict=False),
        missing=unreadable.missing(),
    )


def _ops(collectives: pl.DataFrame) -> pl.DataFrame:
    return collectives.select(
        pl.lit(None, pl.Int32).alias("device"),
        pl.lit(None, pl.String).alias("stream"),
        pl.lit(None, pl.Int64).alias("task"),
        "name",
        pl.col("name").str.extract(_TYPE_IN_NAME).alias("type"),
        pl.lit(COMMUNICATION).alias("core"),
        "start_ns",
        pl.col("elapse_ns").alias("duration_ns"),
        pl.lit(None, pl.Int64).alias("wait_ns"),
        pl.lit(None, pl.Int64).alias("correlation"),
        pl.lit(None, pl.Int64).alias("launch_ns"),
    )


def _spent_times(tasks: Sequence[tuple[Mapping[str, Any], Span]], span: Span) -> dict[str, int]:
    """Split a collective's time into transfers, waits without transfers, and idle time."""
    transfers = [span for event, span in tasks if _bytes(event)]
    waits = [span for event, span in tasks if event.get("name") == _WAIT]
    transit = _covered_ns(transfers, span)
    busy = _covered_ns([*transfers, *waits], span)
    elapse = span[1] - span[0]
    return {
        "start_ns": span[0],
        "elapse_ns": elapse,
        "transit_ns": transit,
        "wait_ns": busy - transit,
        "synchronization_ns": 0,
        "idle_ns": elapse - busy,
    }


def _covered_ns(spans: Sequence[Span], within: Span) -> int:
    """The total time within a range that the spans cover."""
    total, until = 0, within[0]
    for start, end in sorted(spans):
        start, end = max(start, until), min(end, within[1])
        if end > start:
            total += end - start
            until = end
    return total


def _links(tasks: Sequence[tuple[Mapping[str, Any], Span]]) -> list[dict[str, Any]]:
    """The traffic on each link: bytes, transfer time and bandwidth."""
    totals: dict[tuple[int, int, str], list[int]] = {}
    for event, (start, end) in tasks:
        arguments = arguments_of(event)
        source, target = _rank(arguments.get("src rank")), _rank(arguments.get("dst rank"))
        size = _bytes(event)
        if size and source is not None and target is not None:
            key = source, target, _transport(arguments)
            total = totals.setdefault(key, [0, 0])
            total[0] += size
            total[1] += end - start
    return [
        {
            "transport": transport,
            "source": source,
            "destination": target,
            "size_bytes": size,
            "transit_ns": duration,
            "bandwidth_gb_s": size / duration if duration else None,
        }
        for (source, target, transport), (size, duration) in totals.items()
    ]


def _transport(arguments: Mapping[str, Any]) -> str:
    """The link type as torch_npu names it, if known; else the unit that copies."""
    link = str(arguments.get("link type"))
    return link if link in ("HCCS", "PCIE", "RDMA", "SIO") else str(arguments.get("transport type"))


def _bytes(event: Mapping[str, Any]) -> int:
    size = arguments_of(event).get("size(Byte)")
    return size if type(size) is int and 0 < size < 1 << 50 else 0


def _rank(value: object) -> int | None:
    return value if type(value) is int and 0 <= value < min(_NO_RANK, 1 << 20) else None


def _lane(event: Mapping[str, Any]) -> tuple[str, str]:
    """Process and thread as text; a damaged file may have unhashable objects there."""
    return str(event.get("pid")), str(event.get("tid"))


def _span(event: Mapping[str, Any], unreadable: Unreadable) -> Span | None:
    """Start and end of a slice; None for other events."""
    if event.get("ph") != "X":
        return None
    span = span_of(event, unreadable)
    return None if span is None else (span[0], span[0] + span[1])
