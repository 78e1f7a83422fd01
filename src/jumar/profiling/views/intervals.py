"""Unions and overlaps of intervals, for millions of ops at once.

One sweep answers all questions: the edges of every set of intervals cut time into segments, and of
each segment it is known how many intervals of each set cover it.
"""

from collections.abc import Mapping

import polars as pl

SPAN = {"rank": pl.Int32(), "start_ns": pl.Int64(), "end_ns": pl.Int64()}
"""The columns of a table of intervals: `end_ns` is the first nanosecond after it."""


def spans(table: pl.DataFrame, *, duration: str = "duration_ns") -> pl.DataFrame:
    """The intervals of a table with `rank`, `start_ns` and a duration; empty ones are left out."""
    return table.select(
        pl.col("rank").fill_null(0).cast(pl.Int32),
        pl.col("start_ns"),
        (pl.col("start_ns") + pl.col(duration)).alias("end_ns"),
    ).filter(pl.col("end_ns") > pl.col("start_ns"))


def segments(sets: Mapping[str, pl.DataFrame]) -> pl.DataFrame:
    """Time cut at every edge, with the number of intervals of each set over each segment.

    Args:
        sets: Tables of intervals by name.

    Returns:
        `rank`, `start_ns`, `end_ns` and a column of counts for each set, in order of time.
    """
    edges: list[pl.DataFrame] = []
    for name, table in sets.items():
        # The types are told here, since a set without rows may come from anywhere.
        taken = table.select(pl.col(column).cast(kind) for column, kind in SPAN.items())
        for edge, step in (("start_ns", 1), ("end_ns", -1)):
            marks = [
                pl.lit(step if name == other else 0, dtype=pl.Int32).alias(other) for other in sets
            ]
            edges.append(taken.select("rank", pl.col(edge).alias("start_ns"), *marks))
    table = pl.concat(edges)
    # Sorting by one column is several times as fast, and most profiles are of one rank.
    keys = ["rank", "start_ns"] if table["rank"].n_unique() > 1 else ["start_ns"]
    return (
        table.lazy()
        .sort(keys)
        .with_columns(
            pl.col("start_ns").shift(-1).over("rank").alias("end_ns")
            if len(keys) > 1
            else pl.col("start_ns").shift(-1).alias("end_ns"),
            # The counts of all ranks sum up to 0 at their ends, so that one sum serves them all.
            *(pl.col(name).cum_sum() for name in sets),
        )
        # Edges at one moment are one; only after the last of them do the counts hold.
        .filter(pl.col("end_ns") > pl.col("start_ns"))
        .select("rank", "start_ns", "end_ns", *sets)
        .collect()
    )


def union(table: pl.DataFrame) -> pl.DataFrame:
    """The intervals of a table with those put together that touch or overlap."""
    return merged(segments({"set": table}).filter(pl.col("set") > 0))


def merged(cut: pl.DataFrame) -> pl.DataFrame:
    """Segments in order, with those put together that touch."""
    apart = (cut["start_ns"] != cut["end_ns"].shift(1)) | (cut["rank"] != cut["rank"].shift(1))
    begins = apart.fill_null(True)
    ends = begins.shift(-1, fill_value=True)
    return cut.filter(begins).select("rank", "start_ns").with_columns(cut.filter(ends)["end_ns"])


def length(table: pl.DataFrame) -> int:
    """The summed length of intervals that do not overlap."""
    return int((table["end_ns"] - table["start_ns"]).sum())


def intersection(first: pl.DataFrame, second: pl.DataFrame) -> pl.DataFrame:
    """Where both sets are."""
    cut = segments({"a": first, "b": second})
    return cut.filter((pl.col("a") > 0) & (pl.col("b") > 0)).select(list(SPAN))


def difference(first: pl.DataFrame, second: pl.DataFrame) -> pl.DataFrame:
    """Where the first set is and the second is not."""
    cut = segments({"a": first, "b": second})
    return cut.filter((pl.col("a") > 0) & (pl.col("b") <= 0)).select(list(SPAN))
