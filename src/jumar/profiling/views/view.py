"""What a view is, and what it raises where the profile cannot answer."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import polars as pl

from jumar.profiling.profile import Profile


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
    """What the user may set for views.

    Args:
        top: Rows that are shown of a ranking; 0 for all.
        chip: A chip table that replaces ours where names are equal.
    """

    top: int = 10
    chip: Path | None = None


@dataclass(frozen=True, kw_only=True)
class View:
    """One analysis.

    Args:
        name: What `--view` takes.
        title: What stands above the table.
        make: Profile and options to table; raises `Impossible`.
        ranking: Whether the rows are a ranking that may be cut after `Options.top` rows.
    """

    name: str
    title: str
    make: Callable[[Profile, Options], pl.DataFrame] = field(repr=False)
    ranking: bool = True


LEVEL_1 = "record with profiler_level=Level1 and record_shapes=True"


def require(table: pl.DataFrame, needs: str, *columns: str, how: str = "") -> pl.DataFrame:
    """The table, if it has rows and the columns hold anything; else `Impossible`."""
    if table.is_empty():
        raise Impossible(needs, how)
    for column in columns:
        if column not in table.columns or table[column].null_count() == table.height:
            raise Impossible(f"{needs} (column {column})", how)
    return table


def milliseconds(column: str | pl.Expr) -> pl.Expr:
    """Nanoseconds as milliseconds, for showing only."""
    found = pl.col(column) if isinstance(column, str) else column
    return (found / 1e6).round(6)
