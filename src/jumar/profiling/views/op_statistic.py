"""Total time by op type and core, as in msprof's `op_statistic`."""

import polars as pl

from jumar.profiling.columns import largest_first
from jumar.profiling.profile import Profile
from jumar.profiling.views.windows import communicates


def op_statistic(profile: Profile) -> pl.DataFrame:
    """One row per op type and core: count; total, min, average, max in ns; share in percent.

    Collectives are excluded, as in msprof; averages are rounded down to the nanosecond.
    """
    # Lazy, so that only the needed columns are filtered.
    ops = profile.ops.lazy().filter(
        ~communicates(profile.ops) & pl.col("duration_ns").is_not_null()
    )
    total = pl.col("total_ns").sum().clip(lower_bound=1)
    return (
        ops.group_by("type", "core")
        .agg(
            pl.len().alias("count"),
            pl.col("duration_ns").sum().alias("total_ns"),
            pl.col("duration_ns").min().alias("min_ns"),
            (pl.col("duration_ns").sum() // pl.len()).alias("average_ns"),
            pl.col("duration_ns").max().alias("max_ns"),
        )
        .with_columns((pl.col("total_ns") * 100 / total).alias("ratio_percent"))
        .pipe(largest_first, "total_ns", "type", "core")
        .collect()
    )
