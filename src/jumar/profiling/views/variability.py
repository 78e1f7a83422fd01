"""Steps and ops whose times vary."""

import polars as pl

from jumar.ground.text import Text
from jumar.profiling.columns import (
    COUNT,
    DTYPES,
    LONGEST,
    P50,
    P95,
    RANK,
    SHAPES,
    STEP,
    TYPE,
    VERDICT,
    largest_first,
    milliseconds,
    ms,
)
from jumar.profiling.profile import Profile
from jumar.profiling.views.view import VIEWS, Impossible, Options, View, require
from jumar.profiling.views.windows import computing, steady, step_windows


def step_variability(profile: Profile, _: Options) -> pl.DataFrame:
    """One row per step: its time, whether it is warm-up, and whether it is an outlier.

    A step lasts from the end of the previous one to its own end, so that waiting for data counts.
    Outliers exceed the median by three robust standard deviations and by at least 5 %.
    """
    windows = step_windows(profile)
    if windows.group_by("rank").len()["len"].max() in (None, 1):
        raise Impossible("more than one step", "record several steps (active=3 or more)")
    steady_steps = steady(windows).select(
        "rank", "step", "begin_ns", pl.lit(False).alias("warm_up")
    )
    step_time = pl.col("end_ns") - pl.col("begin_ns")
    table = windows.join(steady_steps, on=["rank", "step", "begin_ns"], how="left").with_columns(
        step_time.alias("lasted_ns"), pl.col("warm_up").fill_null(True)
    )
    steady_time = pl.col("lasted_ns").filter(~pl.col("warm_up"))
    median = steady_time.median().over("rank")
    spread = (steady_time - steady_time.median()).abs().median().over("rank") * 1.4826
    limit = pl.max_horizontal(median + 3 * spread, median * 1.05)
    outlier = ~pl.col("warm_up") & (pl.col("lasted_ns") > limit)
    return table.sort("rank", "begin_ns").select(
        "rank",
        "step",
        milliseconds("lasted_ns").alias("step_ms"),
        pl.when(pl.col("warm_up"))
        .then(pl.lit("warm-up"))
        .when(outlier)
        .then(pl.lit("outlier"))
        .otherwise(pl.lit(""))
        .alias("verdict"),
        *(
            milliseconds(steady_time.quantile(quantile, interpolation="lower").over("rank")).alias(
                name
            )
            for name, quantile in (("p50_ms", 0.5), ("p95_ms", 0.95), ("max_ms", 1.0))
        ),
    )


_COLUMNS = ("rank", "step", "name", "type", "core", "input_shapes", "input_types", "duration_ns")
"""The columns in use; filtering all fifty, for a million ops, would take most of a gigabyte."""


def op_variability(profile: Profile, _: Options) -> pl.DataFrame:
    """Ops by type and shape, ranked by total time above their median."""
    ops = require(computing(profile.ops.select(_COLUMNS)), "ops with durations", "duration_ns")
    windows = steady(step_windows(profile))
    if windows.height and ops["step"].null_count() < ops.height:
        ops = ops.with_columns(pl.col("rank").fill_null(0)).join(
            windows.select("rank", "step"), on=["rank", "step"], how="semi"
        )
    time = pl.col("duration_ns")
    above = (time - time.median()).clip(lower_bound=0)
    return (
        ops.lazy()
        .group_by("type", "input_shapes", "input_types")
        .agg(
            pl.len().alias("count"),
            *(
                milliseconds(time.quantile(quantile, interpolation="lower")).alias(name)
                for name, quantile in (("p50_ms", 0.5), ("p95_ms", 0.95), ("max_ms", 1.0))
            ),
            milliseconds(above.sum()).alias("above_median_ms"),
        )
        .filter(pl.col("count") > 1)
        .pipe(largest_first, "above_median_ms", "type", "input_shapes", "input_types")
        .collect()
    )


VIEWS.add(
    View(
        name="variability",
        title=Text(
            en="Steps: median, p95, outliers, warm-up", zh="迭代耗时：中位数、95 分位、离群与预热"
        ),
        question=Text(
            en="Do all steps take equally long, and which do not?",
            zh="各迭代耗时是否稳定，哪些异常？",
        ),
        columns=(RANK, STEP, ms("step", "迭代耗时"), VERDICT, P50, P95, LONGEST),
        compute=step_variability,
        order=160,
        ranking=False,
    ),
    View(
        name="op-variability",
        title=Text(en="Ops by time above their median", zh="算子按超出中位数的耗时排序"),
        question=Text(
            en="Which ops lose time because their duration varies?",
            zh="哪些算子因耗时波动而损失时间？",
        ),
        columns=(
            TYPE,
            COUNT,
            P50,
            P95,
            LONGEST,
            ms("above_median", "超出中位数"),
            SHAPES,
            DTYPES,
        ),
        compute=op_variability,
        order=161,
    ),
)
