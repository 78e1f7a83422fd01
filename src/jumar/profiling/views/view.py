"""The definition and registry of views, and the error for missing data."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import polars as pl

from jumar.ground.errors import unknown_name
from jumar.ground.text import Language, Text
from jumar.profiling.columns import Column
from jumar.profiling.listing import Listing
from jumar.profiling.profile import DeviceKind, Profile
from jumar.profiling.registry import Registry


class Impossible(Exception):
    """The profile lacks data that a view needs.

    Args:
        needs: The missing data.
        how: How to record it.
    """

    def __init__(self, needs: str, how: str = "") -> None:
        super().__init__(needs, how)
        self.needs = needs
        self.how = how

    def __str__(self) -> str:
        return f"needs {self.needs}" + (f"; {self.how}" if self.how else "")


@dataclass(frozen=True, kw_only=True)
class Options:
    """The user's options for views.

    Args:
        top: Number of rows of a ranking; 0 for all.
        chip: A chip table that takes precedence over the built-in one.
        language: The language of titles, headings and advice.
    """

    top: int = 10
    chip: Path | None = None
    language: Language = "en"


@dataclass(frozen=True, kw_only=True)
class View:
    """One analysis: a question, and the table that answers it.

    Args:
        name: The name for `--view`.
        title: The table's heading.
        question: The question that the table answers.
        columns: All possible columns, in order.
        compute: Computes the table from profile and options; may raise `Impossible`.
        order: Position among the views, lowest first.
        usual: Whether it is shown by default.
        only_on: The only kind of device on which it is shown by default; None for all.
        ranking: Whether the table is a ranking, which may be cut after `Options.top` rows.
        uses_rates: Whether it uses the chip's peak rates.
        slow: Whether it needs seconds for a million ops; pages of long profiles omit it.
        advice: Whether it is the to-do list, which is printed as a list.
    """

    name: str
    title: Text
    question: Text
    columns: Sequence[Column] = field(repr=False)
    compute: Callable[[Profile, Options], pl.DataFrame] = field(repr=False)
    order: int = 1000
    usual: bool = False
    only_on: DeviceKind | None = None
    ranking: bool = True
    uses_rates: bool = False
    slow: bool = False
    advice: bool = False

    def make(self, profile: Profile, options: Options) -> pl.DataFrame:
        """The table with all rows, in the declared columns."""
        table = self.compute(profile, options)
        chosen = [column.expression(table) for column in self.columns]
        return table.select(expression for expression in chosen if expression is not None)

    def listing(self, table: pl.DataFrame) -> Listing:
        """A table of this view, for display."""
        return Listing(title=self.title, columns=self.columns, table=table, note=self.question)


VIEWS: Final = Registry[View]("jumar.profiling.views", "jumar.profiling.advice")
"""All views by name, for terminal, JSON, CSV and page."""


def find_view(name: str) -> View:
    """Find a view by name; raise a `UserError` that suggests the nearest name if there is none."""
    if name not in VIEWS:
        raise unknown_name("view", name, VIEWS, where="--view")
    return VIEWS[name]


def default_views(profile: Profile) -> list[View]:
    """The views that are shown unless others are requested."""
    usual = [view for view in VIEWS.values() if view.usual]
    return [view for view in usual if view.only_on in (None, profile.kind)]


@dataclass(frozen=True, kw_only=True)
class Answers:
    """The tables of some views of a profile.

    Args:
        tables: Tables by view name, cut to the rows to display.
        impossible: The reasons why other views have no table, by view name.
        row_counts: Total number of rows of tables that were cut, by view name.
    """

    tables: dict[str, pl.DataFrame]
    impossible: dict[str, str]
    row_counts: dict[str, int] = field(default_factory=dict[str, int])


def answers(profile: Profile, views: Sequence[View], options: Options) -> Answers:
    """Compute the tables of views, or the reasons why there is none."""
    tables: dict[str, pl.DataFrame] = {}
    impossible: dict[str, str] = {}
    row_counts: dict[str, int] = {}
    for view in views:
        try:
            table = view.make(profile, options)
        except Impossible as missing:
            impossible[view.name] = str(missing)
            continue
        if view.ranking and 0 < options.top < table.height:
            row_counts[view.name] = table.height
            table = table.head(options.top)
        tables[view.name] = table
    return Answers(tables=tables, impossible=impossible, row_counts=row_counts)


LEVEL_1 = "record with profiler_level=Level1 and record_shapes=True"


def require_ai_cpu(profile: Profile) -> None:
    """Raise `Impossible` unless the profile is of an NPU."""
    if profile.kind != "npu":
        raise Impossible("a profile of an NPU, the only device with an AI CPU")


def require(table: pl.DataFrame, needs: str, *columns: str, how: str = "") -> pl.DataFrame:
    """Return the table; raise `Impossible` if it has no rows or a column has no values."""
    if table.is_empty():
        raise Impossible(needs, how)
    for name in columns:
        if name not in table.columns or table[name].null_count() == table.height:
            raise Impossible(f"{needs} (column {name})", how)
    return table
