"""Scores of some seeds compared with a target."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jumar.experiments.accuracy.target import Target, judge, parse_target
from jumar.ground.errors import UserError


@pytest.mark.parametrize(
    ("text", "metric", "value"), [("top1=95", "top1", 95.0), ("loss=3e-2", "loss", 0.03)]
)
def test_target_is_parsed(text: str, metric: str, value: float) -> None:
    assert parse_target(text) == Target(metric=metric, value=value)


@pytest.mark.parametrize("text", ["top1", "top1=", "=3", "top1=95%", "top1=nan", "a b=1"])
def test_other_formats_are_refused(text: str) -> None:
    with pytest.raises(UserError, match="is not a target"):
        parse_target(text)


def test_verdict_of_three_seeds_follows_from_the_interval_of_their_mean() -> None:
    # Standard deviation 0.1, Student's t for two degrees of freedom 4.303: 0.2484.
    values = [59.9, 60.0, 60.1]
    half = judge(values, 50, higher_is_better=True).half_width
    assert half == pytest.approx(4.303 * 0.1 / math.sqrt(3))
    assert judge(values, 59.7, higher_is_better=True).verdict == "keeps"
    assert judge(values, 59.8, higher_is_better=True).verdict == "unclear"
    assert judge(values, 60.2, higher_is_better=True).verdict == "unclear"
    assert judge(values, 60.3, higher_is_better=True).verdict == "misses"
    assert judge(values, 59.7, higher_is_better=False).verdict == "misses"


def test_one_seed_is_inconclusive_unless_it_counts_samples() -> None:
    assert judge([70.0], 60, higher_is_better=True).verdict == "unclear"
    assert judge([70.0], 60, higher_is_better=True, eval_samples=1000).verdict == "keeps"
    # A standard error of 1.45 points: 69 is within two of them.
    assert judge([70.0], 69, higher_is_better=True, eval_samples=1000).verdict == "unclear"
    assert judge([], 60, higher_is_better=True).verdict == "not available"


def test_exactly_equal_seeds_are_as_certain_as_one_sample() -> None:
    assert judge([60.0, 60.0], 60.0, higher_is_better=True, eval_samples=200).half_width == 0.5


@given(st.lists(st.floats(-100, 100), min_size=1, max_size=6), st.floats(-100, 100), st.booleans())
def test_flipping_all_signs_changes_no_verdict(
    values: list[float], target: float, higher: bool
) -> None:
    mirrored = judge([-value for value in values], -target, higher_is_better=not higher)
    assert mirrored.verdict == judge(values, target, higher_is_better=higher).verdict
