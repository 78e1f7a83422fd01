"""Drops impossible rows: those that end before they start, and steps with negative times."""

from dataclasses import replace

import polars as pl

from jumar.ground.text import counted
from jumar.profiling.profile import Missing
from jumar.profiling.reading.file_content import FileContent


def without_negative(content: FileContent) -> FileContent:
    """The content without rows of negative duration, whose number is noted in `missing`."""
    ops, bad_ops = _without_negative_durations(content.ops, "duration_ns")
    host, bad_calls = _without_negative_durations(content.host, "duration_ns")
    collectives, bad_collectives = _without_negative_durations(content.collectives, "elapse_ns")
    steps, bad_steps = _without_negative_times(content.steps)
    dropped = {"op": bad_ops, "call": bad_calls, "collective": bad_collectives, "step": bad_steps}
    descriptions = [counted(count, noun) for noun, count in dropped.items() if count]
    if not descriptions:
        return content
    gap = Missing(file=content.file, what=f"{', '.join(descriptions)} with a negative duration")
    return replace(
        content,
        ops=ops,
        host=host,
        collectives=collectives,
        steps=steps,
        missing=(*content.missing, gap),
    )


def _without_negative_durations(
    table: pl.DataFrame | None, column: str
) -> tuple[pl.DataFrame | None, int]:
    """The table without rows of negative duration, and the number of those rows."""
    if table is None or column not in table.columns:
        return table, 0
    negative = (table[column] < 0).fill_null(False)
    return (table.filter(~negative), int(negative.sum())) if negative.any() else (table, 0)


def _without_negative_times(steps: pl.DataFrame | None) -> tuple[pl.DataFrame | None, int]:
    """The steps without impossible ones, and the number of dropped steps."""
    if steps is None:
        return None, 0
    times = [
        name
        for name in steps.columns
        if name.endswith("_ns") and name not in ("start_ns", "end_ns")
    ]
    is_negative = [pl.col(name) < 0 for name in times]
    if {"start_ns", "end_ns"} <= set(steps.columns):
        is_negative.append(pl.col("end_ns") < pl.col("start_ns"))
    if not is_negative or not steps.height:
        return steps, 0
    negative = steps.select(pl.any_horizontal(is_negative).fill_null(False).alias("negative"))[
        "negative"
    ]
    return (steps.filter(~negative), int(negative.sum())) if negative.any() else (steps, 0)
