import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jumar.report.numbers import axis_for, tick_text, tick_texts

FINITE = st.floats(min_value=-1e30, max_value=1e30, allow_nan=False)


@given(st.lists(FINITE, min_size=1, max_size=20), st.booleans())
def test_axis_covers_every_value_with_a_few_ordered_ticks(
    values: list[float], may_be_logarithmic: bool
) -> None:
    axis = axis_for(values, may_be_logarithmic=may_be_logarithmic)
    assert axis.low < axis.high
    assert all(-1e-6 <= axis.share(value) <= 1 + 1e-6 for value in values)
    assert list(axis.ticks) == sorted(set(axis.ticks))
    assert 1 <= len(axis.ticks) <= 14
    assert all(-1e-6 <= axis.share(tick) <= 1 + 1e-6 for tick in axis.ticks)


def test_ticks_are_round_numbers() -> None:
    assert axis_for([0.2, 9.9], may_be_logarithmic=False).ticks == [0, 2, 4, 6, 8, 10]
    assert axis_for([0.0, 0.28], may_be_logarithmic=False).ticks == [0, 0.1, 0.2, 0.3]


def test_wide_positive_range_is_logarithmic_if_allowed() -> None:
    axis = axis_for([1.0, 65536.0], may_be_logarithmic=True)
    assert axis.logarithmic
    assert list(axis.ticks) == [1, 10, 100, 1000, 10000]
    assert not axis_for([1.0, 49.0], may_be_logarithmic=True).logarithmic
    assert not axis_for([0.0, 65536.0], may_be_logarithmic=True).logarithmic
    assert not axis_for([1.0, 65536.0], may_be_logarithmic=False).logarithmic


def test_single_value_is_centred() -> None:
    for value in (0.0, 3.0, -2.0, 1e-8):
        axis = axis_for([value], may_be_logarithmic=True)
        assert 0.2 < axis.share(value) < 0.8


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0"),
        (0.06, "0.06"),
        (97.25, "97.25"),
        (65536.0, "65,536"),
        (1e-5, "1e-5"),
        (-2.5, "-2.5"),
        (123456789.0, "1.235e8"),
        (1e10, "1e10"),
    ],
)
def test_numbers_are_formatted_briefly(value: float, text: str) -> None:
    assert tick_text(value) == text


@given(FINITE)
def test_numbers_are_shown_to_a_relative_thousandth(value: float) -> None:
    assert math.isclose(
        float(tick_text(value).replace(",", "")), value, rel_tol=1e-3, abs_tol=1e-300
    )


@pytest.mark.parametrize(
    "values", [(96.0001, 96.0002, 96.0003), (1000.1, 1000.2), (0.0, 2e-5, 4e-5), (1e9, 1e9 + 1)]
)
def test_axis_labels_are_unique(values: tuple[float, ...]) -> None:
    texts = tick_texts(values)
    assert len(set(texts)) == len(values)
    assert [float(text.replace(",", "")) for text in texts] == pytest.approx(values, rel=1e-9)


@pytest.mark.parametrize("values", [[0.0, 5e-324], [-5e-324, 0.0], [1e-322, 1e-322]])
def test_values_that_differ_by_less_than_a_normal_number_have_an_axis(values: list[float]) -> None:
    axis = axis_for(values, may_be_logarithmic=True)
    assert (axis.low, axis.high) == (-1.0, 1.0)
    assert [axis.share(value) for value in values] == [0.5, 0.5]
