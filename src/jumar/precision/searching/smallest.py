"""Find the smallest set of op types with which a training run passes, in few runs."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass


class NoTrialsLeft(Exception):
    """Raised if no more trials are allowed."""


@dataclass(frozen=True, kw_only=True)
class Smallest:
    """The smallest set found that passes.

    Attributes:
        kept: Its members, in the order of the ranking.
        is_minimal: Whether it is known that no member can be removed.
    """

    kept: tuple[str, ...]
    is_minimal: bool


def smallest_set(
    ranked: Sequence[str],
    sure: Collection[str],
    passes: Callable[[Sequence[str]], bool],
) -> Smallest:
    """Find the smallest set of members that passes.

    First find the shortest prefix of the ranking that passes, by doubling and bisection. Then try
    to remove its members: all but the last at once, then one at a time. If a set passes whenever a
    subset passes, no member of the result can be removed, regardless of the ranking, but a good
    ranking saves trials.

    Args:
        ranked: All members, most likely first. The set of all is known to pass.
        sure: Members that are known to be needed, first in the ranking; they are not tried.
        passes: Tries a set; may raise `NoTrialsLeft`.
    """
    first = len(sure)
    assert set(ranked[:first]) == set(sure), "needed members are ranked first"
    tries = _Tries(ranked, passes)
    try:
        passing = _prefix(tries, first)
        # This prefix without its last member has failed.
        unproven, last = ranked[first : passing - 1], ranked[max(passing - 1, 0) : passing]
        if passing > first and not (len(unproven) > 1 and tries.passes((*ranked[:first], *last))):
            for member in reversed(unproven):
                tries.passes(tuple(candidate for candidate in tries.best if candidate != member))
    except NoTrialsLeft:
        return Smallest(kept=tries.best, is_minimal=False)
    return Smallest(kept=tries.best, is_minimal=True)


class _Tries:
    """Tries sets, each only once, and stores the smallest that passed."""

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
    """Return the length of the shortest passing prefix of the ranking, at least `first`."""
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
