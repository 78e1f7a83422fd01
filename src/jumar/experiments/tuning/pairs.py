"""Whether one setting is faster than another, decided from pairs of times taken in turn.

Pure functions of measured numbers. The time of a step on a shared machine is skewed and has
outliers, so from six pairs on the estimate is the median of the ratios, and its interval lies
between two of them, as in the sign test: it assumes no distribution, and two disturbed pairs of
twelve do not widen it. Below six pairs that test has no 95 % interval. Student's, on logarithms, is
used there, and may only end the race of a slower candidate: with three pairs it is too often wrong
if blocks are disturbed.
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
"""A smaller speed-up is not worth a setting that differs from the recipe's."""
PROMISING: Final = 1.05
"""From this estimate on, measuring longer is worthwhile."""
MIN_PAIRS: Final = 3
_LEVEL: Final = 0.05
_LEVEL_OF_LONG_RACES: Final = 0.002
"""With it, equal settings do not win more races by continuing: 13 to 17 of 300 on simulated
times."""
_SIGN_TEST_FROM: Final = 6
_STUDENT: Final = {3: 4.303, 4: 3.182, 5: 2.776}
"""Two-sided 95 % quantiles of Student's distribution, by the number of pairs."""

Verdict = Literal["faster", "not faster", "undecided"]


@dataclass(frozen=True, kw_only=True)
class Speedup:
    """The candidate's speed-up.

    Attributes:
        ratio: The estimate.
        low: Lower end of the 95 % interval.
        high: Upper end of it.
        pairs: Number of pairs.
    """

    ratio: float
    low: float
    high: float
    pairs: int

    def text(self) -> str:
        """The speed-up as printed."""
        return f"{self.ratio:.3f} times as fast ({self.low:.3f} to {self.high:.3f})"


def speedup(pairs: Sequence[Pair]) -> Speedup:
    """Estimate the speedup with its 95 % interval.

    Args:
        pairs: At least three.
    """
    logs = [math.log(base / candidate) for base, candidate in pairs]
    middle, (low, high) = _sign_test(logs) if len(logs) >= _SIGN_TEST_FROM else _student(logs)
    return Speedup(ratio=math.exp(middle), low=math.exp(low), high=math.exp(high), pairs=len(logs))


def judge(
    pairs: Sequence[Pair], *, most: int, most_if_promising: int | None = None
) -> Verdict | None:
    """Decide a race as soon as the interval allows it.

    Args:
        pairs: The pairs measured so far.
        most: Maximum number of pairs.
        most_if_promising: Maximum if the estimated gain is `PROMISING` or more, so that noise does
            not lose it; `most` if not given.

    Returns:
        `faster` if the interval lies above 1 and the estimate is worth it, `not faster` if the
        interval has no worthwhile speed-up, `undecided` if the pairs are used up; None if another
        pair is needed.
    """
    if len(pairs) < MIN_PAIRS:
        return None if len(pairs) < most else "undecided"
    measured = speedup(pairs)
    if measured.high < MIN_GAIN:
        return "not faster"
    if (
        len(pairs) >= _SIGN_TEST_FROM
        and is_faster(measured)
        and (len(pairs) <= most or _is_beyond_doubt(pairs))
    ):
        return "faster"
    if measured.ratio >= PROMISING and most_if_promising is not None:
        most = most_if_promising
    return "undecided" if len(pairs) >= most else None


def _is_beyond_doubt(pairs: Sequence[Pair]) -> bool:
    """Whether the interval excludes 1 at the stricter level of a longer race.

    Checked repeatedly, a 95 % interval excludes 1 by chance too often.
    """
    slower = sum(base <= candidate for base, candidate in pairs)
    return slower <= _outside(len(pairs), _LEVEL_OF_LONG_RACES)


def is_faster(measured: Speedup) -> bool:
    """Whether a speedup is proved: its interval excludes 1, and it is at least 1 %."""
    return measured.low > 1.0 and measured.ratio >= MIN_GAIN


def _student(logs: Sequence[float]) -> tuple[float, tuple[float, float]]:
    mean = statistics.fmean(logs)
    half = _STUDENT[len(logs)] * statistics.stdev(logs) / math.sqrt(len(logs))
    return mean, (mean - half, mean + half)


def _sign_test(logs: Sequence[float]) -> tuple[float, tuple[float, float]]:
    """The median, and the ends of its interval."""
    sorted_logs = sorted(logs)
    cut = _outside(len(logs))
    return statistics.median(sorted_logs), (sorted_logs[cut], sorted_logs[-1 - cut])


@cache
def _outside(count: int, level: float = _LEVEL) -> int:
    """Number of values outside the interval at each end.

    From the binomial distribution of fair coins, at half of the level per side.
    """
    heads, outside = 0, -1
    while (heads + math.comb(count, outside + 1)) / 2**count <= level / 2:
        outside += 1
        heads += math.comb(count, outside)
    return outside
