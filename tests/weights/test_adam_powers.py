"""The number of updates from Adam's powers: the inverse of TensorFlow's chain of products."""

import numpy as np
import pytest

from jumar.weights.adam_powers import have_underflowed, power_after, updates_made

BETAS = (0.9, 0.999)


def chain(beta: float, updates: int) -> float:
    """The variable as TensorFlow multiplies it, one product at a time."""
    power = np.float32(beta)
    for _ in range(updates):
        power = np.float32(power * np.float32(beta))
    return float(power)


@pytest.mark.parametrize("updates", [0, 1, 5, 827, 828, 10_000, 86_000])
def test_power_is_the_product_tensorflow_computes(updates: int) -> None:
    for beta in BETAS:
        expected = chain(beta, updates)
        assert power_after(beta, updates) == (expected if expected >= 1.2e-38 else 0.0)


@pytest.mark.parametrize("updates", [0, 1, 5, 826, 829, 40_000, 87_000])
def test_updates_are_exact_until_both_powers_have_underflowed(updates: int) -> None:
    powers = [chain(beta, updates) for beta in BETAS]
    assert updates_made(powers, BETAS) == updates
    assert not have_underflowed(powers)


def test_underflowed_powers_give_no_update_count() -> None:
    powers = [power_after(beta, 90_000) for beta in BETAS]
    assert have_underflowed(powers)
    assert updates_made(powers, BETAS) is None


def test_zero_beta_defers_to_the_other_one() -> None:
    powers = [power_after(beta, 7) for beta in (0.0, 0.9)]
    assert powers[0] == 0.0
    assert updates_made(powers, (0.0, 0.9)) == 7


@pytest.mark.parametrize("powers", [(0.5**4, 0.999**4), (0.9**4, 1.5), (0.9**4, 0.999**9)])
def test_powers_of_other_betas_give_no_update_count(powers: tuple[float, float]) -> None:
    assert updates_made(powers, BETAS) is None


def test_beta_close_to_one_needs_no_extra_memory() -> None:
    assert updates_made([power_after(0.9999999, 1000)] * 2, (0.9999999, 0.9999999)) == 1000
    assert power_after(0.9999999, 10**7) == pytest.approx(np.exp(-1.0), rel=0.2)


def test_power_is_zero_below_the_smallest_normal_float() -> None:
    smallest = 2.0**-126
    assert have_underflowed([0.0, smallest / 2])
    assert not have_underflowed([0.0, smallest])
    assert not have_underflowed([0.5, 0.0])
    # 0.5 to the power of 126 is that number, and one more is less.
    assert power_after(0.5, 125) == smallest
    assert power_after(0.5, 126) == 0.0
    assert updates_made([smallest], [0.5]) == 125
    assert updates_made([smallest / 2], [0.5]) is None


@pytest.mark.parametrize("beta", [-0.5, 0.0, 1.0, 1.5])
def test_beta_that_never_shrinks_gives_no_update_count(beta: float) -> None:
    assert updates_made([0.5], [beta]) is None
    assert updates_made([0.5, 0.25], [beta, 0.5]) is None


@pytest.mark.parametrize(
    ("powers", "updates"),
    [
        # Halves: a step is a factor of two, and anything within a quarter of it counts.
        ((0.5,), 0),
        ((0.125 * 1.24,), 2),
        ((0.125 * 0.76,), 2),
        ((0.125 * 1.26,), None),
        ((0.125 * 0.74,), None),
        ((1.0,), None),
        ((1.01,), None),
        ((0.125, 0.125), 2),
        ((0.125, 0.25), 2),
        ((0.0625, 0.125), 3),
        ((0.125, 0.5), None),
        ((), None),
    ],
)
def test_powers_near_a_step_count_as_it_and_must_agree_within_one(
    powers: tuple[float, ...], updates: int | None
) -> None:
    assert updates_made(powers, [0.5] * len(powers)) == updates


def test_number_of_betas_must_match_the_powers() -> None:
    with pytest.raises(ValueError, match="argument"):
        updates_made([0.5], [0.5, 0.5])


def test_powers_beyond_the_longest_chain_are_computed_directly() -> None:
    """With a beta of 1 - 2**-23 they last much longer than a million updates."""
    beta = 1 - 2.0**-23
    assert power_after(beta, 2**21 - 1) == pytest.approx(np.exp(-(2.0**21) / 2**23), rel=1e-6)
    assert power_after(0.5, 2**21) == 0.0
