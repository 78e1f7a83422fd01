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
    swept = (
        pl.concat(edges)
        .lazy()
        .group_by("rank", "start_ns")
        .agg(pl.col(name).sum() for name in sets)
        .sort("rank", "start_ns")
        .with_columns(
            pl.col("start_ns").shift(-1).over("rank").alias("end_ns"),
            *(pl.col(name).cum_sum().over("rank") for name in sets),
        )
    )
    return swept.drop_nulls("end_ns").select("rank", "start_ns", "end_ns", *sets).collect()


def union(table: pl.DataFrame) -> pl.DataFrame:
    """The intervals of a table with those put together that touch or overlap."""
    cut = segments({"set": table}).filter(pl.col("set") > 0)
    new = (pl.col("start_ns") != pl.col("end_ns").shift(1)) | (
        pl.col("rank") != pl.col("rank").shift(1)
    )
    return (
        cut.with_columns(new.fill_null(True).cum_sum().alias("part"))
        .group_by("part", maintain_order=True)
        .agg(pl.col("rank").first(), pl.col("start_ns").min(), pl.col("end_ns").max())
        .drop("part")
    )


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
