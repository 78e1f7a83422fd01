"""Whether the cores ran at their full clock."""

import polars as pl

from jumar.ground.text import Text
from jumar.profiling.columns import RANK, column, milliseconds, ms
from jumar.profiling.profile import Profile, once
from jumar.profiling.views.view import VIEWS, Impossible, Options, View
from jumar.profiling.views.windows import computing_spans

MIN_DROP = 0.05
"""Smaller drops of the clock are counter noise."""

_CYCLES = (
    ("AI_CORE", "aic_total_cycles", "aicore_time(us)", 24),
    ("AI_VECTOR_CORE", "aiv_total_cycles", "aiv_time(us)", 48),
)
"""Cores, the columns of their cycles and time, and how many blocks surely run at once."""

_PLAUSIBLE_MHZ = (100, 4000)


@once
def clocks(profile: Profile) -> pl.DataFrame:
    """The clock over time: `rank`, `time_ns`, `mhz`, from the counter or from cycles of ops.

    For an op it is the total cycles divided by time and number of cores. It is computed only for
    ops above 20 us, since times have three decimal places, and for ops whose blocks all run at
    once, since the cycles of others come from several rounds or two kinds of cores.
    """
    recorded = profile.statistics.get("frequency")
    if recorded is not None and {"time_ns", "mhz"} <= set(recorded.columns) and recorded.height:
        rank = pl.col("rank") if "rank" in recorded.columns else pl.lit(0)
        counter = recorded.select(
            rank.cast(pl.Int32).fill_null(0).alias("rank"),
            pl.col("time_ns"),
            pl.col("mhz").cast(pl.Float64),
        )
        return counter.drop_nulls().sort("rank", "time_ns", maintain_order=True)
    parts: list[pl.DataFrame] = []
    for core, cycles, time, max_blocks in _CYCLES:
        if {cycles, time} <= set(profile.ops.columns):
            mhz = pl.col(cycles) / (pl.col(time) * pl.col("block_num"))
            parts.append(
                profile.ops.lazy()
                .filter(
                    (pl.col(time) > 20)
                    & (pl.col("core") == core)
                    & pl.col("block_num").is_between(1, max_blocks)
                )
                .select(
                    pl.col("rank").fill_null(0),
                    pl.col("start_ns").alias("time_ns"),
                    mhz.alias("mhz"),
                )
                .collect()
            )
    measured = pl.concat(parts) if parts else pl.DataFrame()
    if measured.is_empty():
        raise Impossible(
            "the counter of the AI Core frequency, or cycles of ops",
            "record with aic_metrics=PipeUtilization",
        )
    plausible = measured.drop_nulls().filter(pl.col("mhz").is_between(*_PLAUSIBLE_MHZ))
    return plausible.sort("rank", "time_ns", maintain_order=True)


def frequency(profile: Profile, _: Options) -> pl.DataFrame:
    """One row per rank: the clock, how long it was low, and the cost.

    The full clock is the rank's 95th percentile, so that it does not depend on outliers. An op's
    cost is proportional to how far the clock at its start was below the full clock.
    """
    readings = clocks(profile)
    full = readings.group_by("rank").agg(pl.col("mhz").quantile(0.95).alias("full_mhz"))
    # The counter is recorded only when it changes, so the last value before an op applies.
    ops = (
        computing_spans(profile)
        .select("rank", "start_ns", (pl.col("end_ns") - pl.col("start_ns")).alias("duration_ns"))
        .sort("start_ns")
        .join_asof(
            readings.sort("time_ns", maintain_order=True),
            left_on="start_ns",
            right_on="time_ns",
            by="rank",
            strategy="backward",
            check_sortedness=False,
        )
        .join(full, on="rank")
        .with_columns(pl.col("mhz").fill_null(pl.col("full_mhz")))
    )
    low = pl.col("mhz") < pl.col("full_mhz") * (1 - MIN_DROP)
    lost = pl.col("duration_ns") * (1 - pl.col("mhz") / pl.col("full_mhz"))
    return (
        ops.group_by("rank")
        .agg(
            pl.col("full_mhz").first().round(1),
            pl.col("mhz").min().round(1).alias("lowest_mhz"),
            (pl.col("mhz") * pl.col("duration_ns")).cast(pl.Int64).sum().alias("weighted"),
            milliseconds(pl.col("duration_ns").sum()).alias("computing_ms"),
            milliseconds(pl.col("duration_ns").filter(low).sum()).alias("low_ms"),
            milliseconds(lost.cast(pl.Int64).filter(low).sum()).alias("cost_ms"),
        )
        .with_columns(
            (pl.col("weighted") / 1e6 / pl.col("computing_ms")).round(1).alias("mean_mhz")
        )
        .sort("rank")
    )


VIEWS.add(
    View(
        name="frequency",
        title=Text(en="Clock of the cores", zh="计算核频率"),
        question=Text(
            en="Did the cores run below their full clock, and what did that cost?",
            zh="计算核是否降频，代价是多少？",
        ),
        columns=(
            RANK,
            column("full_mhz", "满频", unit="MHz"),
            column("lowest_mhz", "最低频率", unit="MHz"),
            ms("computing", "计算"),
            ms("low", "降频时长", "at a low clock"),
            ms("cost", "降频代价"),
            column("mean_mhz", "平均频率", unit="MHz"),
        ),
        compute=frequency,
        order=90,
        ranking=False,
    )
)
