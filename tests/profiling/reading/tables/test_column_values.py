"""Columns of text as values: every fast path returns the same as the slow one."""

from fractions import Fraction

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jumar.profiling.reading.exact import DIGITS, nanoseconds
from jumar.profiling.reading.tables.column_values import convert_distinct, integers, times

DECIMALS = st.from_regex(r"\A-?[0-9]{1,17}(\.[0-9]{0,9})?\Z")
SPOILED = st.sampled_from(
    ["", "N/A", "x", "1.5e-05", "2E3", "nan", "inf", "1.2.3", "0.0005", "0.4995", "99" * 20]
)
FIELDS = st.lists(
    st.tuples(st.none() | DECIMALS | SPOILED, st.sampled_from(["", "\t", " ", '"'])), max_size=90
)


@given(FIELDS, st.sampled_from(sorted(DIGITS)))
@settings(max_examples=150)
def test_vectorised_times_equal_exact_parsing(
    fields: list[tuple[str | None, str]], unit: str
) -> None:
    text = pl.Series("t", [None if one is None else one + end for one, end in fields], pl.String)
    bare = pl.DataFrame({"t": [one for one, _ in fields]}, schema={"t": pl.String})
    asked = bare.select(nanoseconds(pl.col("t"), unit))["t"]
    assert times(text, unit).to_list() == asked.to_list()


@given(st.lists(st.integers(0, 10**18), min_size=1), st.sampled_from(["\t", ""]))
@settings(max_examples=50)
def test_times_keep_all_digits(starts: list[int], end: str) -> None:
    text = pl.Series([f"{start // 1000}.{start % 1000:03d}{end}" for start in starts])
    assert times(text, "us").to_list() == starts


@given(st.lists(st.decimals(0, 10**11, allow_nan=False, places=6), min_size=1))
@settings(max_examples=50)
def test_sub_nanosecond_digits_are_rounded_exactly(numbers: list[object]) -> None:
    text = pl.Series([f"{number:f}" for number in numbers])
    half = [Fraction(str(number)) * 1000 + Fraction(1, 2) for number in numbers]
    assert times(text, "us").to_list() == [one.numerator // one.denominator for one in half]


def test_integers_are_read_next_to_missing_values_and_with_blanks() -> None:
    text = pl.Series(["7", " 8\t", "N/A", None, '"9"', "4.5", "99999999999"])
    assert integers(text, pl.Int32()).to_list() == [7, 8, None, None, 9, None, None]


@pytest.mark.parametrize("kind", [pl.String(), pl.Categorical()])
@pytest.mark.parametrize("repeated", [1, 5])
def test_malformed_text_is_repaired_at_any_position(kind: pl.DataType, repeated: int) -> None:
    text = pl.Series("t", ["DT_FLOAT", None, "N/A", ""] * repeated, pl.String).cast(kind)
    found = convert_distinct(
        text, lambda column: pl.when(column != "N/A").then(column.str.strip_prefix("DT_"))
    )
    assert found.to_list() == ["FLOAT", None, None, ""] * repeated
    assert found.name == "t"
    assert found.dtype == pl.String


@pytest.mark.parametrize(
    ("unit", "text", "expected"),
    [
        ("us", "0.0002", 0),
        ("us", "0.0005", 1),
        ("us", "0.0007", 1),
        ("us", "-0.0005", -1),
        # Beyond 2^48 ns a float may be off, and the text decides.
        ("us", "281474976710.655", 281474976710655),
        ("us", "281474976710.657", 281474976710657),
        ("us", "1736408883704643.212", 1736408883704643212),
        ("us", "17364088837046432.12", 17364088837046432120),
        ("ms", "1736408883704.643212", 1736408883704643212),
        ("ns", "1736408883704643212", 1736408883704643212),
        ("us", "1736408883704643212", None),
    ],
)
@pytest.mark.parametrize("around", ["{}", '"{}\t"'])
def test_times_are_exact_at_any_length(
    unit: str, text: str, expected: int | None, around: str
) -> None:
    expected = expected if expected is not None and expected < 1 << 63 else None
    found = times(pl.Series("t", [around.format(text)]), unit)
    assert (found.name, found.dtype, found.to_list()) == ("t", pl.Int64, [expected])


def test_only_exceptions_of_a_long_column_take_the_slow_path() -> None:
    texts = [f"{number}.5" for number in range(200)]
    texts[3], texts[150], texts[199] = "1736408883704643.212", "x", '"7.25"'
    expected = [number * 1000 + 500 for number in range(200)]
    found = times(pl.Series("t", texts), "us").to_list()
    assert found == [
        *expected[:3],
        *(1736408883704643212, *expected[4:150], None, *expected[151:199], 7250),
    ]
    assert times(pl.Series("t", [], dtype=pl.String), "us").to_list() == []
    assert times(pl.Series("t", [None, None], dtype=pl.String), "us").to_list() == [None, None]


def test_integers_have_the_requested_dtype() -> None:
    found = integers(pl.Series("n", ["1", "2"]), pl.Int32())
    assert (found.name, found.dtype, found.to_list()) == ("n", pl.Int32, [1, 2])
    assert (
        convert_distinct(pl.Series("t", [], dtype=pl.Categorical), lambda c: c).dtype == pl.String
    )
