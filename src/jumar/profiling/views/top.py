"""The largest first: ops, types, AI CPU ops, and groups by what ops have in common."""

import polars as pl

from jumar.profiling.profile import Profile
from jumar.profiling.views.op_statistic import op_statistic
from jumar.profiling.views.view import LEVEL_1, Impossible, Options, milliseconds, require

GROUPS = {
    "core": ("core",),
    "shape": ("type", "input_shapes"),
    "dtype": ("type", "input_types"),
    "module": ("module",),
}
"""What `by-...` groups by."""


def _cumulated(table: pl.DataFrame, column: str) -> pl.DataFrame:
    total = max(float(table[column].sum()), 1e-12)
    share = pl.col(column) * 100 / total
    return table.with_columns(
        share.round(2).alias("share_%"), share.cum_sum().round(2).alias("cumulative_%")
    )


def ops_by_duration(profile: Profile, options: Options) -> pl.DataFrame:
    """Single ops by their duration, with their share of the time of all ops."""
    ops = require(profile.ops, "ops with durations", "duration_ns")
    total = max(int(ops["duration_ns"].sum()), 1)
    # Only what is shown is sorted: a million rows need no full sort for the first ten.
    found = ops
    if options.top:
        first = ops.select("duration_ns").with_row_index().top_k(options.top, by="duration_ns")
        found = ops[first["index"]]
    found = found.sort("duration_ns", "start_ns", descending=[True, False])
    share = pl.col("duration_ns") * 100 / total
    return found.select(
        "rank",
        "step",
        "name",
        "type",
        "core",
        milliseconds("duration_ns").alias("duration_ms"),
        share.round(2).alias("share_%"),
        share.cum_sum().round(2).alias("cumulative_%"),
        "input_shapes",
        "input_types",
        "module",
    )


def types_by_total(profile: Profile, _: Options) -> pl.DataFrame:
    """Op types by their total time, as in op_statistic."""
    require(profile.ops, "ops with types", "type", "duration_ns", how=LEVEL_1)
    table = op_statistic(profile)
    return _cumulated(
        table.select(
            "type",
            "core",
            "count",
            *(milliseconds(f"{name}_ns").alias(f"{name}_ms") for name in ("total", "min", "max")),
            milliseconds("average_ns").alias("average_ms"),
        ),
        "total_ms",
    )


def ai_cpu_by_compute_time(profile: Profile, _: Options) -> pl.DataFrame:
    """AI CPU work by compute time: the table of the producer, else the AI CPU ops of the table."""
    given = profile.statistics.get("aicpu")
    if given is not None and {"node", "compute_time_ns"} <= set(given.columns):
        table = (
            given.group_by("node")
            .agg(
                pl.len().alias("count"),
                milliseconds(pl.col("compute_time_ns").sum()).alias("compute_ms"),
            )
            .sort("compute_ms", "node", descending=[True, False])
        )
        return _cumulated(table, "compute_ms")
    if profile.ops["core"].null_count() == profile.ops.height:
        raise Impossible("the core of each op, or an aicpu table", LEVEL_1)
    table = (
        profile.ops.filter(pl.col("core") == "AI_CPU")
        .group_by(pl.col("type").alias("node"), "input_types")
        .agg(
            pl.len().alias("count"),
            milliseconds(pl.col("duration_ns").sum()).alias("compute_ms"),
        )
        .sort("compute_ms", "node", descending=[True, False])
    )
    return _cumulated(table, "compute_ms")


def grouped(profile: Profile, by: str) -> pl.DataFrame:
    """Ops put together by core, shape, dtype or module, the largest group first."""
    columns = GROUPS[by]
    how = "record by `jumar profile`, which notes the layer" if by == "module" else LEVEL_1
    ops = require(profile.ops, f"ops with their {by}", columns[-1], how=how)
    table = (
        ops.lazy()
        .group_by(list(columns))
        .agg(
            pl.len().alias("count"),
            milliseconds(pl.col("duration_ns").sum()).alias("total_ms"),
            milliseconds(pl.col("duration_ns").mean()).alias("average_ms"),
        )
        .sort("total_ms", *columns, descending=[True] + [False] * len(columns))
        .collect()
    )
    return _cumulated(table, "total_ms")
