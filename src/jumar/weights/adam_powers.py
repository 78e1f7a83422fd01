"""Derive the number of updates made by TensorFlow's Adam from the powers it saves.

`AdamOptimizer` multiplies `beta1_power` and `beta2_power` by their beta at every update, in
float32, starting with the betas themselves: after t updates they are beta^(t + 1), with the
rounding of t successive products. They count updates, unlike `global_step`, which every script
counts differently. 0.9^t underflows after 828 updates, 0.999^t after 87,000.
"""

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

_SMALLEST = float(np.finfo(np.float32).tiny)
"""Below this, TensorFlow flushes to zero, or multiplying by 0.999 no longer changes the value."""
_MAX_UPDATES = 1 << 20
"""Limits the table for betas above 0.9999, whose powers underflow only after more updates."""


def power_after(beta: float, updates: int) -> float:
    """Return TensorFlow's power of a beta after this many updates; 0 if it has underflowed."""
    powers = _powers(beta)
    if updates < len(powers):
        return float(powers[updates])
    power = float(np.float32(beta)) ** (updates + 1.0)
    return power if power >= _SMALLEST else 0.0


def updates_made(powers: Sequence[float], betas: Sequence[float]) -> int | None:
    """Return the number of updates an Adam optimizer has made.

    Args:
        powers: `beta1_power` and `beta2_power`.
        betas: The optimizer's betas.

    Returns:
        The number; None if every power has underflowed, or one is not a power of its beta.
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
    """Whether all powers have underflowed, so that they no longer tell the number of updates."""
    return all(power < _SMALLEST for power in powers)


def _updates(power: float, beta: float) -> int | None:
    powers = _powers(beta)
    if not len(powers) or not power <= 1.0:
        return None
    position = int(np.searchsorted(-powers, -power))
    neighbours = [index for index in (position - 1, position) if 0 <= index < len(powers)]
    best = min(neighbours, key=lambda index: abs(float(powers[index]) - power))
    # Within half the distance to the next power, the value counts as this power.
    deviation = abs(power / float(powers[best]) - 1.0)
    return best if deviation < (1.0 - beta) / 2.0 else None


@lru_cache(maxsize=8)
def _powers(beta: float) -> NDArray[np.float32]:
    """Return the powers after 0, 1, 2, ... updates, until they underflow."""
    if not 0.0 < beta < 1.0:
        return np.empty(0, dtype=np.float32)
    length = min(_MAX_UPDATES, int(np.log(_SMALLEST) / np.log(beta)) + 2)
    powers = np.multiply.accumulate(np.full(length, beta, dtype=np.float32))
    return powers[powers >= _SMALLEST]
