"""Views: their definition, their registry, and the error if a profile cannot answer."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import polars as pl

from jumar.ground.errors import unknown_name
from jumar.ground.text import Language, Text
from jumar.profiling.columns import Column
from jumar.profiling.listing import Listing
from jumar.profiling.profile import Profile
from jumar.profiling.registry import Registry


class Impossible(Exception):
    """The profile lacks what a view needs.

    Args:
        needs: What is missing, as a user would look for it.
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
    """What the user can set for views.

    Args:
        top: Number of rows of a ranking; 0 for all.
        chip: A chip table that replaces ours where names are equal.
        language: Of titles, heads and advice.
    """

    top: int = 10
    chip: Path | None = None
    language: Language = "en"


@dataclass(frozen=True, kw_only=True)
class View:
    """One analysis: a question, and the table that answers it.

    Args:
        name: The name that `--view` takes.
        title: The table's heading.
        question: The question it answers.
        columns: Every column that it may have, in order; what is not here is not shown.
        compute: Profile and options to table; raises `Impossible`.
        place: Its position among the views, the lowest first.
        usual: Whether it is shown when no view is requested.
        ranking: Whether the rows are a ranking that may be cut after `Options.top` rows.
        uses_rates: Whether it compares ops with the chip's peak rates.
        slow: Whether a million ops take it seconds; pages of long profiles leave it out and say so.
        advice: Whether its rows are the advice of the to-do list, printed as a list.
    """

    name: str
    title: Text
    question: Text
    columns: Sequence[Column] = field(repr=False)
    compute: Callable[[Profile, Options], pl.DataFrame] = field(repr=False)
    place: int = 1000
    usual: bool = False
    ranking: bool = True
    uses_rates: bool = False
    slow: bool = False
    advice: bool = False

    def make(self, profile: Profile, options: Options) -> pl.DataFrame:
        """All rows of the table, in the declared columns."""
        table = self.compute(profile, options)
        chosen = [column.expression(table) for column in self.columns]
        return table.select(expression for expression in chosen if expression is not None)

    def listing(self, table: pl.DataFrame) -> Listing:
        """A table that the view made, for display."""
        return Listing(title=self.title, columns=self.columns, table=table, note=self.question)


VIEWS: Final = Registry[View]("jumar.profiling.views", "jumar.profiling.advice")
"""Every view by its name; what is added here is on the terminal, in JSON and CSV, on the page."""


def find_view(name: str) -> View:
    """The view of a name; a `UserError` with the nearest one if there is none."""
    if name not in VIEWS:
        raise unknown_name("view", name, VIEWS, where="--view")
    return VIEWS[name]


@dataclass(frozen=True, kw_only=True)
class Answers:
    """Views of one profile.

    Args:
        tables: The answers by the view's name, cut to the rows that are shown.
        impossible: Why the others have none.
        whole: How many rows the rankings have that were cut.
    """

    tables: dict[str, pl.DataFrame]
    impossible: dict[str, str]
    whole: dict[str, int] = field(default_factory=dict[str, int])


def answers(profile: Profile, views: Sequence[View], options: Options) -> Answers:
    """The tables of views, and why some are impossible with this profile."""
    tables: dict[str, pl.DataFrame] = {}
    impossible: dict[str, str] = {}
    whole: dict[str, int] = {}
    for view in views:
        try:
            table = view.make(profile, options)
        except Impossible as missing:
            impossible[view.name] = str(missing)
            continue
        if view.ranking and 0 < options.top < table.height:
            whole[view.name] = table.height
            table = table.head(options.top)
        tables[view.name] = table
    return Answers(tables=tables, impossible=impossible, whole=whole)


LEVEL_1 = "record with profiler_level=Level1 and record_shapes=True"


def require(table: pl.DataFrame, needs: str, *columns: str, how: str = "") -> pl.DataFrame:
    """The table, if it has rows and the columns have values; else `Impossible`."""
    if table.is_empty():
        raise Impossible(needs, how)
    for name in columns:
        if name not in table.columns or table[name].null_count() == table.height:
            raise Impossible(f"{needs} (column {name})", how)
    return table
