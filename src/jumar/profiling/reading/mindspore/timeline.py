"""MindSpore's timeline of ops, of 2020 to 2022."""

from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, Final

import polars as pl

from jumar.profiling.reading.events import EventReader
from jumar.profiling.reading.files.opening import opened
from jumar.profiling.reading.mindspore.tables import PRODUCER, TICK_NS, facts_of
from jumar.profiling.reading.part import Part
from jumar.profiling.reading.traces.spilling import Kind, Table, Texts
from jumar.profiling.reading.unreadable import Unreadable, span_of

_AI_CPU: Final = 9000
"""The process of ops of the AI CPU; those of the AI Core have the number of the device."""
_SIDES: Final = tuple(
    (f"{side}_{what}s", (side, key))
    for side in ("input", "output")
    for what, key in (("shape", "shape"), ("type", "data_type"), ("format", "format"))
)
_OPS: Final[dict[str, Kind]] = {
    "device": "whole",
    "stream": "text",
    "name": "text",
    "type": "text",
    "core": "text",
    "start_ns": "whole",
    "duration_ns": "whole",
    **dict.fromkeys((name for name, _ in _SIDES), "text"),
}


def read_timeline(path: Path, shown: str, kind: str) -> Part:
    """`ascend_timeline_display_<device>.json`: each op with its start, shapes and types."""
    rows, unreadable = Table(_OPS, Texts()), Unreadable(shown)
    with closing(rows), opened(path) as file:
        reader = EventReader(file)
        for event in reader:
            row = _op(event, unreadable)
            if row is not None:
                rows.add(row)
        unreadable.end(reader.problem)
        ops = rows.decoded(rows.joined(rows.frames()))
    ops = ops.with_columns(pl.col("device").cast(pl.Int32, strict=False))
    ops = ops.with_columns(
        pl.when(pl.col("core") == "AI_CORE").then(pl.col(name)).alias(name) for name, _ in _SIDES
    )
    return Part(
        file=shown,
        kind=kind,
        producer=PRODUCER,
        device="npu" if ops.height else None,
        ops=ops if ops.height else None,
        missing=unreadable.missing(),
    )


def _op(event: Mapping[str, Any], unreadable: Unreadable) -> tuple[Any, ...] | None:
    """A row of the op table from a slice of the AI Core or of the AI CPU."""
    arguments = event.get("args")
    facts: Mapping[str, Any] = arguments if isinstance(arguments, dict) else {}
    of_cpu = event.get("pid") == _AI_CPU
    if event.get("ph") != "X":
        return None
    if not of_cpu and not isinstance(facts.get("fullname"), str):
        return None
    span = span_of(event, unreadable)
    if span is None:
        return None
    device = event.get("pid")
    kind = event.get("name") if of_cpu else facts.get("type")
    sides = facts_of(facts)
    return (
        device if not of_cpu and type(device) is int and 0 <= device < 1 << 20 else None,
        event.get("tid"),
        event.get("name") if of_cpu else facts["fullname"],
        kind,
        "AI_CPU" if of_cpu else "AI_CORE",
        *span,
        *(sides.get(key, "") for _, key in _SIDES),
    )


def read_clock(path: Path, shown: str, kind: str) -> Part:
    """`min_cycle_counter_<device>.txt`: the tick of the device's clock at a timeline's zero."""
    ticks = int(path.read_text(encoding="ascii").strip().partition(".")[0])
    zero = pl.DataFrame({"zero_ns": [ticks * TICK_NS]}, schema={"zero_ns": pl.Int64})
    return Part(file=shown, kind=kind, producer=PRODUCER, statistics={kind: zero})


def since_start(ops: pl.DataFrame, parts: Sequence[Part]) -> pl.DataFrame:
    """The ops on the device's clock, if they are those of a timeline.

    A timeline counts from its first op of the AI CPU, whose time by that clock is in the file
    of the AI CPU beside it, or from the tick that `min_cycle_counter_<device>.txt` holds; steps are
    told by that clock, too.
    """
    if not any(part.kind == "mindspore_timeline" and part.ops is ops for part in parts):
        return ops
    clocks = [part.statistics["aicpu"] for part in parts if part.kind == "mindspore_aicpu"]
    first = ops.filter(pl.col("core") == "AI_CPU")["start_ns"].min()
    began = clocks[0]["timestamp_ns"].min() if clocks else None
    if isinstance(first, int) and isinstance(began, int):
        return ops.with_columns(pl.col("start_ns") + (began - first))
    zeros = [part.statistics[part.kind] for part in parts if part.kind == "mindspore_clock"]
    return ops.with_columns(pl.col("start_ns") + int(zeros[0]["zero_ns"][0])) if zeros else ops
