"""Converts decimal text to integer nanoseconds, without an intermediate float.

A start time such as `1736408883704643.212` microseconds has 19 digits. A float64 has only 15 to
17, so ops 0.2 us apart would overlap.
"""

from typing import Final

import polars as pl

DIGITS: Final = {"ns": 0, "us": 3, "ms": 6, "s": 9}
"""Number of decimal places in each time unit, down to the nanosecond."""

NO_VALUE: Final = ("", "N/A", "NA", "n/a", "-", "null", "None")
"""Texts that producers write for missing values."""

_MAX_INT64: Final = 9_223_372_036_854_775_807


def clean(column: pl.Expr) -> pl.Expr:
    """Text without surrounding TABs, blanks and quotes; markers of missing values become null."""
    stripped = column.str.strip_chars(" \t\r\n\"'")
    return pl.when(stripped.is_in(NO_VALUE)).then(None).otherwise(stripped)


def nanoseconds(column: pl.Expr, unit: str) -> pl.Expr:
    """A column of decimal text in `unit` as integer nanoseconds, halves rounded away from 0.

    Values that are too large or not numbers become null.
    """
    digits = DIGITS[unit]
    parts = column.str.split_exact(".", 1)
    integer = parts.struct.field("field_0")
    decimals = parts.struct.field("field_1").fill_null("")
    fraction = decimals.str.pad_end(digits + 1, "0").str.slice(0, digits + 1)
    number = integer.cast(pl.Int64, strict=False)
    fits = number.is_between(-(_MAX_INT64 // 10**digits) + 1, _MAX_INT64 // 10**digits - 1)
    magnitude = number.abs() * 10**digits + (fraction.cast(pl.Int64, strict=False) + 5) // 10
    exact = pl.when(fits).then(
        pl.when(integer.str.starts_with("-")).then(-magnitude).otherwise(magnitude)
    )
    has_exponent = column.str.contains_any(["e", "E"])
    return pl.when(has_exponent).then(_scientific(column, digits)).otherwise(exact)


def _scientific(column: pl.Expr, digits: int) -> pl.Expr:
    """Text such as `1.5e-05`, which comes from a float and so has at most 17 digits."""
    number = (column.cast(pl.Float64, strict=False) * float(10**digits)).round()
    return pl.when(number.is_finite()).then(number).cast(pl.Int64, strict=False)


def nanoseconds_of(value: object, unit: str = "us") -> int | None:
    """A number or decimal text in `unit` as integer nanoseconds; None if it is neither."""
    digits = DIGITS[unit]
    if type(value) is int:
        result = value * 10**digits
        return result if -_MAX_INT64 <= result <= _MAX_INT64 else None
    text = value.strip() if isinstance(value, str) else str(value)
    if value is None or isinstance(value, bool) or not text or len(text) > 400:
        return None
    integer, point, fraction = text.partition(".")
    if not (integer.lstrip("+-").isascii() and integer.lstrip("+-").isdigit()) or (
        point and not (fraction.isascii() and fraction.isdigit())
    ):
        return _scientific_of(text, digits)
    magnitude = (
        int(integer.lstrip("+-") + (fraction + "0" * (digits + 1))[: digits + 1]) + 5
    ) // 10
    result = -magnitude if integer.startswith("-") else magnitude
    return result if abs(result) <= _MAX_INT64 else None


def _scientific_of(text: str, digits: int) -> int | None:
    try:
        number = float(text) * 10**digits
    except ValueError:
        return None
    return round(number) if abs(number) < _MAX_INT64 else None


def whole_number(text: str, max_digits: int) -> int | None:
    """The number that a text of ASCII digits writes; None for other or longer texts."""
    is_number = text.isascii() and text.isdigit() and len(text) <= max_digits
    return int(text) if is_number else None


def decimal_text(column: pl.Expr) -> pl.Expr:
    """Integer nanoseconds as decimal text in microseconds, the inverse of `nanoseconds`."""
    digits = DIGITS["us"]
    magnitude = column.abs()
    integer = (magnitude // 10**digits).cast(pl.String)
    fraction = (magnitude % 10**digits).cast(pl.String).str.zfill(digits)
    sign = pl.when(column < 0).then(pl.lit("-")).otherwise(pl.lit(""))
    return sign + integer + "." + fraction
