"""Step marks on another clock than the ops: detected, and replaced if a file has better ones."""

from collections.abc import Sequence

import polars as pl

from jumar.profiling.profile import Missing
from jumar.profiling.reading.part import Part

_BOUNDS = ["start_ns", "end_ns"]


def on_one_clock(
    ops: pl.DataFrame, steps: pl.DataFrame, parts: Sequence[Part]
) -> tuple[pl.DataFrame, list[Missing]]:
    """The steps with bounds on the clock of the ops, and a note if the file's own are not.

    Between a clock since 1970 and one since the start of the machine lie decades, so that the steps
    would hold no op and look idle. Where another file of the capture has marks beside the ops,
    those are taken; where one has the same ops by the clock of its marks, these are shifted by what
    lies between the two. Else the steps lose their bounds, and views take all ops as one step.

    Args:
        ops: The ops of a capture.
        steps: Its steps.
        parts: What its files hold.
    """
    if "start_ns" not in ops.columns or not _apart(ops, steps):
        return steps, []
    others = [part for part in parts if part.steps is not None and _beside(ops, part.steps)]
    kept = steps.drop(_BOUNDS)
    what = "steps: their marks lie outside the time of all ops, on another clock"
    for part in others:
        assert part.steps is not None
        marks = part.steps.select("step", *_BOUNDS).unique("step", keep="first")
        joined = kept.join(marks, on="step", how="left", maintain_order="left")
        if joined["start_ns"].null_count() < joined.height:
            return joined, [Missing(file=part.file, what=f"{what}; those of this file are used")]
    for part in parts:
        distance = _distance(ops, part)
        if distance is None or part.steps is None:
            continue
        marks = part.steps.select("step", *(pl.col(name) - distance for name in _BOUNDS))
        joined = kept.join(
            marks.unique("step", keep="first"), on="step", how="left", maintain_order="left"
        )
        if joined["start_ns"].null_count() < joined.height:
            shifted = f"{what}; shifted by {distance / 1e9:.6f} s, by which the same ops lie apart"
            return joined, [Missing(file=part.file, what=shifted)]
    bare = kept.with_columns(pl.lit(None, pl.Int64).alias(name) for name in _BOUNDS)
    named = next((p.file for p in parts if p.steps is not None and _apart(ops, p.steps)), "steps")
    what = f"{what}; all ops are taken as one step"
    return bare, [Missing(file=named, what=what, needed_for=("step split", "gate"))]


def lag_of(before: pl.DataFrame, after: pl.DataFrame) -> int:
    """By how much `on_one_clock` moved all marks alike to an earlier time; 0 if it did not."""
    if not {"step", "start_ns"} <= set(before.columns) or before is after:
        return 0
    pairs = before.select("step", "start_ns").join(after.select("step", now="start_ns"), on="step")
    moved = pairs.select(pl.col("start_ns") - pl.col("now")).to_series().drop_nulls().unique()
    return int(moved[0]) if len(moved) == 1 else 0


def brought_beside(table: pl.DataFrame, ops: pl.DataFrame, lag: int) -> pl.DataFrame:
    """Calls or collectives on the clock of the ops, if they are on that of the marks."""
    if not lag or "start_ns" not in table.columns:
        return table
    moved = table.with_columns(pl.col("start_ns") - lag)
    return moved if _touches(moved, ops) and not _touches(table, ops) else table


def _touches(table: pl.DataFrame, ops: pl.DataFrame) -> bool:
    """Whether some row starts between the first and the last op."""
    extent = _extent(ops, pl.col("start_ns") + pl.col("duration_ns"))
    return extent is not None and bool(table["start_ns"].is_between(*extent).any())


_SAME_NS = 1_000
"""Times of one op in two files differ by their rounding."""


def _distance(ops: pl.DataFrame, part: Part) -> int | None:
    """How much later a file has the same ops, by its own step clock; None if uncertain.

    It is sure where both have the same durations in the same order, and every op lies equally far
    from its other self.
    """
    if part.ops is None or part.steps is None or not _beside(part.ops, part.steps):
        return None
    ours, theirs = (
        table.select("start_ns", "duration_ns").drop_nulls().sort("start_ns")
        for table in (ops, part.ops)
    )
    if ours.is_empty() or ours.height != theirs.height:
        return None
    lasted = (ours["duration_ns"] - theirs["duration_ns"]).abs().max()
    apart = theirs["start_ns"] - ours["start_ns"]
    distance = int(apart.median() or 0)  # pyright: ignore[reportArgumentType]
    furthest = (apart - distance).abs().max()
    if not isinstance(lasted, int) or not isinstance(furthest, int):
        return None
    return distance if max(lasted, furthest) <= _SAME_NS else None


def _extent(table: pl.DataFrame, end: pl.Expr) -> tuple[int, int] | None:
    known = table.select(pl.col("start_ns").min(), end.max().alias("end")).row(0)
    return None if None in known else (int(known[0]), int(known[1]))


def _extents(ops: pl.DataFrame, steps: pl.DataFrame) -> tuple[int, int, int, int] | None:
    """When the ops and the step marks start and end; None if unknown."""
    if not {"step", *_BOUNDS} <= set(steps.columns):
        return None
    work = _extent(ops, pl.col("start_ns") + pl.col("duration_ns"))
    marks = _extent(steps, pl.col("end_ns"))
    return None if work is None or marks is None else (*work, *marks)


def _apart(ops: pl.DataFrame, steps: pl.DataFrame) -> bool:
    """Whether all ops are before or after all steps, by more than their joint duration."""
    extents = _extents(ops, steps)
    if extents is None:
        return False
    begin, end, first, last = extents
    return max(first - end, begin - last) > (end - begin) + (last - first)


def _beside(ops: pl.DataFrame, steps: pl.DataFrame) -> bool:
    """Whether some op may be in a step."""
    extents = _extents(ops, steps)
    return extents is not None and extents[2] < extents[1] and extents[0] < extents[3]
