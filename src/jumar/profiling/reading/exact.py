"""Decimal text to integer nanoseconds, without an intermediate float.

A start of `1736408883704643.212` microseconds has 19 digits; a float64 holds 15 to 17 of them, and
with it two ops that follow each other by 0.2 us overlap.
"""

from typing import Final

import polars as pl

DIGITS: Final = {"ns": 0, "us": 3, "ms": 6, "s": 9}
"""Decimal digits that a unit of time has down to the nanosecond."""

NO_VALUE: Final = ("", "N/A", "NA", "n/a", "-", "null", "None")
"""What producers write where there is no value."""

_LARGEST: Final = 9_223_372_036_854_775_807


def clean(column: pl.Expr) -> pl.Expr:
    """Text without surrounding TABs, blanks and quotes; markers of missing values become null."""
    bare = column.str.strip_chars(" \t\r\n\"'")
    return pl.when(bare.is_in(NO_VALUE)).then(None).otherwise(bare)


def nanoseconds(column: pl.Expr, unit: str) -> pl.Expr:
    """A column of decimal text in `unit` as integer nanoseconds, halves rounded away from 0.

    What is not a number, or too large, becomes null.
    """
    digits = DIGITS[unit]
    parts = column.str.split_exact(".", 1)
    whole = parts.struct.field("field_0")
    text = parts.struct.field("field_1").fill_null("")
    fraction = text.str.pad_end(digits + 1, "0").str.slice(0, digits + 1)
    number = whole.cast(pl.Int64, strict=False)
    fits = number.is_between(-(_LARGEST // 10**digits) + 1, _LARGEST // 10**digits - 1)
    size = number.abs() * 10**digits + (fraction.cast(pl.Int64, strict=False) + 5) // 10
    exact = pl.when(fits).then(pl.when(whole.str.starts_with("-")).then(-size).otherwise(size))
    power = column.str.contains_any(["e", "E"])
    return pl.when(power).then(_scientific(column, digits)).otherwise(exact)


def _scientific(column: pl.Expr, digits: int) -> pl.Expr:
    """Text such as `1.5e-05`, which only Python's own float formatting makes: 17 digits at most."""
    number = (column.cast(pl.Float64, strict=False) * float(10**digits)).round()
    return pl.when(number.is_finite()).then(number).cast(pl.Int64, strict=False)


def nanoseconds_of(value: object, unit: str = "us") -> int | None:
    """One number or text in `unit` as integer nanoseconds; None for a non-number."""
    digits = DIGITS[unit]
    if type(value) is int:
        result = value * 10**digits
        return result if -_LARGEST <= result <= _LARGEST else None
    text = value.strip() if isinstance(value, str) else str(value)
    if value is None or isinstance(value, bool) or not text or len(text) > 400:
        return None
    whole, point, fraction = text.partition(".")
    if not (whole.lstrip("+-").isascii() and whole.lstrip("+-").isdigit()) or (
        point and not (fraction.isascii() and fraction.isdigit())
    ):
        return _from_scientific(text, digits)
    size = (int(whole.lstrip("+-") + (fraction + "0" * (digits + 1))[: digits + 1]) + 5) // 10
    result = -size if whole.startswith("-") else size
    return result if abs(result) <= _LARGEST else None


def _from_scientific(text: str, digits: int) -> int | None:
    try:
        number = float(text) * 10**digits
    except ValueError:
        return None
    return round(number) if abs(number) < _LARGEST else None


def decimal_text(column: pl.Expr, unit: str = "us") -> pl.Expr:
    """Integer nanoseconds as decimal text in `unit`, the inverse of `nanoseconds`."""
    digits = DIGITS[unit]
    size = column.abs()
    whole = (size // 10**digits).cast(pl.String)
    fraction = (size % 10**digits).cast(pl.String).str.zfill(digits)
    sign = pl.when(column < 0).then(pl.lit("-")).otherwise(pl.lit(""))
    return sign + whole + "." + fraction
