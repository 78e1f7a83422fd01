"""Decide whether one setting is faster than another, from pairs of times measured alternately.

All functions are pure. Step times on a shared machine are skewed and have outliers. From six pairs
on, the estimate is therefore the median of the ratios, and its interval that of the sign test: it
assumes no distribution, and two disturbed pairs of twelve do not widen it. That test has no 95 %
interval for fewer than six pairs. For those, Student's interval on logarithms is used, but only to
reject slower candidates, since with three pairs it is too unreliable if blocks are disturbed.
"""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Final, Literal

Pair = tuple[float, float]
"""Seconds per step of the reference and of the candidate."""

MIN_GAIN: Final = 1.01
"""Minimum speed-up that justifies a setting other than the recipe's."""
PROMISING: Final = 1.05
"""Minimum estimate that justifies a longer race."""
MIN_PAIRS: Final = 3
_LEVEL: Final = 0.05
_LONG_RACE_LEVEL: Final = 0.002
"""Keeps equal settings from winning more races by continuing: 13 to 17 of 300 on simulated
times."""
_MIN_SIGN_TEST_PAIRS: Final = 6
_STUDENT: Final = {3: 4.303, 4: 3.182, 5: 2.776}
"""Two-sided 95 % quantiles of Student's distribution, by the number of pairs."""

Verdict = Literal["faster", "not faster", "undecided"]


@dataclass(frozen=True, kw_only=True)
class Speedup:
    """The candidate's speed-up.

    Attributes:
        ratio: The estimate.
        low: Lower bound of the 95 % interval.
        high: Upper bound of the 95 % interval.
        pairs: Number of pairs.
    """

    ratio: float
    low: float
    high: float
    pairs: int

    def text(self) -> str:
        """Return the speed-up as text."""
        return f"{self.ratio:.3f} times as fast ({self.low:.3f} to {self.high:.3f})"


def speedup(pairs: Sequence[Pair]) -> Speedup:
    """Estimate the speed-up with its 95 % interval.

    Args:
        pairs: At least three pairs.
    """
    logs = [math.log(base / candidate) for base, candidate in pairs]
    middle, (low, high) = _sign_test(logs) if len(logs) >= _MIN_SIGN_TEST_PAIRS else _student(logs)
    return Speedup(ratio=math.exp(middle), low=math.exp(low), high=math.exp(high), pairs=len(logs))


def judge(
    pairs: Sequence[Pair], *, max_pairs: int, max_if_promising: int | None = None
) -> Verdict | None:
    """Decide a race as soon as the interval allows it.

    Args:
        pairs: The pairs so far.
        max_pairs: Maximum number of pairs.
        max_if_promising: Maximum if the estimated gain is at least `PROMISING`, so that it is not
            lost in noise; `max_pairs` by default.

    Returns:
        `faster` if the interval is above 1 and the estimate is worthwhile, `not faster` if the
        interval contains no worthwhile speed-up, `undecided` if the pairs are used up; None if
        another pair is needed.
    """
    if len(pairs) < MIN_PAIRS:
        return None if len(pairs) < max_pairs else "undecided"
    measured = speedup(pairs)
    if measured.high < MIN_GAIN:
        return "not faster"
    if (
        len(pairs) >= _MIN_SIGN_TEST_PAIRS
        and is_faster(measured)
        and (len(pairs) <= max_pairs or _is_certain(pairs))
    ):
        return "faster"
    if measured.ratio >= PROMISING and max_if_promising is not None:
        max_pairs = max_if_promising
    return "undecided" if len(pairs) >= max_pairs else None


def _is_certain(pairs: Sequence[Pair]) -> bool:
    """Return whether the interval excludes 1 at the stricter level of a longer race.

    If it is checked repeatedly, a 95 % interval excludes 1 by chance too often.
    """
    slower = sum(base <= candidate for base, candidate in pairs)
    return slower <= _num_outside(len(pairs), _LONG_RACE_LEVEL)


def is_faster(measured: Speedup) -> bool:
    """Return whether a speed-up is significant, with an interval above 1, and at least 1 %."""
    return measured.low > 1.0 and measured.ratio >= MIN_GAIN


def _student(logs: Sequence[float]) -> tuple[float, tuple[float, float]]:
    mean = statistics.fmean(logs)
    half_width = _STUDENT[len(logs)] * statistics.stdev(logs) / math.sqrt(len(logs))
    return mean, (mean - half_width, mean + half_width)


def _sign_test(logs: Sequence[float]) -> tuple[float, tuple[float, float]]:
    """Return the median and the bounds of its interval."""
    sorted_logs = sorted(logs)
    cut = _num_outside(len(logs))
    return statistics.median(sorted_logs), (sorted_logs[cut], sorted_logs[-1 - cut])


@cache
def _num_outside(count: int, level: float = _LEVEL) -> int:
    """Return the number of values outside the interval on each side.

    It follows from the binomial distribution of fair coins, with half of the level per side.
    """
    heads, outside = 0, -1
    while (heads + math.comb(count, outside + 1)) / 2**count <= level / 2:
        outside += 1
        heads += math.comb(count, outside)
    return outside
