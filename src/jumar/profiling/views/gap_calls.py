"""Finds the host call that covers most of each gap between ops, for all gaps at once."""

from typing import Any

import numpy as np
import numpy.typing as npt

_Integers = npt.NDArray[np.int64]


def filling_calls(
    gap_starts: _Integers, gap_ends: _Integers, starts: _Integers, ends: _Integers
) -> _Integers:
    """The call that covers most of each gap; in a tie the innermost, which starts last.

    Args:
        gap_starts: Sorted starts of the gaps, which must not overlap.
        gap_ends: Ends of the gaps.
        starts: Sorted starts of the calls; if equal, the longer call first.
        ends: Ends of the calls.

    Returns:
        The index of a call for each gap; -1 if no call overlaps it.
    """
    best_calls: npt.NDArray[Any] = np.full(len(gap_starts), -1, np.int64)
    if not len(gap_starts) or not len(starts):
        return best_calls
    gaps, calls, inside = map(
        np.concatenate,
        zip(
            _covering_calls(gap_starts, gap_ends, starts, ends),
            _starting_calls(gap_starts, gap_ends, starts, ends),
            _ending_calls(gap_starts, gap_ends, starts, ends),
            strict=True,
        ),
    )
    order = np.lexsort((calls, inside, gaps))
    gaps, calls = gaps[order], calls[order]
    last = np.append(gaps[1:] != gaps[:-1], True)[: len(gaps)]
    best_calls[gaps[last]] = calls[last]
    return best_calls


_Pairs = tuple[_Integers, _Integers, _Integers]
"""Gaps, calls, and how much of each gap its call covers."""


def _covering_calls(
    gap_starts: _Integers, gap_ends: _Integers, starts: _Integers, ends: _Integers
) -> _Pairs:
    """The innermost call that covers each whole gap.

    Calls that start later cover later gaps, so open calls are kept on a stack.
    """
    first = np.searchsorted(gap_starts, starts, side="left")
    beyond = np.searchsorted(gap_ends, ends, side="right")
    covering = np.flatnonzero(beyond > first)
    opens, closes = first[covering].tolist(), beyond[covering].tolist()
    innermost = [-1] * len(gap_starts)
    stack: list[int] = []
    next_call = 0
    for gap in range(len(gap_starts)):
        while next_call < len(opens) and opens[next_call] <= gap:
            stack.append(next_call)
            next_call += 1
        while stack and closes[stack[-1]] <= gap:
            stack.pop()
        if stack:
            innermost[gap] = stack[-1]
    chosen = np.asarray(innermost, np.int64)
    gaps = np.flatnonzero(chosen >= 0)
    return gaps, covering[chosen[gaps]], (gap_ends - gap_starts)[gaps]


def _starting_calls(
    gap_starts: _Integers, gap_ends: _Integers, starts: _Integers, ends: _Integers
) -> _Pairs:
    """The calls that start in a gap, with that gap."""
    gap = np.searchsorted(gap_starts, starts, side="right") - 1
    until = np.minimum(ends, gap_ends[gap])
    calls = np.flatnonzero((gap >= 0) & (until > starts))
    return gap[calls], calls, (until - starts)[calls]


def _ending_calls(
    gap_starts: _Integers, gap_ends: _Integers, starts: _Integers, ends: _Integers
) -> _Pairs:
    """The calls that start before a gap and end in it, with that gap."""
    gap = np.searchsorted(gap_starts, ends, side="left") - 1
    ends_inside = (gap >= 0) & (starts < gap_starts[gap]) & (ends <= gap_ends[gap])
    calls = np.flatnonzero(ends_inside)
    return gap[calls], calls, (ends - gap_starts[gap])[calls]
