"""Finds the smallest set of op types with which a training passes, in few trainings."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass


class NoTrialsLeft(Exception):
    """Raised if no more trials are allowed."""


@dataclass(frozen=True, kw_only=True)
class Smallest:
    """A set that passes.

    Attributes:
        kept: Its members, in the order of the ranking.
        is_minimal: Whether leaving out any one member was tried, and fails.
    """

    kept: tuple[str, ...]
    is_minimal: bool


def smallest_set(
    ranked: Sequence[str],
    sure: Collection[str],
    passes: Callable[[Sequence[str]], bool],
) -> Smallest:
    """Find the smallest set of members that passes: first the length of the shortest passing prefix
    of the ranking, by doubling and bisection; then which of its members are unnecessary: all but
    the last at once, then one at a time.

    If a larger set never fails when a smaller one passes, the result is a smallest one, whatever
    the ranking; a good ranking makes it fast.

    Args:
        ranked: All members, most likely first. All of them together are known to pass.
        sure: Members known to be needed, first in the ranking; they are not tried.
        passes: Tries a set; may raise `NoTrialsLeft`.
    """
    first = len(sure)
    assert set(ranked[:first]) == set(sure), "needed members are ranked first"
    tries = _Tries(ranked, passes)
    try:
        passing = _prefix(tries, first)
        # This prefix without its last member was tried and failed.
        unproven, last = ranked[first : passing - 1], ranked[max(passing - 1, 0) : passing]
        if passing > first and not (len(unproven) > 1 and tries.passes((*ranked[:first], *last))):
            for member in reversed(unproven):
                tries.passes(tuple(candidate for candidate in tries.best if candidate != member))
    except NoTrialsLeft:
        return Smallest(kept=tries.best, is_minimal=False)
    return Smallest(kept=tries.best, is_minimal=True)


class _Tries:
    """Tries sets, none of them twice, and records the smallest that passed."""

    def __init__(self, ranked: Sequence[str], passes: Callable[[Sequence[str]], bool]) -> None:
        self._passes = passes
        self._results: dict[tuple[str, ...], bool] = {}
        self.best = tuple(ranked)

    def passes(self, kept: Sequence[str]) -> bool:
        key = tuple(kept)
        if key not in self._results:
            self._results[key] = self._passes(key)
        if self._results[key] and len(key) < len(self.best):
            self.best = key
        return self._results[key]


def _prefix(tries: _Tries, first: int) -> int:
    """Length of the shortest passing prefix of the ranking; at least `first`."""
    ranked = tries.best
    if tries.passes(ranked[:first]):
        return first
    failing, passing, step = first, len(ranked), 1
    while failing + step < passing:
        if tries.passes(ranked[: failing + step]):
            passing = failing + step
        else:
            failing, step = failing + step, 2 * step
    while passing - failing > 1:
        middle = (failing + passing) // 2
        if tries.passes(ranked[:middle]):
            passing = middle
        else:
            failing = middle
    return passing
