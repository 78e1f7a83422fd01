"""The decision rule, with pairs whose truth is known."""

import math
import random
from collections.abc import Sequence

import pytest
from hypothesis import given, strategies

from jumar.experiments.tuning import pairs as rule
from jumar.experiments.tuning.pairs import MIN_PAIRS, Pair, Speedup, is_faster, judge, speedup

MOST = 12
MAX_IF_PROMISING = 36
seconds = strategies.floats(1e-4, 1e3)
some_pairs = strategies.lists(strategies.tuples(seconds, seconds), min_size=3, max_size=20)


def planted(
    truth: float, noise: float, count: int, seed: int, *, drifts: bool = True
) -> list[Pair]:
    """Pairs of a candidate that is `truth` times as fast, on a machine whose load drifts.

    One block in fifteen takes twice as long, whichever side it is on.
    """
    draw = random.Random(seed)

    def block(base_s: float) -> float:
        disturbed = 2.0 if draw.random() < 1 / 15 else 1.0
        return base_s * disturbed * math.exp(draw.gauss(0, noise))

    return [
        (block(load), block(load / truth))
        for load in (1 + 0.5 * drifts * math.sin(number) for number in range(count))
    ]


def raced(stream: Sequence[Pair]) -> str:
    """How a race over these pairs ends."""
    for count in range(len(stream) + 1):
        verdict = judge(stream[:count], max_pairs=MOST, max_if_promising=MAX_IF_PROMISING)
        if verdict is not None:
            return verdict
    raise AssertionError("a race ends")


def is_accepted(truth: float, noise: float, seed: int) -> bool:
    """Whether a candidate wins its race and the confirmation in fresh pairs."""
    if raced(planted(truth, noise, MAX_IF_PROMISING, seed)) != "faster":
        return False
    return is_faster(speedup(planted(truth, noise, 16, seed + 10**6)))


@given(some_pairs)
def test_estimate_is_within_its_interval(pairs: list[Pair]) -> None:
    measured = speedup(pairs)
    assert measured.low <= measured.ratio * (1 + 1e-9)
    assert measured.ratio <= measured.high * (1 + 1e-9)


@given(some_pairs)
def test_swapping_the_sides_gives_the_inverse(pairs: list[Pair]) -> None:
    measured, turned = speedup(pairs), speedup([(after, before) for before, after in pairs])
    assert math.log(measured.ratio) == pytest.approx(-math.log(turned.ratio), abs=1e-9)
    assert math.log(measured.low) == pytest.approx(-math.log(turned.high), abs=1e-9)


@given(some_pairs, strategies.floats(0.01, 100))
def test_slowdown_of_both_sides_changes_nothing(pairs: list[Pair], factor: float) -> None:
    scaled = [(before * factor, after * factor) for before, after in pairs]
    assert speedup(scaled).ratio == pytest.approx(speedup(pairs).ratio, rel=1e-9)


@pytest.mark.parametrize(
    ("count", "critical"), [(6, 0), (8, 0), (9, 1), (12, 2), (15, 3), (16, 3), (20, 5)]
)
def test_critical_values_are_those_of_published_tables(count: int, critical: int) -> None:
    assert rule._num_outside(count) == critical  # pyright: ignore[reportPrivateUsage]


@pytest.mark.parametrize("count", [3, 5, 6, 10, 14])
def test_interval_has_its_nominal_coverage(count: int) -> None:
    held = 0
    for seed in range(400):
        measured = speedup(planted(1.1, 0.05, count, seed))
        held += measured.low <= 1.1 <= measured.high
    assert held >= 0.93 * 400


def test_knob_without_effect_rarely_wins_its_race() -> None:
    for noise in (0.02, 0.1, 0.4):
        won = [
            raced(planted(1.0, noise, MAX_IF_PROMISING, seed)) == "faster" for seed in range(300)
        ]
        assert sum(won) <= 18


def test_equal_settings_are_hardly_ever_accepted() -> None:
    for noise in (0.02, 0.1, 0.4):
        assert sum(is_accepted(1.0, noise, seed) for seed in range(300)) <= 6


def test_slower_setting_is_never_accepted() -> None:
    assert not any(is_accepted(0.95, 0.05, seed) for seed in range(300))


def test_large_gain_is_found_even_if_one_block_in_fifteen_is_disturbed() -> None:
    assert sum(is_accepted(1.3, 0.04, seed) for seed in range(200)) >= 170


def test_gain_of_half_a_percent_is_ignored() -> None:
    exact = [(1.005, 1.0), (1.0051, 1.0), (1.0049, 1.0), (1.005, 1.0)]
    assert judge(exact, max_pairs=MOST) == "not faster"
    assert not is_faster(Speedup(ratio=1.005, low=1.004, high=1.006, pairs=15))


def test_gain_whose_interval_contains_1_is_not_accepted() -> None:
    assert not is_faster(Speedup(ratio=1.2, low=0.99, high=1.4, pairs=15))


def test_race_continues_until_its_interval_decides() -> None:
    faster = [(1.5, 1.0), (1.51, 1.0), (1.49, 1.0)] * 2
    assert {judge(faster[:count], max_pairs=MOST) for count in range(6)} == {None}
    assert judge(faster, max_pairs=MOST) == "faster"
    slower = [(after, before) for before, after in faster]
    assert [judge(slower[:count], max_pairs=MOST) for count in (2, 3)] == [None, "not faster"]
    unclear = [(1.0, 1.3), (1.3, 1.0)] * 6
    assert judge(unclear[:11], max_pairs=MOST) is None
    assert judge(unclear, max_pairs=MOST) == "undecided"
    assert judge(unclear[: MIN_PAIRS - 1], max_pairs=MIN_PAIRS - 1) == "undecided"


def test_promising_race_runs_longer() -> None:
    unsteady: list[Pair] = [(1.0, 1 / ratio) for ratio in (1.4, 0.8, 1.3, 1.2, 1.25)] * 8
    assert judge(unsteady[:12], max_pairs=MOST) == "undecided"
    assert judge(unsteady[:12], max_pairs=MOST, max_if_promising=36) is None
    assert judge(unsteady[:36], max_pairs=MOST, max_if_promising=36) == "faster"
    hopeless: list[Pair] = [(1.0, 1 / ratio) for ratio in (1.2, 0.8, 1.01)] * 12
    assert judge(hopeless[:12], max_pairs=MOST, max_if_promising=36) == "undecided"
