"""Rows that are collected one at a time: a few bytes a field, each text held once."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import polars as pl

BATCH: Final = 16_384
_LARGEST: Final = (1 << 63) - 1


class Rows:
    """A table that grows by rows of whole numbers and texts.

    A list of Python objects would need some 60 bytes a field, and a trace has millions of them:
    rows are packed a batch at a time.

    Args:
        columns: Names, with whether a column holds text.
    """

    def __init__(self, columns: Mapping[str, bool]) -> None:
        self._columns = dict(columns)
        self._known: dict[str, int] = {}
        self._packed: list[pl.DataFrame] = []
        self._rows: list[tuple[Any, ...]] = []
        self._packed_rows = 0
        self.add = self._rows.append

    def __len__(self) -> int:
        return self._packed_rows + len(self._rows)

    @property
    def full(self) -> bool:
        """Whether it is time to `pack`."""
        return len(self._rows) >= BATCH

    def pack(self) -> None:
        """Turn the rows so far into columns. A number that 64 bits do not hold is null."""
        if not self._rows:
            return
        columns = [
            self._texts(name, values) if is_text else _numbers(name, values)
            for (name, is_text), values in zip(
                self._columns.items(), zip(*self._rows, strict=True), strict=True
            )
        ]
        self._packed.append(pl.DataFrame(columns))
        self._packed_rows += len(self._rows)
        self._rows.clear()

    def _texts(self, name: str, values: Sequence[Any]) -> pl.Series:
        known = self._known
        numbers = [
            None if value is None else known.setdefault(str(value), len(known)) for value in values
        ]
        return pl.Series(name, numbers, dtype=pl.UInt32)

    def frame(self) -> pl.DataFrame:
        """The rows as a table; texts that are the same share their bytes."""
        self.pack()
        if not self._packed:
            kinds = {
                name: pl.String() if text else pl.Int64() for name, text in self._columns.items()
            }
            return pl.DataFrame(schema=kinds)
        known = pl.Series("known", list(self._known), dtype=pl.String)
        packed = pl.concat(self._packed)
        return packed.with_columns(
            known.gather(packed[name]).rename(name)
            for name, is_text in self._columns.items()
            if is_text
        )


def _numbers(name: str, values: Sequence[Any]) -> pl.Series:
    try:
        return pl.Series(name, values, dtype=pl.Int64, strict=True)
    except (TypeError, OverflowError, pl.exceptions.PolarsError):
        whole = [
            value if type(value) is int and -_LARGEST <= value <= _LARGEST else None
            for value in values
        ]
        return pl.Series(name, whole, dtype=pl.Int64)
