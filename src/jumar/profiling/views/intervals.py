"""Unions, intersections and differences of intervals, for millions of ops at once.

A sweep over the edges of all sets of intervals splits time into segments, with the number of
intervals of each set that cover them.
"""

from collections.abc import Mapping, Sequence

import numpy as np
import polars as pl
from numpy.typing import NDArray

SPAN = {"rank": pl.Int32(), "start_ns": pl.Int64(), "end_ns": pl.Int64()}
"""The columns of a table of intervals; `end_ns` is exclusive."""


def in_columns(table: pl.DataFrame, schema: Mapping[str, pl.DataType]) -> pl.DataFrame:
    """The columns of a schema, with its types."""
    return table.select(pl.col(name).cast(kind) for name, kind in schema.items())


def spans(table: pl.DataFrame, *, duration: str = "duration_ns") -> pl.DataFrame:
    """The intervals of a table with `rank`, `start_ns` and a duration, without empty ones."""
    return table.select(
        pl.col("rank").fill_null(0).cast(pl.Int32),
        pl.col("start_ns"),
        (pl.col("start_ns") + pl.col(duration)).alias("end_ns"),
    ).filter(pl.col("end_ns") > pl.col("start_ns"))


def swept(sets: Sequence[pl.DataFrame]) -> pl.DataFrame:
    """The edges of all sets by time: `rank`, `start_ns`, `set`, `delta` (+1 or -1), `end_ns`.

    `end_ns` is the next edge. Of several edges at the same time, only the last has a length, and
    only there are the counts valid.
    """
    # Cast, since empty sets may have other types.
    tables = [in_columns(table, SPAN) for table in sets]
    ranks = pl.concat([table["rank"].unique() for table in tables]).unique()
    # Most profiles have one rank. Sorting without it is several times as fast; no other step of the
    # views of a long profile needs as much memory.
    order = ["rank", "start_ns"] if ranks.len() > 1 else ["start_ns"]
    edges = [
        table.select(
            *order[:-1],
            pl.col(edge).alias("start_ns"),
            pl.lit(index, dtype=pl.Int16).alias("set"),
            pl.lit(delta, dtype=pl.Int8).alias("delta"),
        )
        for index, table in enumerate(tables)
        for edge, delta in (("start_ns", 1), ("end_ns", -1))
    ]
    del tables
    events = pl.concat(edges).sort(order)
    next_edge = pl.col("start_ns").shift(-1)
    if ranks.len() > 1:
        return events.with_columns(next_edge.over("rank").alias("end_ns"))
    rank = ranks[0] if ranks.len() else 0
    return events.with_columns(
        next_edge.alias("end_ns"), pl.lit(rank, dtype=pl.Int32).alias("rank")
    )


def count_of(index: int) -> pl.Expr:
    """The number of intervals of a set that cover the time after each edge of `swept`.

    Counts return to 0 at the end of each rank, so one running sum serves all ranks.
    """
    return (
        pl.when(pl.col("set") == index).then(pl.col("delta").cast(pl.Int32)).otherwise(0).cum_sum()
    )


def segments(sets: Mapping[str, pl.DataFrame]) -> pl.DataFrame:
    """Time split at every edge, with the number of intervals of each set covering each segment.

    Args:
        sets: Tables of intervals by name.

    Returns:
        `rank`, `start_ns`, `end_ns` and a column of counts for each set, by time.
    """
    events = swept(list(sets.values()))
    counted = events.with_columns(count_of(index).alias(name) for index, name in enumerate(sets))
    return counted.filter(pl.col("end_ns") > pl.col("start_ns")).select(
        "rank", "start_ns", "end_ns", *sets
    )


def union(table: pl.DataFrame) -> pl.DataFrame:
    """The intervals of a table, merged where they touch or overlap."""
    table_of_spans = in_columns(table, SPAN)
    if table_of_spans["rank"].n_unique() < 2:
        return _union(table_of_spans)
    return pl.concat(
        [
            _union(intervals)
            for _, intervals in table_of_spans.sort("rank").group_by("rank", maintain_order=True)
        ]
    )


def _union(table: pl.DataFrame) -> pl.DataFrame:
    """The union for one rank: a new interval starts when all earlier ones have ended."""
    if not table["start_ns"].is_sorted():
        table = table.sort("start_ns")
    ends_so_far = table["end_ns"].cum_max()
    is_start = (table["start_ns"] > ends_so_far.shift(1)).fill_null(True)
    is_end = is_start.shift(-1, fill_value=True)
    return (
        table.filter(is_start).select("rank", "start_ns").with_columns(ends_so_far.filter(is_end))
    )


def length(table: pl.DataFrame) -> int:
    """The total length of intervals, which must not overlap."""
    return int((table["end_ns"] - table["start_ns"]).sum())


def length_before(
    starts: NDArray[np.int64], ends: NDArray[np.int64], moments: NDArray[np.int64]
) -> NDArray[np.int64]:
    """The total length of sorted intervals, which must not overlap, before each moment."""
    if not len(starts):
        return np.zeros(len(moments), np.int64)
    sums = np.concatenate([np.zeros(1, np.int64), np.cumsum(ends - starts)])
    index = np.searchsorted(starts, moments, side="right")
    beyond = np.where(index > 0, ends[np.maximum(index - 1, 0)] - moments, 0)
    return sums[index] - np.clip(beyond, 0, None)


def intersection(first: pl.DataFrame, second: pl.DataFrame) -> pl.DataFrame:
    """The intersection of two sets of intervals."""
    if first.is_empty() or second.is_empty():
        return first.clear().select(list(SPAN))
    pieces = segments({"a": first, "b": second})
    return pieces.filter((pl.col("a") > 0) & (pl.col("b") > 0)).select(list(SPAN))


def difference(first: pl.DataFrame, second: pl.DataFrame) -> pl.DataFrame:
    """The first set of intervals without the second."""
    if pl.concat([first["rank"], second["rank"]]).n_unique() == 1:
        merged_first = union(first)
        if merged_first.height <= _MAX_CLIPPED:
            return _uncovered_parts(merged_first, union(second))
        second = _overlapping(second, merged_first)
    pieces = segments({"a": first, "b": second})
    return pieces.filter((pl.col("a") > 0) & (pl.col("b") <= 0)).select(list(SPAN))


_MAX_CLIPPED = 4
"""Up to this many intervals are clipped one by one, which is faster than a sweep."""


def _uncovered_parts(first: pl.DataFrame, second: pl.DataFrame) -> pl.DataFrame:
    """The parts of `first` not covered by `second`; both are unions of one rank."""
    frames = [first.clear()]
    for rank, start, end in first.iter_rows():
        starts = pl.concat([pl.Series([start]), second["end_ns"]]).clip(lower_bound=start)
        ends = pl.concat([second["start_ns"], pl.Series([end])]).clip(upper_bound=end)
        is_gap = ends > starts
        gaps = pl.DataFrame({"start_ns": starts.filter(is_gap), "end_ns": ends.filter(is_gap)})
        frames.append(gaps.select(pl.lit(rank, pl.Int32()).alias("rank"), "start_ns", "end_ns"))
    return pl.concat(frames)


def _overlapping(table: pl.DataFrame, merged: pl.DataFrame) -> pl.DataFrame:
    """The rows that overlap an interval of a union; both of one rank."""
    before = merged["start_ns"].search_sorted(table["end_ns"], side="left").cast(pl.Int64)
    last = merged["end_ns"].gather((before - 1).clip(lower_bound=0))
    return table.filter((before > 0) & (last > table["start_ns"]))
