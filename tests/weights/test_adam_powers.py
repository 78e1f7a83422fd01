"""Updates told by Adam's powers: the inverse of TensorFlow's chain of products."""

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
def test_a_power_is_the_product_that_tensorflow_makes(updates: int) -> None:
    for beta in BETAS:
        expected = chain(beta, updates)
        assert power_after(beta, updates) == (expected if expected >= 1.2e-38 else 0.0)


@pytest.mark.parametrize("updates", [0, 1, 5, 826, 829, 40_000, 87_000])
def test_updates_are_exact_until_both_powers_have_underflowed(updates: int) -> None:
    powers = [chain(beta, updates) for beta in BETAS]
    assert updates_made(powers, BETAS) == updates
    assert not have_underflowed(powers)


def test_powers_that_have_underflowed_tell_nothing() -> None:
    powers = [power_after(beta, 90_000) for beta in BETAS]
    assert have_underflowed(powers)
    assert updates_made(powers, BETAS) is None


def test_a_beta_of_zero_leaves_it_to_the_other_one() -> None:
    powers = [power_after(beta, 7) for beta in (0.0, 0.9)]
    assert powers[0] == 0.0
    assert updates_made(powers, (0.0, 0.9)) == 7


@pytest.mark.parametrize("powers", [(0.5**4, 0.999**4), (0.9**4, 1.5), (0.9**4, 0.999**9)])
def test_powers_of_other_betas_tell_nothing(powers: tuple[float, float]) -> None:
    assert updates_made(powers, BETAS) is None


def test_a_beta_next_to_one_costs_no_memory() -> None:
    assert updates_made([power_after(0.9999999, 1000)] * 2, (0.9999999, 0.9999999)) == 1000
    assert power_after(0.9999999, 10**7) == pytest.approx(np.exp(-1.0), rel=0.2)
