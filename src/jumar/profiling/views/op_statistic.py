"""Total time by op type and core, as `op_statistic` of msprof has it."""

import polars as pl

from jumar.profiling.profile import Profile
from jumar.profiling.views.windows import is_communication


def op_statistic(profile: Profile) -> pl.DataFrame:
    """A row an op type and core: count, total, min, average, max in nanoseconds, share in percent.

    Collectives are left out, as msprof does; the average is rounded down to the nanosecond.
    """
    ops = profile.ops.filter(~is_communication() & pl.col("duration_ns").is_not_null())
    total = ops["duration_ns"].sum()
    return (
        ops.lazy()
        .group_by("type", "core")
        .agg(
            pl.len().alias("count"),
            pl.col("duration_ns").sum().alias("total_ns"),
            pl.col("duration_ns").min().alias("min_ns"),
            (pl.col("duration_ns").sum() // pl.len()).alias("average_ns"),
            pl.col("duration_ns").max().alias("max_ns"),
        )
        .with_columns((pl.col("total_ns") * 100 / max(total, 1)).alias("ratio_percent"))
        .sort("total_ns", "type", "core", descending=[True, False, False])
        .collect()
    )
