"""The timeline of ops in the files of MindSpore from 2020 to 2022."""

from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, Final

import polars as pl

from jumar.profiling.reading.events import EventReader, arguments_of
from jumar.profiling.reading.file_content import FileContent
from jumar.profiling.reading.files.opening import opened
from jumar.profiling.reading.mindspore.tables import (
    PRODUCER,
    TENSOR_COLUMNS,
    TICK_NS,
    tensor_details,
)
from jumar.profiling.reading.traces.spilling import ColumnType, SpillingTable, TextNumbers
from jumar.profiling.reading.unreadable import Unreadable, span_of

_AI_CPU_PROCESS: Final = 9000
"""The process id of AI CPU ops; that of AI Core ops is the device number."""
_OP_COLUMNS: Final[dict[str, ColumnType]] = {
    "device": "integer",
    "stream": "text",
    "name": "text",
    "type": "text",
    "core": "text",
    "start_ns": "integer",
    "duration_ns": "integer",
    **dict.fromkeys((name for name, _ in TENSOR_COLUMNS), "text"),
}


def read_timeline(path: Path, display_name: str, kind: str) -> FileContent:
    """`ascend_timeline_display_<device>.json`: each op with its start, shapes and dtypes."""
    rows, unreadable = SpillingTable(_OP_COLUMNS, TextNumbers()), Unreadable(display_name)
    with closing(rows), opened(path) as file:
        reader = EventReader(file)
        for event in reader:
            row = _op(event, unreadable)
            if row is not None:
                rows.add(row)
        unreadable.note_end(reader.problem)
        ops = rows.decoded(rows.joined(rows.frames()))
    ops = ops.with_columns(pl.col("device").cast(pl.Int32, strict=False))
    ops = ops.with_columns(
        pl.when(pl.col("core") == "AI_CORE").then(pl.col(name)).alias(name)
        for name, _ in TENSOR_COLUMNS
    )
    return FileContent(
        file=display_name,
        kind=kind,
        producer=PRODUCER,
        device="npu" if ops.height else None,
        ops=ops if ops.height else None,
        missing=unreadable.missing(),
    )


def _op(event: Mapping[str, Any], unreadable: Unreadable) -> tuple[Any, ...] | None:
    """The row of the op table for a slice; None if it is not an AI Core or AI CPU op."""
    details = arguments_of(event)
    on_ai_cpu = event.get("pid") == _AI_CPU_PROCESS
    if event.get("ph") != "X":
        return None
    if not on_ai_cpu and not isinstance(details.get("fullname"), str):
        return None
    span = span_of(event, unreadable)
    if span is None:
        return None
    device = event.get("pid")
    kind = event.get("name") if on_ai_cpu else details.get("type")
    tensors = tensor_details(details)
    return (
        device if not on_ai_cpu and type(device) is int and 0 <= device < 1 << 20 else None,
        event.get("tid"),
        event.get("name") if on_ai_cpu else details["fullname"],
        kind,
        "AI_CPU" if on_ai_cpu else "AI_CORE",
        *span,
        *(tensors.get(key, "") for _, key in TENSOR_COLUMNS),
    )


def read_clock(path: Path, display_name: str, kind: str) -> FileContent:
    """`min_cycle_counter_<device>.txt`: the device's clock, in ticks, at time 0 of a timeline."""
    ticks = int(path.read_text(encoding="ascii").strip().partition(".")[0])
    zero = pl.DataFrame({"zero_ns": [ticks * TICK_NS]}, schema={"zero_ns": pl.Int64})
    return FileContent(file=display_name, kind=kind, producer=PRODUCER, statistics={kind: zero})


def on_device_clock(ops: pl.DataFrame, contents: Sequence[FileContent]) -> pl.DataFrame:
    """Shift the ops of a timeline to the device's clock, which the step marks use.

    Ops of other files are returned unchanged.

    A timeline counts from its first AI CPU op, whose time on the device's clock is in the AI CPU
    file next to it, or from the tick in `min_cycle_counter_<device>.txt`.
    """
    if not any(content.kind == "mindspore_timeline" and content.ops is ops for content in contents):
        return ops
    ai_cpu_tables = [
        content.statistics["aicpu"] for content in contents if content.kind == "mindspore_aicpu"
    ]
    first_in_timeline = ops.filter(pl.col("core") == "AI_CPU")["start_ns"].min()
    first_on_device = ai_cpu_tables[0]["timestamp_ns"].min() if ai_cpu_tables else None
    if isinstance(first_in_timeline, int) and isinstance(first_on_device, int):
        return ops.with_columns(pl.col("start_ns") + (first_on_device - first_in_timeline))
    zeros = [
        content.statistics[content.kind]
        for content in contents
        if content.kind == "mindspore_clock"
    ]
    return ops.with_columns(pl.col("start_ns") + int(zeros[0]["zero_ns"][0])) if zeros else ops
