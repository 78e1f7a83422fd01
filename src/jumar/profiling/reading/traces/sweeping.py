"""Launches and own times of the ops in a long trace, one time span after another."""

from collections.abc import Iterator
from typing import Final

import numpy as np
import polars as pl

from jumar.profiling.reading.traces.categories import OP_CATEGORY, RUNTIME_CATEGORIES
from jumar.profiling.reading.traces.nesting import MOMENT, Sweep
from jumar.profiling.reading.traces.trace import Trace

STEP: Final = r"^ProfilerStep#(\d{1,18})$"
ROWS_PER_SPAN: Final = 32_768
"""Approximate number of rows processed at a time."""

_OP_PROPERTIES: Final = ("name", "shapes", "types", "module")
_SWEPT_COLUMNS: Final = (
    *_OP_PROPERTIES,
    "row",
    "thread",
    "start_ns",
    "duration_ns",
    "correlation",
    "external",
)


def is_op_row(trace: Trace) -> pl.Expr:
    """Whether a row of `Trace.calls` is an op, and not a step mark, which has the same category."""
    return (
        (pl.col("category") == trace.texts.number(OP_CATEGORY))
        & pl.col("name").is_not_null()
        & ~pl.col("name").is_in(trace.texts.matching(STEP))
    )


class _SpanSweep:
    """Finds parents across spans, by carrying over the calls that are still open.

    Attributes:
        open_rows: The rows that are still open; None before the first span.
    """

    def __init__(self) -> None:
        self._sweep = Sweep()
        self._indices = np.empty(0, dtype=np.int64)
        self.open_rows: pl.DataFrame | None = None
        self._count = 0

    def add(self, rows: pl.DataFrame) -> tuple[pl.DataFrame, np.ndarray]:
        """All open and new rows, and for each new row the index of its parent among them, or -1."""
        parents = self._sweep.parents(
            rows["thread"].fill_null(0), rows["start_ns"], rows["duration_ns"]
        )
        indices = np.arange(self._count, self._count + rows.height)
        self._indices = np.concatenate([self._indices, indices])
        self._count += rows.height
        all_rows = rows if self.open_rows is None else pl.concat([self.open_rows, rows])
        positions = np.searchsorted(self._indices, parents)
        return all_rows, np.where(parents < 0, -1, positions)

    def keep(self, all_rows: pl.DataFrame, until: int) -> pl.DataFrame:
        """Keep the rows that are still open, and return those that have ended."""
        open_calls = self._sweep.still_open(until)
        is_open = np.isin(self._indices, open_calls)
        self.open_rows, self._indices = all_rows.filter(pl.Series(is_open)), self._indices[is_open]
        return all_rows.filter(pl.Series(~is_open))


def launches(trace: Trace, correlations: np.ndarray) -> pl.DataFrame:
    """The calls that launched device work, with the innermost op around each.

    Args:
        trace: The trace.
        correlations: The correlation ids of the device work, sorted.

    Returns:
        `correlation`, `launch_ns`, and `op`, `shapes`, `types`, `module`, `thread` as text
        numbers.
    """
    op_rows, sweep = is_op_row(trace), _SpanSweep()
    is_launch = pl.col("category").is_in([trace.texts.number(name) for name in RUNTIME_CATEGORIES])
    frames: list[pl.DataFrame] = []
    for span in trace.calls.spans(ROWS_PER_SPAN):
        calls = span.filter(is_launch & pl.col("correlation").is_not_null())
        calls = calls.filter(is_in_sorted(calls["correlation"], correlations))
        moments = calls.with_columns(pl.lit(MOMENT, pl.Int64).alias("duration_ns"))
        rows = pl.concat(
            [span.filter(op_rows).select(_SWEPT_COLUMNS), moments.select(_SWEPT_COLUMNS)]
        )
        if not rows.height:
            continue
        all_rows, parents = sweep.add(rows)
        parent = pl.Series(parents[rows.height - moments.height :])
        parent = parent.set(parent < 0, None)
        frames.append(
            moments.select(
                "row",
                "correlation",
                "thread",
                pl.col("start_ns").alias("launch_ns"),
                *(
                    all_rows[name].gather(parent).alias(_output_name(name))
                    for name in _OP_PROPERTIES
                ),
            )
        )
        sweep.keep(all_rows, int(span["start_ns"].max()))  # pyright: ignore[reportArgumentType]
    if not frames:
        return trace.calls.joined(()).select(
            "correlation",
            "thread",
            pl.col("start_ns").alias("launch_ns"),
            *(pl.col(name).alias(_output_name(name)) for name in _OP_PROPERTIES),
        )
    # Take the first in the file: correlation ids repeat if the profiler is restarted.
    return (
        pl.concat(frames)
        .sort("row")
        .unique("correlation", keep="first", maintain_order=True)
        .drop("row")
    )


def ops_with_unique_id(trace: Trace, externals: np.ndarray) -> pl.DataFrame:
    """The ops with some external ids, except ids that several ops share.

    Args:
        trace: The trace.
        externals: The external ids to look for, sorted.
    """
    op_rows = is_op_row(trace)
    columns = ("category", "external", *_OP_PROPERTIES)
    frames = [trace.calls.joined(()).select(columns)]
    for rows in trace.calls.frames(*columns):
        rows = rows.filter(op_rows & pl.col("external").is_not_null()).select(columns)
        frames.append(rows.filter(is_in_sorted(rows["external"], externals)))
    return (
        pl.concat(frames)
        .unique("external", keep="none")
        .select("external", *(pl.col(name).alias(_output_name(name)) for name in _OP_PROPERTIES))
    )


def own_times(trace: Trace) -> Iterator[pl.DataFrame]:
    """The CPU ops, unordered, with `own_ns`, their duration without that of direct children."""
    op_rows, sweep = is_op_row(trace), _SpanSweep()
    for span in trace.calls.spans(ROWS_PER_SPAN):
        rows = span.filter(op_rows).select(*_SWEPT_COLUMNS, pl.lit(0, pl.Int64).alias("child_ns"))
        if not rows.height:
            continue
        all_rows, parents = sweep.add(rows)
        child_ns = all_rows["child_ns"].to_numpy().copy()
        has_parent = parents >= 0
        np.add.at(child_ns, parents[has_parent], rows["duration_ns"].to_numpy()[has_parent])
        all_rows = all_rows.with_columns(pl.Series("child_ns", child_ns))
        yield _with_own_time(sweep.keep(all_rows, int(span["start_ns"].max())))  # pyright: ignore[reportArgumentType]
    if sweep.open_rows is not None:
        yield _with_own_time(sweep.open_rows)


def _with_own_time(ops: pl.DataFrame) -> pl.DataFrame:
    own_time = (pl.col("duration_ns") - pl.col("child_ns")).clip(lower_bound=0)
    return ops.with_columns(own_time.alias("own_ns")).drop("child_ns")


def is_in_sorted(values: pl.Series, ordered: np.ndarray) -> pl.Series:
    """Whether each value is in a sorted array; cheaper than a hash table for each batch."""
    if not len(ordered):
        return pl.repeat(False, len(values), eager=True)
    numbers = values.to_numpy()
    index = np.searchsorted(ordered, numbers).clip(max=len(ordered) - 1)
    return pl.Series(ordered[index] == numbers)


def _output_name(name: str) -> str:
    return "op" if name == "name" else name
