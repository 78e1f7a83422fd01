"""Decimal text to whole nanoseconds and back."""

from decimal import ROUND_HALF_UP, Decimal
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jumar.profiling.reading.exact import (
    DIGITS,
    clean,
    decimal_text,
    nanoseconds,
    nanoseconds_of,
)

LARGEST = 9_223_372_036_854_775_807


def column(text: str | None, unit: str = "us") -> int | None:
    frame = pl.DataFrame({"t": [text]}, schema={"t": pl.String})
    return frame.select(nanoseconds(pl.col("t"), unit)).to_series()[0]


@given(
    st.decimals(-(10**9), 10**9, allow_nan=False, places=10).map(lambda number: f"{number:f}"),
    st.sampled_from(sorted(DIGITS)),
)
def test_halves_round_away_from_zero_in_columns_and_scalars(text: str, unit: str) -> None:
    whole = (Decimal(text) * 10 ** DIGITS[unit]).quantize(Decimal(1), rounding=ROUND_HALF_UP)
    assert column(text, unit) == nanoseconds_of(text, unit) == int(whole)


@pytest.mark.parametrize(
    ("value", "unit", "expected"),
    [
        ("1736408883704643.212", "us", 1736408883704643212),
        ("0.0005", "us", 1),
        ("0.0004999", "us", 0),
        ("-0.0005", "us", -1),
        ("+2.5", "ns", 3),
        (" 7\t", "us", 7_000),
        ("7.", "us", 7_000),
        (".5", "us", 500),
        ("1.5e-05", "s", 15_000),
        ("-2E3", "ns", -2_000),
        ("1e400", "us", None),
        ("nan", "us", None),
        ("x", "us", None),
        ("1,5", "us", None),
        ("1.2.3", "us", None),
        ("٣", "us", 3_000),
        ("1.٣", "us", 1_300),
        ("", "us", None),
        ("0" * 399 + "1", "ns", 1),
        ("0" * 400 + "1", "ns", None),
        (None, "us", None),
        (True, "us", None),
        (False, "us", None),
        (2.5, "us", 2_500),
        (1e-7, "ms", 0),
        (7, "ms", 7_000_000),
        (-7, "us", -7_000),
        (LARGEST, "ns", LARGEST),
        (-LARGEST, "ns", -LARGEST),
        (LARGEST + 1, "ns", None),
        (-LARGEST - 1, "ns", None),
        (str(LARGEST), "ns", LARGEST),
        (str(LARGEST + 1), "ns", None),
        (str(-LARGEST), "ns", -LARGEST),
        ([], "us", None),
    ],
)
def test_scalar_is_a_number_or_none(value: Any, unit: str, expected: int | None) -> None:
    assert nanoseconds_of(value, unit) == expected


def test_microseconds_are_the_default_unit() -> None:
    assert nanoseconds_of(3) == 3_000
    frame = pl.DataFrame({"t": [1_234_567, -5, 0, 10]})
    texts = ["1234.567", "-0.005", "0.000", "0.010"]
    assert frame.select(decimal_text(pl.col("t"))).to_series().to_list() == texts


@pytest.mark.parametrize(
    ("text", "unit", "expected"),
    [
        (str(LARGEST // 1000 - 1), "us", (LARGEST // 1000 - 1) * 1000),
        (str(LARGEST // 1000), "us", None),
        (str(-(LARGEST // 1000) + 1), "us", (-(LARGEST // 1000) + 1) * 1000),
        (str(-(LARGEST // 1000)), "us", None),
        ("-0.5", "us", -500),
        ("-0", "us", 0),
        ("1.5e-05", "ms", 15),
        ("1e300", "us", None),
        ("1.5x", "us", None),
        ("x", "us", None),
        (None, "us", None),
        ("5", "ns", 5),
    ],
)
def test_column_holds_64_bit_values(text: str | None, unit: str, expected: int | None) -> None:
    assert column(text, unit) == expected


def test_text_is_cleaned_and_missing_value_markers_become_null() -> None:
    texts = [
        " a b\t",
        "\"'x'\"",
        "",
        "N/A",
        "NA",
        "n/a",
        "-",
        "null",
        "None",
        "none",
        "\r\n0",
        None,
    ]
    frame = pl.DataFrame({"t": texts})
    assert frame.select(clean(pl.col("t"))).to_series().to_list() == [
        *("a b", "x", None, None, None, None, None, None, None, "none", "0", None),
    ]
