"""Which host call fills each gap between ops, for all gaps at once."""

from typing import Any

import numpy as np
import numpy.typing as npt

_Integers = npt.NDArray[np.int64]


def filling_calls(
    gap_starts: _Integers, gap_ends: _Integers, starts: _Integers, ends: _Integers
) -> _Integers:
    """The call that covers most of each gap; among equals the innermost, which starts last.

    Args:
        gap_starts: Begins of gaps that do not overlap, in order.
        gap_ends: Their ends.
        starts: Begins of calls in order, of equal ones the longer first.
        ends: Their ends.

    Returns:
        The position of a call for each gap; -1 where no call touches it.
    """
    found: npt.NDArray[Any] = np.full(len(gap_starts), -1, np.int64)
    if not len(gap_starts) or not len(starts):
        return found
    gaps, calls, inside = map(
        np.concatenate,
        zip(
            _around(gap_starts, gap_ends, starts, ends),
            _beginning(gap_starts, gap_ends, starts, ends),
            _ending(gap_starts, gap_ends, starts, ends),
            strict=True,
        ),
    )
    order = np.lexsort((calls, inside, gaps))
    gaps, calls = gaps[order], calls[order]
    last = np.append(gaps[1:] != gaps[:-1], True)[: len(gaps)]
    found[gaps[last]] = calls[last]
    return found


_Pairs = tuple[_Integers, _Integers, _Integers]
"""Gaps, calls, and how much of each gap its call covers."""


def _around(
    gap_starts: _Integers, gap_ends: _Integers, starts: _Integers, ends: _Integers
) -> _Pairs:
    """The innermost of the calls that cover a whole gap.

    Calls that begin later cover later gaps, so those that are still open lie on a stack.
    """
    first = np.searchsorted(gap_starts, starts, side="left")
    beyond = np.searchsorted(gap_ends, ends, side="right")
    covering = np.flatnonzero(beyond > first)
    opens, closes = first[covering].tolist(), beyond[covering].tolist()
    innermost = [-1] * len(gap_starts)
    stack: list[int] = []
    arrived = 0
    for gap in range(len(gap_starts)):
        while arrived < len(opens) and opens[arrived] <= gap:
            stack.append(arrived)
            arrived += 1
        while stack and closes[stack[-1]] <= gap:
            stack.pop()
        if stack:
            innermost[gap] = stack[-1]
    chosen = np.asarray(innermost, np.int64)
    gaps = np.flatnonzero(chosen >= 0)
    return gaps, covering[chosen[gaps]], (gap_ends - gap_starts)[gaps]


def _beginning(
    gap_starts: _Integers, gap_ends: _Integers, starts: _Integers, ends: _Integers
) -> _Pairs:
    """The calls that start in a gap, one gap each."""
    gap = np.searchsorted(gap_starts, starts, side="right") - 1
    until = np.minimum(ends, gap_ends[gap])
    calls = np.flatnonzero((gap >= 0) & (until > starts))
    return gap[calls], calls, (until - starts)[calls]


def _ending(
    gap_starts: _Integers, gap_ends: _Integers, starts: _Integers, ends: _Integers
) -> _Pairs:
    """The calls that started before a gap and end in it, one gap each."""
    gap = np.searchsorted(gap_starts, ends, side="left") - 1
    begun = (gap >= 0) & (starts < gap_starts[gap]) & (ends <= gap_ends[gap])
    calls = np.flatnonzero(begun)
    return gap[calls], calls, (ends - gap_starts[gap])[calls]
