"""The tables of a comparison, for the terminal and the page."""

from collections.abc import Iterator, Sequence
from typing import Final

import polars as pl

from jumar.ground.text import Language, Text
from jumar.profiling.columns import (
    MODULE,
    TYPE,
    column,
    largest_first,
    ms,
)
from jumar.profiling.comparison.chains import chains_per_step
from jumar.profiling.comparison.mixlist import Edit
from jumar.profiling.comparison.parts import PART_TITLES, Comparison
from jumar.profiling.listing import Listing
from jumar.profiling.showing import short_types
from jumar.profiling.views.chains import CHAIN_COLUMNS, CHAINS_TITLE
from jumar.profiling.views.view import Options

_TIMES: Final = (
    column("before", "之前", unit="ms"),
    column("after", "之后", unit="ms"),
    column("change", "变化", unit="ms"),
)
_DTYPES: Final = (
    column("dtypes before", "之前的数据类型"),
    column("dtypes after", "之后的数据类型"),
)
_COUNTS: Final = (column("count before", "之前次数"), column("count after", "之后次数"))
_PART: Final = column("part", "组成部分")


def tables(comparison: Comparison, options: Options, *, chains: bool = True) -> Iterator[Listing]:
    """Parts, ops, tables for a pair of precision modes, and chains, in milliseconds per step.

    Args:
        comparison: The comparison.
        options: Number of rows of each table, and the language.
        chains: Whether to include conversions that cancel out in the second profile.
    """
    yield _parts(comparison, options)
    changed = comparison.changes.filter(pl.col("delta_ns") != 0)
    yield Listing(
        title=Text(en="Ops by change (ms per step)", zh="算子按变化排序（每迭代 ms）"),
        columns=(_PART, TYPE, MODULE, column("shapes", "形状"), *_DTYPES, *_COUNTS, *_TIMES),
        table=_changes(_top_rows(changed, options), comparison.steps, options),
        note=_left_out(changed.height - options.top) if options.top else None,
    )
    if comparison.changes_dtypes:
        yield from _precision(comparison, options)
    if chains and (table := chains_per_step(comparison.after)).height:
        yield Listing(
            title=Text(
                en=f"{CHAINS_TITLE.en}, second profile (ms per step)",
                zh=f"第二份性能数据中{CHAINS_TITLE.zh}（每迭代 ms）",
            ),
            columns=CHAIN_COLUMNS,
            table=_top_rows(table, options),
        )


def _top_rows(table: pl.DataFrame, options: Options) -> pl.DataFrame:
    return table.head(options.top) if options.top else table


def _left_out(count: int) -> Text | None:
    if count <= 0:
        return None
    return Text(
        en=f"{count:,} groups with smaller changes are not shown.",
        zh=f"此处省略变化较小的 {count:,} 组。",
    )


_DISPLAY_NAMES: Final = {
    "before": "dtypes before",
    "after": "dtypes after",
    "before_ns": "before",
    "after_ns": "after",
    "delta_ns": "change",
    "faster_ns": "faster",
    "slower_ns": "slower",
    "before_count": "count before",
    "after_count": "count after",
}
"""Names of columns that are displayed per step, not summed over all compared steps."""


def _per_step(table: pl.DataFrame, steps: int) -> pl.DataFrame:
    """Averages per step from sums over all compared steps; times in milliseconds."""
    return table.with_columns(
        pl.col("^.*_count$") / steps, (pl.col("^.*_ns$") / steps / 1e6).round(3)
    ).rename(_DISPLAY_NAMES, strict=False)


def _parts(comparison: Comparison, options: Options) -> Listing:
    names = ("before_ns", "after_ns", "delta_ns", "faster_ns", "slower_ns")
    rows: list[tuple[object, ...]] = [
        (
            PART_TITLES[part.name].in_language(options.language),
            *(getattr(part, name) for name in names),
        )
        for part in comparison.parts
    ]
    total_title = Text(en="total", zh="合计").in_language(options.language)
    rows.append(
        (total_title, comparison.before_ns, comparison.after_ns, comparison.delta_ns, None, None)
    )
    schema = {"part": pl.String(), **dict.fromkeys(names, pl.Int64())}
    return Listing(
        title=Text(
            en="Where the difference comes from (ms per step)", zh="差异的来源（每迭代 ms）"
        ),
        columns=(
            _PART,
            *_TIMES,
            column("faster", "变快", unit="ms"),
            column("slower", "变慢", unit="ms"),
        ),
        table=_per_step(pl.DataFrame(rows, schema=schema, orient="row"), comparison.steps),
    )


def _changes(changes: pl.DataFrame, steps: int, options: Options) -> pl.DataFrame:
    titles = {str(name): title.in_language(options.language) for name, title in PART_TITLES.items()}
    table = changes.with_columns(
        pl.col("part").replace(titles),
        *(
            pl.Series(name, [short_types(text) for text in changes[name]], dtype=pl.String)
            for name in ("before", "after")
        ),
    )
    texts = pl.col("module", "shapes", "before", "after")
    return _per_step(table.with_columns(pl.when(texts != "").then(texts).name.keep()), steps)


def _precision(comparison: Comparison, options: Options) -> Iterator[Listing]:
    sums = pl.col("^.*_count$", "^.*_ns$").sum()
    dtypes = comparison.changes.filter(pl.col("part") == "dtype")
    by_type = dtypes.group_by("type", "before", "after").agg(sums).sort("delta_ns", "type")
    casts = comparison.changes.filter(pl.col("part") == "casts").group_by("type").agg(sums)
    casts = largest_first(casts, "delta_ns", "type")
    is_slower = pl.col("delta_ns") > 0
    yield Listing(
        title=Text(
            en="Ops made faster by their dtype (ms per step)",
            zh="因数据类型而变快的算子（每迭代 ms）",
        ),
        columns=(TYPE, *_DTYPES, *_TIMES),
        table=_per_step(
            _top_rows(by_type.filter(pl.col("delta_ns") < 0), options), comparison.steps
        ),
    )
    yield Listing(
        title=Text(
            en="Ops made slower by their dtype (ms per step)",
            zh="因数据类型而变慢的算子（每迭代 ms）",
        ),
        columns=(TYPE, *_DTYPES, *_TIMES),
        table=_per_step(_top_rows(by_type.filter(is_slower).reverse(), options), comparison.steps),
    )
    yield Listing(
        title=Text(
            en="Casts that take more time (ms per step)", zh="增加耗时的类型转换（每迭代 ms）"
        ),
        columns=(TYPE, *_COUNTS, *_TIMES),
        table=_per_step(_top_rows(casts.filter(is_slower), options), comparison.steps),
    )


def edit_table(comparison: Comparison, edits: Sequence[Edit], language: Language) -> Listing:
    """The table of proposed edits of modify_mixlist."""
    rows = [
        (
            edit.gain_ns,
            edit.name,
            edit.target_list,
            edit.reason(comparison.steps).in_language(language),
        )
        for edit in edits
    ]
    schema = {"gain_ns": pl.Int64(), **dict.fromkeys(("name", "to", "why"), pl.String())}
    return Listing(
        title=Text(
            en="Edits of modify_mixlist (estimates, ms per step)",
            zh="对 modify_mixlist 的修改建议（估算，每迭代 ms）",
        ),
        columns=(
            ms("gain", "收益"),
            column("name", "算子", "op"),
            column("to", "加入", "add to"),
            column("why", "原因"),
        ),
        table=_per_step(pl.DataFrame(rows, schema=schema, orient="row"), comparison.steps).rename(
            {"gain_ns": "gain_ms"}
        ),
    )
