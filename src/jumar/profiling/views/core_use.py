"""Ops that leave cores unused, and ops with dynamic shapes."""

import polars as pl

from jumar.ground.text import Text
from jumar.profiling.columns import (
    CORE,
    COUNT,
    SHAPES,
    TOTAL,
    TYPE,
    column,
    largest_first,
    milliseconds,
    ms,
    percent,
)
from jumar.profiling.profile import Profile
from jumar.profiling.views.chips import chip_of
from jumar.profiling.views.view import LEVEL_1, VIEWS, Impossible, Options, View, require

_GROUP_COLUMNS = ("type", "core", "input_shapes", "block_num")
_CUBE = ("AI_CORE", "MIX_AIC", "CUDA")
_VECTOR = ("AI_VECTOR_CORE", "MIX_AIV")


def core_use(profile: Profile, options: Options) -> pl.DataFrame:
    """Ops that leave cores unused, sorted by the time lost.

    The number of cores comes from the chip table. For unknown chips it is the largest number of
    blocks of any op, which may exceed the number of cores.
    """
    if profile.kind == "cpu":
        raise Impossible("ops on an NPU or GPU")
    ops = require(profile.ops, "the number of blocks of each op", "block_num", "core", how=LEVEL_1)
    has_blocks = pl.col("block_num") > 0
    chip = chip_of(profile, options.chip)
    max_blocks = {
        str(core): int(blocks)
        for core, blocks in ops.group_by("core").agg(pl.col("block_num").max()).iter_rows()
        if core is not None and blocks
    }
    chip_cores: dict[str, int] = {}
    if chip is not None:
        chip_cores = dict.fromkeys(_CUBE, chip.cube_cores)
        chip_cores |= dict.fromkeys(_VECTOR, chip.vector_cores)
    cores = {core: chip_cores.get(core) or blocks for core, blocks in max_blocks.items()}
    core_count = pl.col("core").replace_strict(cores, default=None, return_dtype=pl.Int64)
    use = pl.min_horizontal(pl.col("block_num") / pl.col("cores"), pl.lit(1.0))
    return (
        ops.lazy()
        .select(*_GROUP_COLUMNS, "duration_ns", core_count.alias("cores"))
        .filter(has_blocks & pl.col("core").is_in(list(cores)) & (pl.col("core") != "AI_CPU"))
        .with_columns((use * 100).round(1).alias("use_%"))
        .filter(pl.col("use_%") < 100)
        .group_by(*_GROUP_COLUMNS, "cores", "use_%")
        .agg(pl.len().alias("count"), pl.col("duration_ns").sum().alias("total_ns"))
        .with_columns(
            milliseconds(pl.col("total_ns") * (1 - pl.col("use_%") / 100)).alias("idle_ms")
        )
        .pipe(largest_first, "idle_ms", *_GROUP_COLUMNS)
        .collect()
    )


def dynamic_shapes(profile: Profile, _: Options) -> pl.DataFrame:
    """Time of ops by type and by state: compiled for static shapes or not.

    Ops in the state `dynamic` compute their tiling on the host at each launch.
    """
    ops = require(profile.ops, "the state of each op (OP State)", "state", how=LEVEL_1)
    shapes = pl.col("input_shapes").n_unique().alias("different_shapes")
    return (
        ops.lazy()
        .filter(pl.col("state").is_not_null())
        .group_by("state", "type")
        .agg(pl.len().alias("count"), pl.col("duration_ns").sum(), shapes)
        .with_columns(milliseconds("duration_ns").alias("total_ms"))
        .pipe(largest_first, "total_ms", "type", "state")
        .collect()
    )


VIEWS.add(
    View(
        name="cores",
        title=Text(en="Ops that leave cores unused", zh="未用满计算核的算子"),
        question=Text(
            en="Which ops use only some of the cores, and what does that cost?",
            zh="哪些算子只用了部分计算核，代价是多少？",
        ),
        columns=(
            TYPE,
            CORE,
            COUNT,
            TOTAL,
            column("block_num", "block 数", "blocks"),
            column("cores", "核数"),
            percent("use", "核利用率"),
            ms("idle", "空闲核折算耗时", "lost to idle cores"),
            SHAPES,
        ),
        compute=core_use,
        order=80,
        uses_rates=True,
    ),
    View(
        name="dynamic",
        title=Text(
            en="Ops by state: dynamic or static shapes", zh="按状态统计算子：动态或静态形状"
        ),
        question=Text(
            en="How much time is spent in ops that were not compiled for static shapes?",
            zh="未按固定形状编译的算子占用了多少时间？",
        ),
        columns=(
            column("state", "状态"),
            TYPE,
            COUNT,
            column("different_shapes", "不同形状数"),
            TOTAL,
        ),
        compute=dynamic_shapes,
        order=81,
    ),
)
