"""How many updates TensorFlow's Adam has made, from the powers that it saves.

`AdamOptimizer` multiplies `beta1_power` and `beta2_power` by their beta at every update, in
float32, starting with the betas themselves: after t updates they are beta^(t + 1), rounded as that
chain of products is. Unlike `global_step`, which every script counts differently, they count
updates. 0.9^t underflows after 828 updates, 0.999^t after 87,000.
"""

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

_SMALLEST = float(np.finfo(np.float32).tiny)
"""Below this, TensorFlow flushes to zero, or multiplying by 0.999 no longer changes the value."""
_MAX_UPDATES = 1 << 20
"""With a beta closer to 1 than 0.9999, powers last longer than needed."""


def power_after(beta: float, updates: int) -> float:
    """TensorFlow's power of a beta after this many updates; 0 if it has underflowed."""
    powers = _powers(beta)
    if updates < len(powers):
        return float(powers[updates])
    power = float(np.float32(beta)) ** (updates + 1.0)
    return power if power >= _SMALLEST else 0.0


def updates_made(powers: Sequence[float], betas: Sequence[float]) -> int | None:
    """How many updates an Adam has made.

    Args:
        powers: `beta1_power` and `beta2_power`.
        betas: The optimizer's betas.

    Returns:
        The number, or None if every power has underflowed or one belongs to another beta.
    """
    candidates: set[int] = set()
    for power, beta in zip(powers, betas, strict=True):
        if power < _SMALLEST:
            continue
        updates = _updates(power, beta)
        if updates is None:
            return None
        candidates.add(updates)
    # Powers computed directly differ in their last digits from repeated products.
    return max(candidates) if candidates and max(candidates) - min(candidates) <= 1 else None


def have_underflowed(powers: Sequence[float]) -> bool:
    """Whether the powers no longer carry information."""
    return all(power < _SMALLEST for power in powers)


def _updates(power: float, beta: float) -> int | None:
    powers = _powers(beta)
    if not len(powers) or not power <= 1.0:
        return None
    position = int(np.searchsorted(-powers, -power))
    neighbours = [index for index in (position - 1, position) if 0 <= index < len(powers)]
    best = min(neighbours, key=lambda index: abs(float(powers[index]) - power))
    # Anything within half a step counts as that step.
    deviation = abs(power / float(powers[best]) - 1.0)
    return best if deviation < (1.0 - beta) / 2.0 else None


@lru_cache(maxsize=8)
def _powers(beta: float) -> NDArray[np.float32]:
    """The powers after 0, 1, 2, ... updates, until they underflow."""
    if not 0.0 < beta < 1.0:
        return np.empty(0, dtype=np.float32)
    length = min(_MAX_UPDATES, int(np.log(_SMALLEST) / np.log(beta)) + 2)
    powers = np.multiply.accumulate(np.full(length, beta, dtype=np.float32))
    return powers[powers >= _SMALLEST]
