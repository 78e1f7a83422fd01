"""Ops that only change dtype or layout."""

from typing import Final

import polars as pl

from jumar.profiling.profile import Profile
from jumar.profiling.views.view import LEVEL_1, Options, milliseconds, require
from jumar.profiling.views.windows import computing

CASTS: Final = ("cast", "to", "_to_copy")
FORMATS: Final = (
    "transdata",
    "transdatarnn",
    "transpose",
    "transposed",
    "transposebatch",
    "contiguous",
    "npu_format_cast",
    "viewcopy",
    "asstrided",
)


def plain_type() -> pl.Expr:
    """The type of an op in lower case, without `aten::`."""
    return pl.col("type").str.to_lowercase().str.strip_prefix("aten::")


def is_cast() -> pl.Expr:
    """Whether an op changes the dtype."""
    return plain_type().is_in(CASTS).fill_null(False)


def is_format_change() -> pl.Expr:
    """Whether an op changes the layout."""
    return plain_type().is_in(FORMATS).fill_null(False)


def cast_share(profile: Profile, _: Options) -> pl.DataFrame:
    """Casts and format changes by type, with their share of the time of all computing ops."""
    ops = require(computing(profile.ops), "types of ops", "type", how=LEVEL_1)
    total = max(int(ops["duration_ns"].sum()), 1)
    what = pl.when(is_cast()).then(pl.lit("cast")).otherwise(pl.lit("format change"))
    return (
        ops.filter(is_cast() | is_format_change())
        .group_by(
            what.alias("what"),
            "type",
            "input_types",
            "output_types",
            "input_formats",
            "output_formats",
        )
        .agg(pl.len().alias("count"), pl.col("duration_ns").sum())
        .sort("duration_ns", "type", "input_formats", descending=[True, False, False])
        .with_columns(
            milliseconds("duration_ns").alias("total_ms"),
            (pl.col("duration_ns") * 100 / total).round(2).alias("share_%"),
        )
        .drop("duration_ns")
    )
