"""CSV files as tables of text: fields are converted column by column afterwards."""

import warnings
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from pathlib import Path

import polars as pl

from jumar.profiling.reading.exact import NO_VALUE, clean
from jumar.profiling.reading.files.opening import as_utf8
from jumar.profiling.reading.tables.whole_lines import Lines, whole_lines
from jumar.profiling.reading.unreadable import Unreadable


class CsvText:
    """The rows of an open CSV file.

    Attributes:
        names: Those of the header.
        unreadable: Lines that are left out, and fields that lack a number.
    """

    def __init__(self, lines: Lines, unreadable: Unreadable) -> None:
        self._lines = lines
        self.unreadable = unreadable
        self.names = _lazy(lines.path, {}).collect_schema().names()

    def columns(
        self, names: Sequence[str], typed: Callable[[str], pl.DataType | None] = lambda _: None
    ) -> list[pl.Series]:
        """Some columns.

        Args:
            names: Names of the columns.
            typed: The type of a column by its name, if it is not text: categories, or a
                float, which is null where the field holds no number.
        """
        kinds = {name: kind for name in names if (kind := typed(name)) is not None}
        reals = [name for name, kind in kinds.items() if kind == pl.Float64]
        with _one_coding(), _no_row_lost():
            try:
                frame = _lazy(self._lines.path, kinds, dict.fromkeys(reals, "N/A"))
                return frame.select(names).collect(engine="streaming").get_columns()
            except pl.exceptions.ComputeError:
                # A column of numbers holds something other than a number or N/A.
                kinds = {name: kind for name, kind in kinds.items() if name not in reals}
                frame = _lazy(self._lines.path, kinds).select(names)
                columns = frame.collect(engine="streaming").get_columns()
        return [self._real(column) if column.name in reals else column for column in columns]

    def _real(self, text: pl.Series) -> pl.Series:
        column = clean(pl.col(text.name)).cast(pl.Float64, strict=False)
        return self.checked(text, text.to_frame().select(column.alias(text.name)).to_series())

    def checked(self, text: pl.Series, values: pl.Series) -> pl.Series:
        """The values of a column; those that should hold a number and do not are counted."""
        lost = values.is_null() & text.is_not_null()
        if not lost.any():
            return values
        texts = text.filter(lost).cast(pl.String).unique()
        odd = texts.filter(~texts.str.strip_chars(" \t\r\n\"'").is_in(NO_VALUE))
        if len(odd):
            for row in (lost & text.cast(pl.String).is_in(odd.implode())).arg_true():
                self.lost(row, text.name, text[row])
        return values

    def lost(self, row: int, column: str, text: object) -> None:
        """Count a field that cannot be used."""
        self.unreadable.number(partial(self._place, row, column), text)

    def _place(self, row: int, column: str) -> str:
        return f"line {self._lines.number(row)}, column '{column.strip()}'"


@contextmanager
def scanned(path: Path, shown: str) -> Generator[CsvText, None, None]:
    """The complete lines of a CSV file; those with another length than the header are dropped.

    Args:
        path: The file.
        shown: Its name in messages.
    """
    unreadable = Unreadable(shown)
    with as_utf8(path) as (readable, problem), whole_lines(readable, unreadable) as lines:
        if problem:
            unreadable.end(problem)
        yield CsvText(lines, unreadable)


class TextTable:
    """A whole CSV file as text.

    Attributes:
        frame: Its rows.
        names: Those of the header.
        missing: What could not be used, known once the columns are converted.
        checked: As `CsvText.checked`.
        lost: As `CsvText.lost`.
    """

    def __init__(self, text: CsvText) -> None:
        self.frame = pl.DataFrame(text.columns(text.names))
        self.names = text.names
        self.missing = text.unreadable.missing
        self.checked = text.checked
        self.lost = text.lost

    def number(self, name: str, convert: Callable[[pl.Expr], pl.Expr]) -> pl.Series:
        """The numbers of a column; all null if the file has no such column.

        Args:
            name: Name of the column.
            convert: Numbers from cleaned text.
        """
        text = pl.Series(name, [None] * self.frame.height, pl.String)
        text = self.frame[name] if name in self.frame.columns else text
        values = text.to_frame().select(convert(clean(pl.col(name))).alias(name)).to_series()
        return self.checked(text, values)


@contextmanager
def _no_row_lost() -> Generator[None, None, None]:
    """Raise where polars only warns that rows are missing, as it does if fields may be null."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.filterwarnings("always", message="CSV malformed")
        yield
    for warning in caught:
        if str(warning.message).startswith("CSV malformed"):
            raise pl.exceptions.ComputeError(str(warning.message))
        warnings.warn_explicit(warning.message, warning.category, warning.filename, warning.lineno)


def _one_coding() -> AbstractContextManager[object]:
    """A context in which polars before 1.32 gives all parts of a file the same category codes."""
    release = tuple(int(part) for part in pl.__version__.split(".")[:2])
    if release < (1, 32):
        return pl.StringCache()  # pyright: ignore[reportDeprecated]
    return nullcontext()


def _lazy(
    path: Path, kinds: Mapping[str, pl.DataType], nulls: Mapping[str, str] | None = None
) -> pl.LazyFrame:
    return pl.scan_csv(
        path,
        infer_schema=False,
        schema_overrides=kinds,
        null_values=dict(nulls) if nulls else None,
        truncate_ragged_lines=True,
        encoding="utf8-lossy",
        low_memory=True,
        raise_if_empty=False,
    )


def read_text(path: Path, shown: str) -> TextTable:
    """The whole CSV file as text."""
    with scanned(path, shown) as text:
        return TextTable(text)
