"""A table as shown in the terminal and on the page."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import polars as pl

from jumar.ground.text import Language, Text
from jumar.profiling.columns import Column
from jumar.profiling.showing import shown


@dataclass(frozen=True, kw_only=True)
class Listing:
    """A table with its title.

    Args:
        title: Its heading.
        columns: Its columns in order, those included that this table lacks.
        table: The rows.
        note: A note shown with it.
    """

    title: Text
    columns: Sequence[Column] = field(repr=False)
    table: pl.DataFrame = field(repr=False)
    note: Text | None = None

    @property
    def kept(self) -> list[Column]:
        """The columns that have a value: an empty one wastes room."""
        table = self.table
        return [
            column
            for column in self.columns
            if column.name in table.columns
            and table[column.name].null_count() < max(table.height, 1)
        ]

    @property
    def numeric(self) -> list[bool]:
        """Which of `kept` are numeric, and right-aligned."""
        return [self.table[column.name].dtype.is_numeric() for column in self.kept]

    def heads(self, language: Language) -> list[str]:
        """The head of each of `kept`."""
        return [column.head(language) for column in self.kept]

    def cells(self, longest: int, *, is_fixed: bool = False) -> list[list[str]]:
        """Each row as texts of limited length; fractions with all digits if fixed."""
        kept = self.kept
        return [
            [
                shown(value, longest, column.digits, is_fixed=is_fixed, keeps_end=column.keeps_end)
                for value, column in zip(row, kept, strict=True)
            ]
            for row in self.table.select(column.name for column in kept).iter_rows()
        ]
