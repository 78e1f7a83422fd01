"""The smallest set of op types with which a run passes."""

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from jumar.precision.searching.smallest import NoTrialsLeft, Smallest, smallest_set

NAMES = [chr(ord("a") + place) for place in range(12)]


class Oracle:
    """A run that passes if all needed members stay; counts how often it is asked."""

    def __init__(self, needed: set[str], most: int = 1000) -> None:
        self.needed, self.most = needed, most
        self.asked: list[tuple[str, ...]] = []

    def __call__(self, kept: Sequence[str]) -> bool:
        if len(self.asked) == self.most:
            raise NoTrialsLeft
        self.asked.append(tuple(kept))
        return self.needed <= set(kept)


@given(st.sets(st.sampled_from(NAMES), min_size=0), st.integers(0, 3))
def test_only_needed_members_are_kept(needed: set[str], num_sure: int) -> None:
    sure = set(NAMES[:num_sure])
    oracle = Oracle(needed | sure)
    assert smallest_set(NAMES, sure, oracle) == Smallest(
        kept=tuple(name for name in NAMES if name in needed | sure), is_minimal=True
    )
    assert len(oracle.asked) == len(set(oracle.asked)), "no set is tried twice"


@given(st.sets(st.sampled_from(NAMES)), st.integers(0, 6))
def test_when_trials_run_out_the_set_still_passes(needed: set[str], most: int) -> None:
    oracle = Oracle(needed, most)
    smallest = smallest_set(NAMES, (), oracle)
    assert needed <= set(smallest.kept)
    if smallest.is_minimal:
        assert needed == set(smallest.kept)


def test_good_ranking_needs_few_trials() -> None:
    asked: list[int] = []
    for count in range(5):
        oracle = Oracle(set(NAMES[:count]))
        smallest_set(NAMES, (), oracle)
        asked.append(len(oracle.asked))
    assert asked == [1, 2, 5, 7, 10]


def test_only_the_culprit_among_many_is_kept() -> None:
    oracle = Oracle({"h"})
    assert smallest_set(NAMES, (), oracle).kept == ("h",)
    assert len(oracle.asked) <= 8


def test_sure_members_are_never_tried() -> None:
    oracle = Oracle({"a", "b", "c"})
    assert smallest_set(NAMES, ("b", "a"), oracle).kept == ("a", "b", "c")
    assert all({"a", "b"} <= set(kept) for kept in oracle.asked)
