"""Calls that fill gaps, against a search through all calls."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from jumar.profiling.views.gap_calls import filling_calls

_EDGES = st.lists(st.integers(0, 60), min_size=2, max_size=16, unique=True)
_CALLS = st.lists(st.tuples(st.integers(0, 60), st.integers(1, 40)), max_size=15)


def _searched(gap: tuple[int, int], calls: list[tuple[int, int]]) -> int:
    best, found = 0, -1
    for at, (start, end) in enumerate(calls):
        inside = min(end, gap[1]) - max(start, gap[0])
        if inside > 0 and inside >= best:
            best, found = inside, at
    return found


@given(_EDGES, _CALLS)
@settings(max_examples=300)
def test_gap_gets_the_call_covering_most_of_it_with_ties_to_the_innermost(
    edges: list[int], sizes: list[tuple[int, int]]
) -> None:
    edges = sorted(edges)
    gaps = list(zip(edges[::2], edges[1::2], strict=False))
    calls = sorted(((s, s + size) for s, size in sizes), key=lambda call: (call[0], -call[1]))
    found = filling_calls(
        np.array([start for start, _ in gaps]),
        np.array([end for _, end in gaps]),
        np.array([start for start, _ in calls], np.int64),
        np.array([end for _, end in calls], np.int64),
    )
    assert found.tolist() == [_searched(gap, calls) for gap in gaps]


def test_early_call_is_found_before_thousands_of_short_ones() -> None:
    short = np.arange(1, 20_001)
    starts, ends = np.append(0, short), np.append(100_000, short + 1)
    found = filling_calls(np.array([50_000]), np.array([60_000]), starts, ends)
    assert found.tolist() == [0]
