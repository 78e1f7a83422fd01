import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from jumar.experiments.tolerance import (
    Tolerance,
    between_accuracies,
    between_losses,
    between_seeds,
    t_quantile,
)


@pytest.mark.parametrize(
    ("other", "relation"),
    [
        (90.0, "equal"),
        (92.0, "equal"),
        (88.0, "equal"),
        (92.0001, "above"),
        (87.9999, "below"),
    ],
)
def test_difference_equal_to_the_tolerance_is_still_equal(other: float, relation: str) -> None:
    assert Tolerance(value=2.0).relation(other, 90.0) == relation


def test_rounding_does_not_turn_the_limit_into_a_difference() -> None:
    assert 1.1 - 1.0 > 0.1
    assert Tolerance(value=0.1).relation(1.1, 1.0) == "equal"
    assert Tolerance(value=0.1).relation(1.0, 1.1) == "equal"


@given(st.floats(-1e6, 1e6), st.floats(-1e6, 1e6), st.floats(0, 1e6))
def test_swapping_the_sides_inverts_the_relation(one: float, two: float, value: float) -> None:
    opposite = {"equal": "equal", "below": "above", "above": "below"}
    tolerance = Tolerance(value=value)
    assert tolerance.relation(one, two) == opposite[tolerance.relation(two, one)]


def test_quantiles_are_those_of_students_distribution() -> None:
    for degrees in range(1, 11):
        assert t_quantile(degrees) == pytest.approx(stats.t.ppf(0.975, degrees), abs=6e-4)
    for degrees in (11, 30, 1000):
        exact = stats.t.ppf(0.975, degrees)
        assert exact <= t_quantile(degrees) <= 1.14 * exact


@pytest.mark.parametrize(("num_baseline", "num_others"), [(2, 2), (3, 3), (3, 1), (5, 5)])
def test_seeds_of_the_same_mode_are_judged_equal_19_times_out_of_20(
    num_baseline: int, num_others: int
) -> None:
    random = np.random.default_rng(5)
    equal = 0
    for _ in range(4000):
        baseline = random.normal(0.25, 0.02, num_baseline)
        others = random.normal(0.25, 0.02, num_others)
        tolerance = between_seeds(list(baseline), num_others)
        equal += tolerance.relation(float(others.mean()), float(baseline.mean())) == "equal"
    assert 0.93 < equal / 4000 < 0.97


def test_equal_models_are_judged_equal_by_accuracy_19_times_out_of_20() -> None:
    random = np.random.default_rng(6)
    for share in (0.5, 0.9, 0.97):
        scores = random.binomial(400, share, (4000, 2)) / 4
        equal = [
            between_accuracies(float(a), float(b), 400).relation(float(b), float(a)) == "equal"
            for a, b in scores
        ]
        assert np.mean(equal) > 0.935


def test_perfect_score_still_has_a_tolerance() -> None:
    tolerance = between_accuracies(100.0, 100.0, 10)
    share = 12 / 14
    assert tolerance.value == pytest.approx(
        1.96 * math.sqrt(2 * share * (1 - share) / 10) * 100, rel=1e-6
    )


def test_tolerance_of_a_loss_is_the_relative_error_of_the_error_count() -> None:
    """A thousand samples, half of them wrong: the count of wrong ones varies by 3.16 %."""
    tolerance = between_losses(2.0, (50.0, 50.0), 1000)
    assert tolerance.value == pytest.approx(2.0 * 1.96 * math.sqrt(2) * 0.0316, rel=0.01)
