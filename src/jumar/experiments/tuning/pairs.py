"""Whether one setting is faster than another, decided from pairs of times taken in turn.

Pure functions of measured numbers. The time of a step on a shared machine is skewed and has
outliers, so from six pairs on the interval is that of Wilcoxon's signed-rank test (Hodges and
Lehmann, Annals of Mathematical Statistics 34, 1963), which assumes no distribution. Below six pairs
that test has no interval of 95 %, and Student's is taken, on logarithms.
"""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import combinations_with_replacement
from typing import Final, Literal

Pair = tuple[float, float]
"""Seconds a step: of the setting that is compared with, and of the candidate."""

LEAST_GAIN: Final = 1.01
"""A smaller speedup is not worth a setting that differs from the recipe's."""
LEAST_PAIRS: Final = 3
_LEVEL: Final = 0.05
_SIGNED_RANK_FROM: Final = 6
_STUDENT: Final = {3: 4.303, 4: 3.182, 5: 2.776}
"""Two-sided 95 % quantiles of Student's distribution, by the number of pairs."""

Verdict = Literal["faster", "not faster", "undecided"]


@dataclass(frozen=True, kw_only=True)
class Speedup:
    """How many times as fast the candidate is.

    Attributes:
        ratio: The estimate.
        low: Lower end of the 95 % interval.
        high: Upper end of it.
        pairs: How many pairs it is computed from.
    """

    ratio: float
    low: float
    high: float
    pairs: int

    def text(self) -> str:
        """The speedup as it is printed."""
        return f"{self.ratio:.3f} times as fast ({self.low:.3f} to {self.high:.3f})"


def speedup(pairs: Sequence[Pair]) -> Speedup:
    """Estimate the speedup with its 95 % interval.

    Args:
        pairs: At least three.
    """
    logs = [math.log(base / candidate) for base, candidate in pairs]
    middle, half_widths = _signed_rank(logs) if len(logs) >= _SIGNED_RANK_FROM else _student(logs)
    low, high = half_widths
    return Speedup(ratio=math.exp(middle), low=math.exp(low), high=math.exp(high), pairs=len(logs))


def judge(pairs: Sequence[Pair], *, most: int) -> Verdict | None:
    """Decide a race as soon as the interval allows it.

    Args:
        pairs: Those measured so far.
        most: After how many the race ends in any case.

    Returns:
        `faster` if the interval lies above 1 and the estimate is worth it, `not faster` if no
        speedup worth having lies in the interval, `undecided` if the pairs are used up; None if
        another pair is needed.
    """
    if len(pairs) < LEAST_PAIRS:
        return None if len(pairs) < most else "undecided"
    measured = speedup(pairs)
    if measured.high < LEAST_GAIN:
        return "not faster"
    if is_faster(measured):
        return "faster"
    return "undecided" if len(pairs) >= most else None


def is_faster(measured: Speedup) -> bool:
    """Whether a speedup is proved: its interval excludes 1, and it is at least 1 %."""
    return measured.low > 1.0 and measured.ratio >= LEAST_GAIN


def _student(logs: Sequence[float]) -> tuple[float, tuple[float, float]]:
    mean = statistics.fmean(logs)
    half = _STUDENT[len(logs)] * statistics.stdev(logs) / math.sqrt(len(logs))
    return mean, (mean - half, mean + half)


def _signed_rank(logs: Sequence[float]) -> tuple[float, tuple[float, float]]:
    """The median of the means of all pairs of values, and the interval around it."""
    means = sorted((one + other) / 2 for one, other in combinations_with_replacement(logs, 2))
    cut = _critical(len(logs))
    return statistics.median(means), (means[cut], means[-1 - cut])


@cache
def _critical(count: int) -> int:
    """How many means lie outside of the interval at each end.

    The largest k for which the signed-rank statistic is below k with at most half of the level.
    """
    ways = [1]
    for rank in range(1, count + 1):
        longer = [*ways, *([0] * rank)]
        for total, number in enumerate(ways):
            longer[total + rank] += number
        ways = longer
    below, cut = 0, 0
    while (below + ways[cut]) / 2**count <= _LEVEL / 2:
        below += ways[cut]
        cut += 1
    return cut - 1
