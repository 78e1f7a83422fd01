"""Ops that run on the AI CPU: why, and what to use instead."""

import polars as pl

from jumar.profiling.profile import Profile
from jumar.profiling.views.view import LEVEL_1, Impossible, Options, milliseconds

_WIDE = r"\b(DOUBLE|FLOAT64|COMPLEX64|COMPLEX128)\b"
_LONG = r"\b(INT64|UINT64|UINT32)\b"

INSTEAD = {
    "Cast": "make the tensor in the type that is needed, so that nothing is cast",
    "NonZero": "use a mask and torch.where / tf.where with a fixed shape",
    "NonZeroV2": "use a mask and torch.where / tf.where with a fixed shape",
    "Where": "use tf.where with three arguments, whose shape is fixed",
    "MaskedSelect": "multiply by the mask instead of selecting",
    "Unique": "move it to the data pipeline on the host",
    "UniqueV2": "move it to the data pipeline on the host",
    "TopK": "give FLOAT16 or FLOAT input and a smaller k",
    "Sort": "give FLOAT16 or FLOAT input",
    "RandomUniform": "draw on the host, or use dropout that makes its own mask",
    "RandomStandardNormal": "draw on the host in the data pipeline",
    "GetNext": "nothing: reading the data queue runs there",
}
"""What to use instead of an op that has no AI Core kernel."""


def ai_cpu(profile: Profile, _: Options) -> pl.DataFrame:
    """AI CPU ops of the network by type and dtype, with the likely reason and a replacement."""
    if profile.kind != "npu":
        raise Impossible("a profile of an NPU: only there ops fall back to the AI CPU")
    if profile.ops["core"].null_count() == profile.ops.height:
        raise Impossible("the core of each op", LEVEL_1)
    types = pl.col("input_types").fill_null("") + ";" + pl.col("output_types").fill_null("")
    wide, long = types.str.contains(_WIDE), types.str.contains(_LONG)
    reason = (
        pl.when(wide)
        .then(pl.lit("dtype: the AI Core computes no doubles or complex numbers"))
        .when(long)
        .then(pl.lit("dtype: few AI Core kernels take 64-bit or unsigned integers"))
        .when(pl.col("input_types").is_null())
        .then(pl.lit("unknown: the profile holds no dtypes"))
        .otherwise(pl.lit("no AI Core kernel for this op with these dtypes and shapes"))
    )
    general = (
        pl.when(wide)
        .then(pl.lit("use FLOAT or FLOAT16"))
        .when(long)
        .then(pl.lit("use INT32"))
        .otherwise(pl.lit("express it by ops of the AI Core, or move it to the host"))
    )
    instead = pl.col("type").replace_strict(INSTEAD, default=None, return_dtype=pl.String)
    by_type = pl.when(wide).then(None).otherwise(instead)
    found = profile.ops.filter(pl.col("core") == "AI_CPU")
    return (
        found.group_by("type", "input_types", "output_types")
        .agg(
            pl.len().alias("count"),
            milliseconds(pl.col("duration_ns").sum()).alias("total_ms"),
            milliseconds(pl.col("duration_ns").max()).alias("max_ms"),
        )
        .with_columns(reason.alias("reason"), pl.coalesce(by_type, general).alias("use_instead"))
        .sort("total_ms", "type", "input_types", descending=[True, False, False])
    )
