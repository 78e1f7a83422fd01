"""Detects step marks on a different clock from the ops, and replaces or shifts them if possible."""

from collections.abc import Iterator, Sequence

import polars as pl

from jumar.profiling.profile import END, Missing
from jumar.profiling.reading.file_content import FileContent

_BOUNDS = ["start_ns", "end_ns"]


def on_one_clock(
    ops: pl.DataFrame, steps: pl.DataFrame, contents: Sequence[FileContent]
) -> tuple[pl.DataFrame, list[Missing]]:
    """The steps with bounds on the clock of the ops, and a note if they had to be changed.

    A clock that counts from 1970 and one that counts from boot are decades apart, so the steps
    would contain no ops and look idle. If another file of the capture has marks on the clock of
    the ops, those are used. If one has the same ops on the clock of the marks, the marks are
    shifted by the offset. Otherwise the steps lose their bounds, and views treat all ops as one
    step.

    Args:
        ops: The ops of a capture.
        steps: Its steps.
        contents: The contents of its files.
    """
    if "start_ns" not in ops.columns or not _on_different_clocks(ops, steps):
        return steps, []
    unbounded = steps.drop(_BOUNDS)
    what = "steps: their marks are on a different clock from the ops"
    for file, marks, how in _other_marks(ops, contents):
        joined = unbounded.join(
            marks.unique("step", keep="first"), on="step", how="left", maintain_order="left"
        )
        if joined["start_ns"].null_count() < joined.height:
            return joined, [Missing(file=file, what=f"{what}; {how}")]
    unknown_bounds = unbounded.with_columns(pl.lit(None, pl.Int64).alias(name) for name in _BOUNDS)
    file = next(
        (
            content.file
            for content in contents
            if content.steps is not None and _on_different_clocks(ops, content.steps)
        ),
        "steps",
    )
    what = f"{what}; all ops are treated as one step"
    return unknown_bounds, [Missing(file=file, what=what, needed_for=("step split", "gate"))]


def _other_marks(
    ops: pl.DataFrame, contents: Sequence[FileContent]
) -> Iterator[tuple[str, pl.DataFrame, str]]:
    """Files with marks on the clock of the ops, or moved there; the marks, and where from."""
    for content in contents:
        if content.steps is not None and _overlap(ops, content.steps):
            marks = content.steps.select("step", *_BOUNDS)
            yield content.file, marks, "the marks of this file are used"
    for content in contents:
        offset = _clock_offset(ops, content)
        if offset is not None and content.steps is not None:
            marks = content.steps.select("step", *(pl.col(name) - offset for name in _BOUNDS))
            how = f"shifted by {offset / 1e9:.6f} s, the offset between the same ops"
            yield content.file, marks, how


def clock_lag(before: pl.DataFrame, after: pl.DataFrame) -> int:
    """The offset by which `on_one_clock` moved all marks back; 0 if it did not shift them."""
    if not {"step", "start_ns"} <= set(before.columns) or before is after:
        return 0
    pairs = before.select("step", "start_ns").join(after.select("step", now="start_ns"), on="step")
    moved = pairs.select(pl.col("start_ns") - pl.col("now")).to_series().drop_nulls().unique()
    return int(moved[0]) if len(moved) == 1 else 0


def on_ops_clock(table: pl.DataFrame, ops: pl.DataFrame, lag_ns: int) -> pl.DataFrame:
    """Host calls or collectives on the clock of the ops, shifted if they use that of the marks."""
    if not lag_ns or "start_ns" not in table.columns:
        return table
    moved = table.with_columns(pl.col("start_ns") - lag_ns)
    return moved if _starts_within(moved, ops) and not _starts_within(table, ops) else table


def _starts_within(table: pl.DataFrame, ops: pl.DataFrame) -> bool:
    """Whether any row starts between the first and the last op."""
    extent = _extent(ops, END)
    return extent is not None and bool(table["start_ns"].is_between(*extent).any())


_MAX_ROUNDING_NS = 1_000
"""Maximum rounding difference between the times of an op in two files."""


def _clock_offset(ops: pl.DataFrame, content: FileContent) -> int | None:
    """The offset of a file's step clock, from ops that both have; None if uncertain.

    It is certain if both have the same durations in the same order, and all start times differ
    by the same amount.
    """
    if content.ops is None or content.steps is None or not _overlap(content.ops, content.steps):
        return None
    reference, other = (
        table.select("start_ns", "duration_ns").drop_nulls().sort("start_ns")
        for table in (ops, content.ops)
    )
    if reference.is_empty() or reference.height != other.height:
        return None
    max_difference = (reference["duration_ns"] - other["duration_ns"]).abs().max()
    offsets = other["start_ns"] - reference["start_ns"]
    offset = int(offsets.median() or 0)  # pyright: ignore[reportArgumentType]
    max_deviation = (offsets - offset).abs().max()
    if not isinstance(max_difference, int) or not isinstance(max_deviation, int):
        return None
    return offset if max(max_difference, max_deviation) <= _MAX_ROUNDING_NS else None


def _extent(table: pl.DataFrame, end: pl.Expr) -> tuple[int, int] | None:
    bounds = table.select(pl.col("start_ns").min(), end.max().alias("end")).row(0)
    return None if None in bounds else (int(bounds[0]), int(bounds[1]))


def _extents(ops: pl.DataFrame, steps: pl.DataFrame) -> tuple[int, int, int, int] | None:
    """Start and end of the ops and of the step marks; None if unknown."""
    if not {"step", *_BOUNDS} <= set(steps.columns):
        return None
    op_extent = _extent(ops, END)
    step_extent = _extent(steps, pl.col("end_ns"))
    return None if op_extent is None or step_extent is None else (*op_extent, *step_extent)


def _on_different_clocks(ops: pl.DataFrame, steps: pl.DataFrame) -> bool:
    """Whether the gap between ops and steps exceeds the sum of their extents."""
    extents = _extents(ops, steps)
    if extents is None:
        return False
    start, end, first, last = extents
    return max(first - end, start - last) > (end - start) + (last - first)


def _overlap(ops: pl.DataFrame, steps: pl.DataFrame) -> bool:
    """Whether the time ranges of ops and steps overlap."""
    extents = _extents(ops, steps)
    return extents is not None and extents[2] < extents[1] and extents[0] < extents[3]
