"""Columns of views: name, heading and unit."""

from dataclasses import dataclass
from typing import TypeVar

import polars as pl

from jumar.ground.text import Language, Text


@dataclass(frozen=True, kw_only=True)
class Column:
    """A column of a view.

    Args:
        name: Its name in JSON, CSV and on an English terminal, ending with the unit.
        title: Its heading, without the unit.
        unit: The unit as displayed; empty if there is none.
        keeps_end: Whether a text that is too long is cut at the start, like a path.
    """

    name: str
    title: Text
    unit: str = ""
    keeps_end: bool = False

    def heading(self, language: Language) -> str:
        """The heading with the unit."""
        title = self.title.in_language(language)
        return f"{title} ({self.unit})" if self.unit else title

    def expression(self, table: pl.DataFrame) -> pl.Expr | None:
        """Return this column of a table, if present; milliseconds may be computed from `..._ns`."""
        if self.name in table.columns:
            return pl.col(self.name)
        raw = f"{self.name.removesuffix('_ms')}_ns"
        return milliseconds(raw).alias(self.name) if raw in table.columns else None


def column(name: str, zh: str, en: str = "", *, unit: str = "", keeps_end: bool = False) -> Column:
    """A column; without `en`, its English title is its name without the unit."""
    default_title = name.removesuffix(f"_{unit.lower()}").replace("_", " ")
    title = Text(en=en or default_title, zh=zh)
    return Column(name=name, title=title, unit=unit, keeps_end=keeps_end)


def ms(name: str, zh: str, en: str = "") -> Column:
    """A column of times, `{name}_ms`; tables may contain `{name}_ns` instead."""
    return column(f"{name}_ms", zh, en, unit="ms")


def percent(name: str, zh: str, en: str = "") -> Column:
    """A column of percentages, `{name}_%`."""
    return column(f"{name}_%", zh, en, unit="%")


def milliseconds(nanoseconds: str | pl.Expr) -> pl.Expr:
    """Nanoseconds as milliseconds, for display only."""
    return ((pl.col(nanoseconds) if isinstance(nanoseconds, str) else nanoseconds) / 1e6).round(6)


_Table = TypeVar("_Table", pl.DataFrame, pl.LazyFrame)


def largest_first(table: _Table, by: str, *ties: str) -> _Table:
    """The rows sorted by a column, largest first; equal ones by other columns, smallest first."""
    return table.sort(by, *ties, descending=[True, *[False] * len(ties)])


RANK = column("rank", "卡号")
STEP = column("step", "迭代")
NAME = column("name", "名称")
TYPE = column("type", "算子类型", "op type")
CORE = column("core", "计算核")
COUNT = column("count", "次数")
TOTAL = ms("total", "总耗时")
LONGEST = ms("max", "最大耗时", "longest")
AVERAGE = ms("average", "平均耗时")
SHARE = percent("share", "占比")
CUMULATIVE = percent("cumulative", "累计占比")
SHAPES = column("input_shapes", "输入形状")
DTYPES = column("input_types", "输入数据类型", "input dtypes")
OUTPUT_DTYPES = column("output_types", "输出数据类型", "output dtypes")
INPUT_FORMATS = column("input_formats", "输入格式")
OUTPUT_FORMATS = column("output_formats", "输出格式")
MODULE = column("module", "网络层", "layer", keeps_end=True)
VERDICT = column("verdict", "判断")
TRANSPORT = column("transport", "传输方式")
SIZE = column("size_mb", "数据量", unit="MB")
TRANSIT = ms("transit", "传输耗时", "transfer")
P50 = ms("p50", "中位数", "median")
P95 = ms("p95", "95 分位", "95th percentile")
