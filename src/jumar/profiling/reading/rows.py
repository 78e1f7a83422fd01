"""Rows that are collected one at a time: 8 bytes a number, each text held once."""

from array import array
from collections.abc import Mapping
from typing import Any, Final

import polars as pl

NULL: Final = -(1 << 63)
_LARGEST: Final = (1 << 63) - 1


class Rows:
    """A table that grows by rows of whole numbers and texts.

    A list of Python objects would need some 60 bytes a field; a trace has millions of them.

    Args:
        columns: Names, with whether a column holds text.
    """

    def __init__(self, columns: Mapping[str, bool]) -> None:
        self._texts = list(columns.values())
        self._names = list(columns)
        self._numbers = [array("q") for _ in columns]
        self._known: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self._numbers[0])

    def add(self, *values: Any) -> None:
        """Append one row; None is null, and so is a number that 64 bits do not hold."""
        for numbers, is_text, value in zip(self._numbers, self._texts, values, strict=True):
            if value is None:
                numbers.append(NULL)
            elif is_text:
                text = value if isinstance(value, str) else str(value)
                numbers.append(self._known.setdefault(text, len(self._known)))
            else:
                whole = value if type(value) is int and -_LARGEST <= value <= _LARGEST else NULL
                numbers.append(whole)

    def frame(self) -> pl.DataFrame:
        """The rows as a table; texts that are the same share their bytes."""
        known = pl.Series("known", list(self._known), dtype=pl.String)
        columns: list[pl.Series] = []
        for name, is_text, numbers in zip(self._names, self._texts, self._numbers, strict=True):
            column = pl.Series(name, numbers, dtype=pl.Int64)
            column = column.set(column == NULL, None)
            columns.append(known.gather(column).rename(name) if is_text else column)
        return pl.DataFrame(columns)
