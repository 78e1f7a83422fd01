"""Ops that run on the AI CPU: the reason, and what to use instead."""

from collections.abc import Mapping
from typing import Final

import polars as pl

from jumar.ground.text import Language, Text
from jumar.profiling.columns import (
    COUNT,
    DTYPES,
    LONGEST,
    OUTPUT_DTYPES,
    TOTAL,
    TYPE,
    column,
    largest_first,
)
from jumar.profiling.profile import Profile
from jumar.profiling.views.view import (
    LEVEL_1,
    VIEWS,
    Impossible,
    Options,
    View,
    require_ai_cpu,
)

_WIDE = r"\b(DOUBLE|FLOAT64|COMPLEX64|COMPLEX128)\b"
_GROUP_COLUMNS = ("type", "input_types", "output_types")
_LONG = r"\b(INT64|UINT64|UINT32)\b"

_MASK = Text(
    en="use a mask and torch.where / tf.where with a fixed shape",
    zh="改用掩码和形状固定的 torch.where / tf.where",
)
_PIPELINE = Text(en="move it to the data pipeline on the host", zh="移到 host 侧的数据流水线中")
INSTEAD: Final[Mapping[str, Text]] = {
    "Cast": Text(
        en="create the tensor with the required dtype, so that no cast is needed",
        zh="直接按所需类型创建张量，避免类型转换",
    ),
    "NonZero": _MASK,
    "NonZeroV2": _MASK,
    "Where": Text(
        en="use tf.where with three arguments, whose shape is fixed",
        zh="使用三个参数的 tf.where，其形状固定",
    ),
    "MaskedSelect": Text(
        en="multiply by the mask instead of selecting", zh="用乘以掩码代替按掩码选取"
    ),
    "Unique": _PIPELINE,
    "UniqueV2": _PIPELINE,
    "TopK": Text(
        en="use FLOAT16 or FLOAT input and a smaller k", zh="使用 FLOAT16 或 FLOAT 输入，并减小 k"
    ),
    "Sort": Text(en="use FLOAT16 or FLOAT input", zh="使用 FLOAT16 或 FLOAT 输入"),
    "RandomUniform": Text(
        en="generate the numbers on the host, or use dropout that generates its own mask",
        zh="在 host 侧生成随机数，或使用自行生成掩码的 dropout",
    ),
    "RandomStandardNormal": Text(
        en="generate the numbers in the data pipeline on the host",
        zh="在 host 侧的数据流水线中生成随机数",
    ),
    "GetNext": Text(
        en="nothing: the data queue is read there by design",
        zh="无需替换：读取数据队列本就在此执行",
    ),
}
"""What to use instead of an op that has no AI Core kernel."""

_WIDE_REASON = Text(
    en="dtype: the AI Core does not support double precision or complex numbers",
    zh="数据类型：AI Core 不支持双精度和复数计算",
)
_LONG_REASON = Text(
    en="dtype: few AI Core kernels support 64-bit or unsigned integers",
    zh="数据类型：支持 64 位或无符号整数的 AI Core 算子很少",
)
_NO_DTYPES = Text(en="unknown: the profile has no dtypes", zh="未知：性能数据中没有数据类型")
_NO_KERNEL = Text(
    en="no AI Core kernel for this op with these dtypes and shapes",
    zh="该算子在此数据类型和形状下没有 AI Core 实现",
)
_NARROWER = Text(en="use FLOAT or FLOAT16", zh="改用 FLOAT 或 FLOAT16")
_SHORTER = Text(en="use INT32", zh="改用 INT32")
_OTHERWISE = Text(
    en="use equivalent AI Core ops, or move it to the host",
    zh="用 AI Core 算子等价实现，或移到 host 侧",
)


def ai_cpu(profile: Profile, options: Options) -> pl.DataFrame:
    """AI CPU ops of the network by type and dtype, with the likely reason and a replacement."""
    require_ai_cpu(profile)
    if profile.ops["core"].null_count() == profile.ops.height:
        raise Impossible("the core of each op", LEVEL_1)
    why, instead = _advice(options.language)
    return (
        profile.ops.filter(pl.col("core") == "AI_CPU")
        .group_by(_GROUP_COLUMNS)
        .agg(
            pl.len().alias("count"),
            pl.col("duration_ns").sum().alias("total_ns"),
            pl.col("duration_ns").max().alias("max_ns"),
        )
        .with_columns(why.alias("reason"), instead.alias("use_instead"))
        .pipe(largest_first, "total_ns", *_GROUP_COLUMNS)
    )


def _advice(language: Language) -> tuple[pl.Expr, pl.Expr]:
    """The reason why an op is on the AI CPU, and what to use instead."""

    def text(advice: Text) -> pl.Expr:
        return pl.lit(advice.in_language(language))

    types = pl.col("input_types").fill_null("") + ";" + pl.col("output_types").fill_null("")
    wide, long = types.str.contains(_WIDE), types.str.contains(_LONG)
    reason = (
        pl.when(wide)
        .then(text(_WIDE_REASON))
        .when(long)
        .then(text(_LONG_REASON))
        .when(pl.col("input_types").is_null())
        .then(text(_NO_DTYPES))
        .otherwise(text(_NO_KERNEL))
    )
    general = (
        pl.when(wide)
        .then(text(_NARROWER))
        .when(long)
        .then(text(_SHORTER))
        .otherwise(text(_OTHERWISE))
    )
    replacements = {name: advice.in_language(language) for name, advice in INSTEAD.items()}
    by_type = pl.col("type").replace_strict(replacements, default=None, return_dtype=pl.String)
    return reason, pl.coalesce(pl.when(wide).then(None).otherwise(by_type), general)


VIEWS.add(
    View(
        name="aicpu",
        title=Text(en="AI CPU ops: reason and replacement", zh="AI CPU 算子：原因与替代方法"),
        question=Text(
            en="Why do ops run on the AI CPU, and what could replace them?",
            zh="算子为何落在 AI CPU 上执行，用什么替代？",
        ),
        columns=(
            TYPE,
            DTYPES,
            OUTPUT_DTYPES,
            COUNT,
            TOTAL,
            LONGEST,
            column("reason", "原因"),
            column("use_instead", "替代方法"),
        ),
        compute=ai_cpu,
        order=50,
    )
)
