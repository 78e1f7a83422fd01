"""Drops impossible rows: those that end before they start, and steps with negative times."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import polars as pl

from jumar.ground.text import counted
from jumar.profiling.profile import Missing
from jumar.profiling.reading.file_content import FileContent

_BOUNDS: Final = ("start_ns", "end_ns")


def without_negative(content: FileContent) -> FileContent:
    """The content without rows of negative duration, whose number is noted in `missing`."""
    ops, bad_ops = _without_negative(content.ops, ["duration_ns"])
    host, bad_calls = _without_negative(content.host, ["duration_ns"])
    collectives, bad_collectives = _without_negative(content.collectives, ["elapse_ns"])
    steps, bad_steps = _without_negative(content.steps, _times_of_steps(content.steps))
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


def _times_of_steps(steps: pl.DataFrame | None) -> list[str]:
    """The columns of a table of steps with lengths of time."""
    columns = [] if steps is None else steps.columns
    return [name for name in columns if name.endswith("_ns") and name not in _BOUNDS]


def _without_negative(
    table: pl.DataFrame | None, lengths: Sequence[str]
) -> tuple[pl.DataFrame | None, int]:
    """The table without rows that have a negative length or end first, and how many those are."""
    if table is None:
        return None, 0
    is_negative = [pl.col(name) < 0 for name in lengths if name in table.columns]
    if set(_BOUNDS) <= set(table.columns):
        is_negative.append(pl.col("end_ns") < pl.col("start_ns"))
    if not is_negative or not table.height:
        return table, 0
    negative = table.select(pl.any_horizontal(is_negative).fill_null(False)).to_series()
    return (table.filter(~negative), int(negative.sum())) if negative.any() else (table, 0)
