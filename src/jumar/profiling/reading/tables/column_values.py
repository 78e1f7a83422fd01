"""Converts text columns to values, each row by the cheapest method that is exact for it.

A polars expression evaluates all its branches for every row. In a table of a million ops nearly
all rows are regular, so a column is first converted as if all were, and only the rows for which
that fails are converted by the general method.
"""

from collections.abc import Callable
from typing import Final

import polars as pl

from jumar.profiling.reading.exact import DIGITS, nanoseconds

_PADDING: Final = ' \t\r\n"'
_MAX_DISTANCE: Final = 0.25
_MAX_NS: Final = float(1 << 48)
_PROBE_ROWS: Final = 64


def times(text: pl.Series, unit: str) -> pl.Series:
    """`exact.nanoseconds` for text that may be surrounded by spaces, TABs or quotes."""
    digits = DIGITS[unit]
    parsed = pl.Series(text.name, [None], dtype=pl.Int64).new_from_index(0, text.len())
    for parse in (_via_float, _by_digits):
        is_unparsed = parsed.is_null() & text.is_not_null()
        unparsed = text if is_unparsed.all() else text.filter(is_unparsed)
        # Usually one method fits the whole column: all times are too long for floats, or none is.
        if parse(unparsed.head(_PROBE_ROWS), digits).null_count() < min(
            unparsed.len(), _PROBE_ROWS
        ):
            parsed = _with_values(parsed, is_unparsed, parse(unparsed, digits))
    is_unparsed = parsed.is_null() & text.is_not_null()
    if not is_unparsed.any():
        return parsed
    stripped = text.filter(is_unparsed).str.strip_chars(_PADDING)
    return _with_values(
        parsed, is_unparsed, _evaluated(stripped, lambda column: nanoseconds(column, unit))
    )


def _with_values(column: pl.Series, rows: pl.Series, values: pl.Series) -> pl.Series:
    """`column` with `values` in the given rows."""
    if values.len() == column.len():
        return values.alias(column.name)
    return column.scatter(rows.arg_true(), values)


def _via_float(text: pl.Series, digits: int) -> pl.Series:
    """Times via floats; null where rounding might be off by a nanosecond.

    Up to 2^48 ns a float in another unit is off by less than a tenth of a nanosecond, so a value
    within a quarter of an integer certainly rounds to it.
    """
    number = text.cast(pl.Float64, strict=False) * float(10**digits)
    rounded = number.round()
    is_exact = ((number - rounded).abs() < _MAX_DISTANCE) & (rounded.abs() < _MAX_NS)
    rounded = rounded.cast(pl.Int64, strict=False)
    return rounded if is_exact.all() else rounded.set(~is_exact.fill_null(False), None)


def _by_digits(text: pl.Series, digits: int) -> pl.Series:
    """Times written down to the nanosecond, as `1736408883704643.212` us is; null for others.

    Without the decimal point, their digits are the nanoseconds.
    """
    stripped = text.str.strip_chars(_PADDING)
    has_all_digits = stripped.str.slice(-digits - 1, 1) == "."
    number = stripped.str.replace(".", "", literal=True).cast(pl.Int64, strict=False)
    return number if has_all_digits.all() else number.set(~has_all_digits.fill_null(False), None)


def integers(text: pl.Series, kind: pl.DataType) -> pl.Series:
    """Integers from text that may be surrounded by spaces or quotes; null for other text."""
    parsed = text.cast(kind, strict=False)
    is_unparsed = parsed.is_null() & text.is_not_null()
    if not is_unparsed.any():
        return parsed
    irregular = text.filter(is_unparsed)
    return parsed.scatter(
        is_unparsed.arg_true(),
        convert_distinct(irregular, lambda column: column.str.strip_chars(_PADDING)).cast(
            kind, strict=False
        ),
    )


def convert_distinct(text: pl.Series, convert: Callable[[pl.Expr], pl.Expr]) -> pl.Series:
    """Apply `convert` to texts or categories, once for each distinct one.

    A million ops have a few hundred different types, shapes and dtypes. Equal results share memory.
    """
    if text.is_empty():
        # Below, an empty categorical column would become numeric.
        return text.cast(pl.String)
    distinct = text.unique()
    if 2 * distinct.len() > text.len():
        return _evaluated(text.cast(pl.String), convert)
    results = _evaluated(distinct.cast(pl.String), convert)
    if text.dtype == pl.Categorical:
        text, distinct = text.to_physical(), distinct.to_physical()
    return text.replace_strict(distinct, results, return_dtype=pl.String)


def _evaluated(text: pl.Series, function: Callable[[pl.Expr], pl.Expr]) -> pl.Series:
    return (
        text.alias("text").to_frame().select(function(pl.col("text"))).to_series().alias(text.name)
    )
