"""Reads CSV files as text, to be converted column by column."""

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
        names: The column names.
        unreadable: Counts dropped lines, and fields that should contain a number but do not.
    """

    def __init__(self, lines: Lines, unreadable: Unreadable) -> None:
        self._lines = lines
        self.unreadable = unreadable
        self.names = _scan(lines.path, {}).collect_schema().names()

    def columns(
        self, names: Sequence[str], type_of: Callable[[str], pl.DataType | None] = lambda _: None
    ) -> list[pl.Series]:
        """Read some columns.

        Args:
            names: Names of the columns.
            type_of: Returns the type of a column by name, unless it is text: categories, or
                floats, which are null where a field is not a number.
        """
        types = {name: dtype for name in names if (dtype := type_of(name)) is not None}
        float_names = [name for name, dtype in types.items() if dtype == pl.Float64]
        with _shared_categories(), _raising_on_dropped_rows():
            try:
                frame = _scan(self._lines.path, types, dict.fromkeys(float_names, "N/A"))
                return frame.select(names).collect(engine="streaming").get_columns()
            except pl.exceptions.ComputeError:
                # A column of numbers holds something other than a number or N/A.
                types = {name: dtype for name, dtype in types.items() if name not in float_names}
                frame = _scan(self._lines.path, types).select(names)
                columns = frame.collect(engine="streaming").get_columns()
        return [
            self._floats(column) if column.name in float_names else column for column in columns
        ]

    def _floats(self, text: pl.Series) -> pl.Series:
        column = clean(pl.col(text.name)).cast(pl.Float64, strict=False)
        return self.checked(text, text.to_frame().select(column.alias(text.name)).to_series())

    def checked(self, text: pl.Series, values: pl.Series) -> pl.Series:
        """Count the fields of `text` that could not be converted, and return `values`."""
        is_lost = values.is_null() & text.is_not_null()
        if not is_lost.any():
            return values
        texts = text.filter(is_lost).cast(pl.String).unique()
        unreadable_texts = texts.filter(~texts.str.strip_chars(" \t\r\n\"'").is_in(NO_VALUE))
        if len(unreadable_texts):
            for row in (
                is_lost & text.cast(pl.String).is_in(unreadable_texts.implode())
            ).arg_true():
                self.count_lost(row, text.name, text[row])
        return values

    def count_lost(self, row: int, column: str, text: object) -> None:
        """Count a field that cannot be used."""
        self.unreadable.count_number(partial(self._location, row, column), text)

    def _location(self, row: int, column: str) -> str:
        return f"line {self._lines.number(row)}, column '{column.strip()}'"


@contextmanager
def scanned(path: Path, display_name: str) -> Generator[CsvText, None, None]:
    """Open a CSV file; lines with more or fewer fields than the header are dropped.

    Args:
        path: The file.
        display_name: Its name in messages.
    """
    unreadable = Unreadable(display_name)
    with as_utf8(path) as (readable, problem):
        if problem:
            # First, since its last line is then incomplete too.
            unreadable.note_end(problem)
        with whole_lines(readable, unreadable) as lines:
            yield CsvText(lines, unreadable)


class TextTable:
    """An entire CSV file as text.

    Attributes:
        frame: Its rows.
        names: The column names.
        missing: Returns what could not be read; call it after converting the columns.
        checked: See `CsvText.checked`.
        count_lost: See `CsvText.count_lost`.
    """

    def __init__(self, text: CsvText) -> None:
        self.frame = pl.DataFrame(text.columns(text.names))
        self.names = text.names
        self.missing = text.unreadable.missing
        self.checked = text.checked
        self.count_lost = text.count_lost

    def number(self, name: str, convert: Callable[[pl.Expr], pl.Expr]) -> pl.Series:
        """The numbers of a column; all null if the file has no such column.

        Args:
            name: Name of the column.
            convert: Converts cleaned text to numbers.
        """
        text = (
            self.frame[name]
            if name in self.frame.columns
            else pl.Series(name, [None] * self.frame.height, pl.String)
        )
        values = text.to_frame().select(convert(clean(pl.col(name))).alias(name)).to_series()
        return self.checked(text, values)


@contextmanager
def _raising_on_dropped_rows() -> Generator[None, None, None]:
    """Raise an error where polars only warns that it dropped rows."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.filterwarnings("always", message="CSV malformed")
        yield
    for warning in caught:
        if str(warning.message).startswith("CSV malformed"):
            raise pl.exceptions.ComputeError(str(warning.message))
        warnings.warn_explicit(warning.message, warning.category, warning.filename, warning.lineno)


def _shared_categories() -> AbstractContextManager[object]:
    """A context in which polars before 1.32 uses the same category codes throughout a file."""
    release = tuple(int(part) for part in pl.__version__.split(".")[:2])
    if release < (1, 32):
        return pl.StringCache()  # pyright: ignore[reportDeprecated]
    return nullcontext()


def _scan(
    path: Path, types: Mapping[str, pl.DataType], nulls: Mapping[str, str] | None = None
) -> pl.LazyFrame:
    return pl.scan_csv(
        path,
        infer_schema=False,
        schema_overrides=types,
        null_values=dict(nulls) if nulls else None,
        truncate_ragged_lines=True,
        encoding="utf8-lossy",
        low_memory=True,
        raise_if_empty=False,
    )


def read_text(path: Path, display_name: str) -> TextTable:
    """Read an entire CSV file as text."""
    with scanned(path, display_name) as text:
        return TextTable(text)
