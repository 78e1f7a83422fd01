"""Numbers formatted for readers, and axes with round ticks."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

LOGARITHMIC_FROM = 50.0
"""Ratio of largest to smallest value from which a positive axis is logarithmic: below it, the lower
half of a linear axis still shows the differences."""

_LOG_MULTIPLES = (1.0, 2.0, 5.0)
_MIN_RANGE = 1e-300
"""Narrower ranges count as a single value: a fifth of them could underflow to 0."""


@dataclass(frozen=True, kw_only=True)
class Axis:
    """A range of values, how it maps to a length, and the ticks inside the range."""

    low: float
    high: float
    logarithmic: bool
    ticks: Sequence[float]

    def share(self, value: float) -> float:
        """The position of a value: 0 at the low end, 1 at the high end."""
        if self.logarithmic:
            low, high = math.log10(self.low), math.log10(self.high)
            return (math.log10(value) - low) / (high - low)
        return (value - self.low) / (self.high - self.low)


def axis_for(values: Iterable[float], *, may_be_logarithmic: bool) -> Axis:
    """The axis that covers all values, widened to round bounds.

    Args:
        values: Finite numbers, at least one.
        may_be_logarithmic: Whether positive values over a wide range get a logarithmic axis.
    """
    values = list(values)
    low, high = min(values), max(values)
    if may_be_logarithmic and low > 0 and high / low >= LOGARITHMIC_FROM:
        return _logarithmic(low, high)
    return _linear(low, high)


def tick_text(value: float) -> str:
    """The text of a tick or a curve's value, with at most five digits."""
    size = abs(value)
    if value == 0:
        return "0"
    if size >= 1e7 or size < 1e-4:
        mantissa, _, exponent = f"{value:.3e}".partition("e")
        return f"{mantissa.rstrip('0').rstrip('.')}e{int(exponent)}"
    if size >= 1000:
        return f"{value:,.0f}"
    return f"{value:.4g}"


def tick_texts(values: Sequence[float]) -> list[str]:
    """The tick labels of an axis, with enough digits that no two are equal.

    Args:
        values: Distinct numbers.
    """
    texts = [tick_text(value) for value in values]
    for digits in range(5, 18):
        if len(set(texts)) == len(texts):
            break
        texts = [f"{value:,.{digits}g}" for value in values]
    return texts


def _linear(low: float, high: float) -> Axis:
    if high - low < _MIN_RANGE:
        pad = abs(low) * 0.1 if abs(low) > _MIN_RANGE else 1.0
        low, high = low - pad, high + pad
    step = _round_step((high - low) / 5)
    first, last = math.floor(low / step), math.ceil(high / step)
    ticks = [index * step for index in range(first, last + 1)]
    # 3 * 0.1 is 0.30000000000000004, which readers should not see.
    ticks = [float(f"{tick:.12g}") for tick in ticks]
    return Axis(low=ticks[0], high=ticks[-1], logarithmic=False, ticks=ticks)


def _round_step(step: float) -> float:
    power = 10.0 ** math.floor(math.log10(step))
    return next(
        multiple * power for multiple in (1.0, 2.0, 5.0, 10.0) if multiple * power >= step * 0.999
    )


def _logarithmic(low: float, high: float) -> Axis:
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    stride = max(1, round((last - first) / 5))
    multiples = _LOG_MULTIPLES if last - first <= 3 else (1.0,)
    candidates = [
        multiple * 10.0**power for power in range(first, last + 1, stride) for multiple in multiples
    ]
    # An empty decade at an end would squeeze the curves, so the bounds follow the values.
    start, end = low / 1.15, high * 1.15
    ticks = [float(f"{tick:.12g}") for tick in candidates if start <= tick <= end]
    return Axis(low=start, high=end, logarithmic=True, ticks=ticks)
