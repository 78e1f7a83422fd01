"""Impossible times: rows that end before they start, and steps with negative parts."""

from dataclasses import replace

import polars as pl

from jumar.ground.text import counted
from jumar.profiling.profile import Missing
from jumar.profiling.reading.part import Part


def without_negative(part: Part) -> Part:
    """The part without rows of negative duration; their number is in `missing`."""
    ops, no_ops = _lasting(part.ops, "duration_ns")
    host, no_calls = _lasting(part.host, "duration_ns")
    collectives, no_collectives = _lasting(part.collectives, "elapse_ns")
    steps, no_steps = _ending(part.steps)
    lost = {"op": no_ops, "call": no_calls, "collective": no_collectives, "step": no_steps}
    named = [counted(count, noun) for noun, count in lost.items() if count]
    if not named:
        return part
    gap = Missing(file=part.file, what=f"{', '.join(named)} with a negative duration")
    return replace(
        part,
        ops=ops,
        host=host,
        collectives=collectives,
        steps=steps,
        missing=(*part.missing, gap),
    )


def _lasting(table: pl.DataFrame | None, column: str) -> tuple[pl.DataFrame | None, int]:
    """The rows without negative duration, and the number of the others."""
    if table is None or column not in table.columns:
        return table, 0
    negative = (table[column] < 0).fill_null(False)
    return (table.filter(~negative), int(negative.sum())) if negative.any() else (table, 0)


def _ending(steps: pl.DataFrame | None) -> tuple[pl.DataFrame | None, int]:
    """The steps that do not end before they start, and whose parts are not negative."""
    if steps is None:
        return None, 0
    parts = [
        name
        for name in steps.columns
        if name.endswith("_ns") and name not in ("start_ns", "end_ns")
    ]
    wrong = [pl.col(name) < 0 for name in parts]
    if {"start_ns", "end_ns"} <= set(steps.columns):
        wrong.append(pl.col("end_ns") < pl.col("start_ns"))
    if not wrong or not steps.height:
        return steps, 0
    negative = steps.select(pl.any_horizontal(wrong).fill_null(False).alias("wrong"))["wrong"]
    return (steps.filter(~negative), int(negative.sum())) if negative.any() else (steps, 0)
