"""Converting text columns to values, by the cheapest method that is exact for each row.

An expression evaluates all of its branches for every row. Tables of a million ops are regular but
for a few rows, so a whole column is first read as if it were, and only the rows that betray an
exception go the long way.
"""

from collections.abc import Callable
from typing import Final

import polars as pl

from jumar.profiling.reading.exact import DIGITS, nanoseconds

_AROUND: Final = ' \t\r\n"'
_NEAR: Final = 0.25
_LARGEST: Final = float(1 << 48)
_PROBED: Final = 64


def times(text: pl.Series, unit: str) -> pl.Series:
    """As `exact.nanoseconds`, for text that may have blanks, a TAB or quotes around it."""
    digits = DIGITS[unit]
    parsed = pl.Series(text.name, [None], dtype=pl.Int64).new_from_index(0, text.len())
    for way in (_short, _long):
        rest = parsed.is_null() & text.is_not_null()
        unparsed = text if rest.all() else text.filter(rest)
        # A column is of one kind: absolute times are too long for floats, all of them.
        if way(unparsed.head(_PROBED), digits).null_count() < min(unparsed.len(), _PROBED):
            parsed = _put(parsed, rest, way(unparsed, digits))
    rest = parsed.is_null() & text.is_not_null()
    if not rest.any():
        return parsed
    bare = text.filter(rest).str.strip_chars(_AROUND)
    return _put(parsed, rest, _evaluated(bare, lambda column: nanoseconds(column, unit)))


def _put(column: pl.Series, where: pl.Series, values: pl.Series) -> pl.Series:
    """`column` with other values at some of its rows."""
    if values.len() == column.len():
        return values.alias(column.name)
    return column.scatter(where.arg_true(), values)


def _short(text: pl.Series, digits: int) -> pl.Series:
    """Times via floats; null where they might differ from the text by a nanosecond.

    Up to 2^48 ns a float in another unit is off by less than a tenth of a nanosecond, so what is
    within a quarter of a whole one is nearest to that one.
    """
    number = text.cast(pl.Float64, strict=False) * float(10**digits)
    whole = number.round()
    near = ((number - whole).abs() < _NEAR) & (whole.abs() < _LARGEST)
    whole = whole.cast(pl.Int64, strict=False)
    return whole if near.all() else whole.set(~near.fill_null(False), None)


def _long(text: pl.Series, digits: int) -> pl.Series:
    """Times with all of their digits, as `1736408883704643.212` in microseconds has; or null.

    Their digits are those of the nanoseconds.
    """
    bare = text.str.strip_chars(_AROUND)
    whole = bare.str.slice(-digits - 1, 1) == "."
    number = bare.str.replace(".", "", literal=True).cast(pl.Int64, strict=False)
    return number if whole.all() else number.set(~whole.fill_null(False), None)


def integers(text: pl.Series, kind: pl.DataType) -> pl.Series:
    """Integers from text that may have blanks or quotes around it; null if there is none."""
    parsed = text.cast(kind, strict=False)
    rest = parsed.is_null() & text.is_not_null()
    if not rest.any():
        return parsed
    odd = text.filter(rest)
    return parsed.scatter(
        rest.arg_true(),
        each_once(odd, lambda column: column.str.strip_chars(_AROUND)).cast(kind, strict=False),
    )


def each_once(text: pl.Series, mended: Callable[[pl.Expr], pl.Expr]) -> pl.Series:
    """Apply `mended` to text or categories, to each distinct one once.

    A million ops have a few hundred types, shapes and dtypes. Rows with equal texts share their
    bytes afterwards.
    """
    if text.is_empty():
        # The numbers of categories would stay numbers below.
        return text.cast(pl.String)
    known = text.unique()
    if 2 * known.len() > text.len():
        return _evaluated(text.cast(pl.String), mended)
    results = _evaluated(known.cast(pl.String), mended)
    if text.dtype == pl.Categorical:
        text, known = text.to_physical(), known.to_physical()
    return text.replace_strict(known, results, return_dtype=pl.String)


def _evaluated(text: pl.Series, function: Callable[[pl.Expr], pl.Expr]) -> pl.Series:
    return (
        text.alias("text").to_frame().select(function(pl.col("text"))).to_series().alias(text.name)
    )
