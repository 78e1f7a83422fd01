"""A table as displayed on the terminal and the page."""

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
        title: The heading.
        columns: The possible columns, in order.
        table: The rows.
        note: A note displayed with it.
    """

    title: Text
    columns: Sequence[Column] = field(repr=False)
    table: pl.DataFrame = field(repr=False)
    note: Text | None = None

    @property
    def visible_columns(self) -> list[Column]:
        """The columns with at least one value."""
        table = self.table
        return [
            column
            for column in self.columns
            if column.name in table.columns
            and table[column.name].null_count() < max(table.height, 1)
        ]

    @property
    def numeric(self) -> list[bool]:
        """Whether each visible column is numeric, and therefore right-aligned."""
        return [self.table[column.name].dtype.is_numeric() for column in self.visible_columns]

    def headings(self, language: Language) -> list[str]:
        """The headings of the visible columns."""
        return [column.heading(language) for column in self.visible_columns]

    def cells(self, max_characters: int, *, is_fixed: bool = False) -> list[list[str]]:
        """The rows as strings of limited length; with `is_fixed`, fractions keep trailing zeros."""
        visible_columns = self.visible_columns
        return [
            [
                shown(value, max_characters, is_fixed=is_fixed, keeps_end=column.keeps_end)
                for value, column in zip(row, visible_columns, strict=True)
            ]
            for row in self.table.select(column.name for column in visible_columns).iter_rows()
        ]
