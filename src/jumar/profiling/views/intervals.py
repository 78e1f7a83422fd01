"""Unions and overlaps of intervals, for millions of ops at once.

One sweep answers all questions: the edges of every set of intervals cut time into segments, and of
each segment it is known how many intervals of each set cover it.
"""

from collections.abc import Mapping, Sequence

import polars as pl

SPAN = {"rank": pl.Int32(), "start_ns": pl.Int64(), "end_ns": pl.Int64()}
"""The columns of a table of intervals: `end_ns` is the first nanosecond after it."""


def spans(table: pl.DataFrame, *, duration: str = "duration_ns") -> pl.DataFrame:
    """The intervals of a table with `rank`, `start_ns` and a duration; empty ones are dropped."""
    return table.select(
        pl.col("rank").fill_null(0).cast(pl.Int32),
        pl.col("start_ns"),
        (pl.col("start_ns") + pl.col(duration)).alias("end_ns"),
    ).filter(pl.col("end_ns") > pl.col("start_ns"))


def swept(sets: Sequence[pl.DataFrame]) -> pl.DataFrame:
    """The edges of all sets in order of time: `rank`, `start_ns`, `which` set, `delta` +1 or -1.

    `end_ns` is the next edge; edges at one moment have no length until the last of them, and only
    there the counts hold.
    """
    # The types are set here, since a set without rows may come from anywhere.
    taken = [table.select(pl.col(name).cast(kind) for name, kind in SPAN.items()) for table in sets]
    ranks = pl.concat([table["rank"].unique() for table in taken]).unique()
    # Most profiles are of one rank: without it sorting is several times as fast, and is the moment
    # at which the views of a long profile need most memory.
    order = ["rank", "start_ns"] if ranks.len() > 1 else ["start_ns"]
    edges = [
        table.select(
            *order[:-1],
            pl.col(edge).alias("start_ns"),
            pl.lit(index, dtype=pl.Int16).alias("which"),
            pl.lit(delta, dtype=pl.Int8).alias("delta"),
        )
        for index, table in enumerate(taken)
        for edge, delta in (("start_ns", 1), ("end_ns", -1))
    ]
    del taken
    events = pl.concat(edges).sort(order)
    following = pl.col("start_ns").shift(-1)
    if ranks.len() > 1:
        return events.with_columns(following.over("rank").alias("end_ns"))
    rank = ranks[0] if ranks.len() else 0
    return events.with_columns(
        following.alias("end_ns"), pl.lit(rank, dtype=pl.Int32).alias("rank")
    )


def count_of(index: int) -> pl.Expr:
    """How many intervals of a set cover the time after each edge of `swept`.

    The counts of a rank are 0 again at its end, so that one sum serves all ranks.
    """
    return (
        pl.when(pl.col("which") == index)
        .then(pl.col("delta").cast(pl.Int32))
        .otherwise(0)
        .cum_sum()
    )


def segments(sets: Mapping[str, pl.DataFrame]) -> pl.DataFrame:
    """Time cut at every edge, with the number of intervals of each set over each segment.

    Args:
        sets: Tables of intervals by name.

    Returns:
        `rank`, `start_ns`, `end_ns` and a column of counts for each set, in order of time.
    """
    events = swept(list(sets.values()))
    counted = events.with_columns(count_of(index).alias(name) for index, name in enumerate(sets))
    return counted.filter(pl.col("end_ns") > pl.col("start_ns")).select(
        "rank", "start_ns", "end_ns", *sets
    )


def union(table: pl.DataFrame) -> pl.DataFrame:
    """The intervals of a table, merged where they touch or overlap."""
    taken = table.select(pl.col(name).cast(kind) for name, kind in SPAN.items())
    if taken["rank"].n_unique() < 2:
        return _union(taken)
    return pl.concat(
        [
            _union(intervals)
            for _, intervals in taken.sort("rank").group_by("rank", maintain_order=True)
        ]
    )


def _union(table: pl.DataFrame) -> pl.DataFrame:
    """The union for one rank: a new interval starts when all earlier ones have ended."""
    if not table["start_ns"].is_sorted():
        table = table.sort("start_ns")
    reached = table["end_ns"].cum_max()
    begins = (table["start_ns"] > reached.shift(1)).fill_null(True)
    ends = begins.shift(-1, fill_value=True)
    return table.filter(begins).select("rank", "start_ns").with_columns(reached.filter(ends))


def merged(cut: pl.DataFrame) -> pl.DataFrame:
    """Segments in order, merged where they touch."""
    apart = (cut["start_ns"] != cut["end_ns"].shift(1)) | (cut["rank"] != cut["rank"].shift(1))
    begins = apart.fill_null(True)
    ends = begins.shift(-1, fill_value=True)
    return cut.filter(begins).select("rank", "start_ns").with_columns(cut.filter(ends)["end_ns"])


def length(table: pl.DataFrame) -> int:
    """The summed length of intervals that do not overlap."""
    return int((table["end_ns"] - table["start_ns"]).sum())


def intersection(first: pl.DataFrame, second: pl.DataFrame) -> pl.DataFrame:
    """The intersection of two sets."""
    if first.is_empty() or second.is_empty():
        return first.clear().select(list(SPAN))
    cut = segments({"a": first, "b": second})
    return cut.filter((pl.col("a") > 0) & (pl.col("b") > 0)).select(list(SPAN))


def difference(first: pl.DataFrame, second: pl.DataFrame) -> pl.DataFrame:
    """The first set without the second."""
    if pl.concat([first["rank"], second["rank"]]).n_unique() == 1:
        asked = union(first)
        if asked.height <= _FEW:
            return _gaps(asked, union(second))
        second = _near(second, asked)
    cut = segments({"a": first, "b": second})
    return cut.filter((pl.col("a") > 0) & (pl.col("b") <= 0)).select(list(SPAN))


_FEW = 4
"""So many intervals are clipped one after the other, which is faster than a sweep."""


def _gaps(asked: pl.DataFrame, taken: pl.DataFrame) -> pl.DataFrame:
    """The gaps of `asked` between the intervals of `taken`; both are unions of one rank."""
    frames = [asked.clear()]
    for rank, start, end in asked.iter_rows():
        begins = pl.concat([pl.Series([start]), taken["end_ns"]]).clip(lower_bound=start)
        ends = pl.concat([taken["start_ns"], pl.Series([end])]).clip(upper_bound=end)
        kept = ends > begins
        gaps = pl.DataFrame({"start_ns": begins.filter(kept), "end_ns": ends.filter(kept)})
        frames.append(gaps.select(pl.lit(rank, pl.Int32()).alias("rank"), "start_ns", "end_ns"))
    return pl.concat(frames)


def _near(table: pl.DataFrame, merged: pl.DataFrame) -> pl.DataFrame:
    """The rows that overlap an interval of a union, both of one rank."""
    before = merged["start_ns"].search_sorted(table["end_ns"], side="left").cast(pl.Int64)
    last = merged["end_ns"].gather((before - 1).clip(lower_bound=0))
    return table.filter((before > 0) & (last > table["start_ns"]))
