"""Rankings of ops, op types, AI CPU ops, and groups of ops."""

from collections.abc import Mapping
from functools import partial
from math import fsum

import polars as pl

from jumar.ground.text import Text
from jumar.profiling.columns import (
    AVERAGE,
    CORE,
    COUNT,
    CUMULATIVE,
    DTYPES,
    LONGEST,
    MODULE,
    NAME,
    RANK,
    SHAPES,
    SHARE,
    STEP,
    TOTAL,
    TYPE,
    Column,
    column,
    largest_first,
    milliseconds,
    ms,
)
from jumar.profiling.profile import Profile
from jumar.profiling.views.op_statistic import op_statistic
from jumar.profiling.views.view import (
    LEVEL_1,
    VIEWS,
    Impossible,
    Options,
    View,
    require,
    require_ai_cpu,
)

_GROUPS: Mapping[str, tuple[tuple[Column, ...], Text]] = {
    "core": ((CORE,), Text(en="Ops by core", zh="按计算核统计算子")),
    "shape": (
        (TYPE, SHAPES),
        Text(en="Ops by type and input shapes", zh="按类型和输入形状统计算子"),
    ),
    "dtype": (
        (TYPE, DTYPES),
        Text(en="Ops by type and input dtypes", zh="按类型和输入数据类型统计算子"),
    ),
    "module": ((MODULE,), Text(en="Ops by module", zh="按网络层统计算子")),
}
"""The columns by which each view `by-...` groups, and its title."""


def _with_shares(table: pl.DataFrame, time: str) -> pl.DataFrame:
    # Polars sums floats in an order that depends on its threads.
    return table.with_columns(_shares(time, max(fsum(table[time]), 1e-12)))


def _shares(time: str, total: float) -> tuple[pl.Expr, pl.Expr]:
    share = pl.col(time) * 100 / total
    return share.round(2).alias("share_%"), share.cum_sum().round(2).alias("cumulative_%")


def ops_by_duration(profile: Profile, options: Options) -> pl.DataFrame:
    """Single ops by duration, with their share of the time of all ops."""
    ops = require(profile.ops, "ops with durations", "duration_ns")
    total = max(int(ops["duration_ns"].sum()), 1)
    # Sort only the rows to display: the top ten of a million rows need no full sort.
    keys = ops.select("duration_ns", "start_ns", "rank").with_row_index()
    if options.top:
        shortest = keys["duration_ns"].top_k(options.top).min()
        keys = keys.filter((pl.col("duration_ns") >= shortest).fill_null(ops.height <= options.top))
    order = ("duration_ns", "start_ns", "rank", "index")
    keys = keys.sort(order, descending=[True, False, False, False], nulls_last=True)
    ops = ops[keys["index"].head(options.top or ops.height)]
    return ops.with_columns(_shares("duration_ns", total))


def types_by_total(profile: Profile, _: Options) -> pl.DataFrame:
    """Op types by their total time, as in op_statistic."""
    require(profile.ops, "ops with types", "type", "duration_ns", how=LEVEL_1)
    table = op_statistic(profile).with_columns(milliseconds("total_ns").alias("total_ms"))
    return _with_shares(table, "total_ms")


def ai_cpu_by_compute_time(profile: Profile, _: Options) -> pl.DataFrame:
    """AI CPU ops by compute time, from the producer's table or else from the op table."""
    require_ai_cpu(profile)
    ops, key, time = profile.statistics.get("aicpu"), ["node"], "compute_time_ns"
    if ops is None or not {"node", "compute_time_ns"} <= set(ops.columns):
        if profile.ops["core"].null_count() == profile.ops.height:
            raise Impossible("the core of each op, or an aicpu table", LEVEL_1)
        columns = (pl.col("type").alias("node"), "input_types", "duration_ns")
        ops = profile.ops.filter(pl.col("core") == "AI_CPU").select(columns)
        key, time = ["node", "input_types"], "duration_ns"
    compute_time = milliseconds(pl.col(time).sum()).alias("compute_ms")
    table = ops.group_by(key).agg(pl.len().alias("count"), compute_time)
    return _with_shares(largest_first(table, "compute_ms", *key), "compute_ms")


def grouped(by: str, profile: Profile, _: Options) -> pl.DataFrame:
    """Ops grouped by core, shape, dtype or module, the largest group first."""
    columns = [column.name for column in _GROUPS[by][0]]
    how = "record with `jumar profile`, which records layers" if by == "module" else LEVEL_1
    ops = require(profile.ops, f"ops with their {by}", columns[-1], how=how)
    table = (
        ops.lazy()
        .group_by(columns)
        .agg(
            pl.len().alias("count"),
            milliseconds(pl.col("duration_ns").sum()).alias("total_ms"),
            milliseconds(pl.col("duration_ns").mean()).alias("average_ms"),
        )
        .pipe(largest_first, "total_ms", *columns)
        .collect()
    )
    return _with_shares(table, "total_ms")


VIEWS.add(
    View(
        name="types",
        title=Text(
            en="Op types by total time (op_statistic)", zh="算子类型按总耗时排序（op_statistic）"
        ),
        question=Text(en="Which op types take the most time?", zh="哪些类型的算子总耗时最长？"),
        columns=(
            TYPE,
            CORE,
            COUNT,
            TOTAL,
            ms("min", "最小耗时", "shortest"),
            LONGEST,
            AVERAGE,
            SHARE,
            CUMULATIVE,
        ),
        compute=types_by_total,
        order=20,
        usual=True,
    ),
    View(
        name="ops",
        title=Text(en="Ops by duration (op_summary)", zh="算子按单次耗时排序（op_summary）"),
        question=Text(en="Which single ops take the longest?", zh="哪些算子单次执行耗时最长？"),
        columns=(
            RANK,
            STEP,
            NAME,
            TYPE,
            CORE,
            ms("duration", "耗时"),
            SHARE,
            CUMULATIVE,
            SHAPES,
            DTYPES,
            MODULE,
        ),
        compute=ops_by_duration,
        order=30,
        usual=True,
    ),
    View(
        name="aicpu-time",
        title=Text(en="AI CPU ops by compute time", zh="AI CPU 算子按计算耗时排序"),
        question=Text(
            en="Which ops take the most time on the AI CPU?", zh="哪些算子在 AI CPU 上耗时最长？"
        ),
        columns=(
            column("node", "节点"),
            DTYPES,
            COUNT,
            ms("compute", "计算耗时"),
            SHARE,
            CUMULATIVE,
        ),
        compute=ai_cpu_by_compute_time,
        order=40,
        usual=True,
        only_on="npu",
    ),
)
for _number, (_by, (_columns, _title)) in enumerate(_GROUPS.items()):
    VIEWS.add(
        View(
            name=f"by-{_by}",
            title=_title,
            question=Text(
                en="How much time does each group of ops take?",
                zh="具有相同属性的算子合计耗时多少？",
            ),
            columns=(*_columns, COUNT, TOTAL, AVERAGE, SHARE, CUMULATIVE),
            compute=partial(grouped, _by),
            order=60 + _number,
        )
    )
