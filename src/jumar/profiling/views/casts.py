"""Ops that only change dtype or layout."""

from typing import Final

import polars as pl

from jumar.ground.text import Text
from jumar.profiling.columns import (
    COUNT,
    DTYPES,
    INPUT_FORMATS,
    OUTPUT_DTYPES,
    OUTPUT_FORMATS,
    SHARE,
    TOTAL,
    TYPE,
    column,
    largest_first,
)
from jumar.profiling.profile import COMMUNICATION, Profile
from jumar.profiling.views.kinds import kinds
from jumar.profiling.views.view import LEVEL_1, VIEWS, Options, View, require
from jumar.profiling.views.windows import MEMORY_COPIES, computes

CASTS: Final = ("cast", "to", "_to_copy")
COPIES: Final = ("copy_",)
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

_GROUP_COLUMNS: Final = ("type", "input_types", "output_types", "input_formats", "output_formats")


def _of_types(ops: pl.DataFrame, lower_types: tuple[str, ...]) -> pl.Expr:
    """Whether an op has one of the types; checked once per type, not per op."""
    kinds = [str(kind) for kind in ops["type"].drop_nulls().unique()]
    chosen = [kind for kind in kinds if kind.lower().removeprefix("aten::") in lower_types]
    return pl.col("type").is_in(chosen).fill_null(False)


def is_cast(ops: pl.DataFrame) -> pl.Expr:
    """Whether an op changes the dtype.

    On CPU and CUDA, PyTorch casts by `aten::copy_` from its second tensor to the first, which is a
    cast only if their dtypes differ.
    """
    types = [str(text) for text in ops["input_types"].drop_nulls().unique()]
    differing = [text for text in types if _copies_between_types(text)]
    copies = _of_types(ops, COPIES) & pl.col("input_types").is_in(differing).fill_null(False)
    return _of_types(ops, CASTS) | copies


def _copies_between_types(text: str) -> bool:
    target, _, other_types = text.partition(";")
    source = other_types.partition(";")[0]
    return bool(target and source) and target != source


def is_format_change(ops: pl.DataFrame) -> pl.Expr:
    """Whether an op changes the layout."""
    return _of_types(ops, FORMATS)


def cast_share(profile: Profile, _: Options) -> pl.DataFrame:
    """Casts and format changes by type, with their share of compute time."""
    ops = require(profile.ops, "types of ops", "type", how=LEVEL_1)
    total = ops.lazy().filter(computes(ops)).select(pl.col("duration_ns").sum()).collect().item()
    # Exclude collectives and copies, whatever their names.
    ops = kinds(profile).table.filter(
        ~pl.col("core").is_in([COMMUNICATION, *MEMORY_COPIES]).fill_null(False)
    )
    what = pl.when(is_cast(ops)).then(pl.lit("cast")).otherwise(pl.lit("format change"))
    return (
        ops.filter(is_cast(ops) | is_format_change(ops))
        .group_by(what.alias("what"), *_GROUP_COLUMNS)
        .agg(pl.col("count").sum(), pl.col("total_ns").sum())
        .pipe(largest_first, "total_ns", "what", *_GROUP_COLUMNS)
        .with_columns(
            (pl.col("total_ns") * 100 / max(int(total or 0), 1)).round(2).alias("share_%")
        )
    )


VIEWS.add(
    View(
        name="casts",
        title=Text(en="Casts and format changes", zh="数据类型转换与格式转换"),
        question=Text(
            en="How much compute time is spent only on changing dtypes and layouts?",
            zh="有多少计算时间只用于转换数据类型和格式？",
        ),
        columns=(
            column("what", "种类", "kind"),
            TYPE,
            DTYPES,
            OUTPUT_DTYPES,
            INPUT_FORMATS,
            OUTPUT_FORMATS,
            COUNT,
            TOTAL,
            SHARE,
        ),
        compute=cast_share,
        order=70,
    )
)
