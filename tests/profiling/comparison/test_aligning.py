"""Ops of two steps find each other."""

import time
from collections.abc import Hashable, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jumar.profiling.comparison.aligning import (
    Key,
    Tokens,
    align_rows,
    longest_increasing,
    token_columns,
)

Pairs = tuple[tuple[int, int], ...]


class Alignment(NamedTuple):
    """Pairs of rows, and the unpaired rows with their gaps."""

    pairs: Pairs
    removed: Pairs
    added: Pairs


def align(before: Sequence[Key], after: Sequence[Key]) -> Alignment:
    """Pair the ops of two steps, as `align_rows` does for many."""
    numbers: dict[Hashable, int] = {}
    sides = [
        Tokens(np.zeros(len(keys), np.int64), *token_columns(keys, numbers))
        for keys in (before, after)
    ]
    found = align_rows(*sides)
    return Alignment(
        tuple(zip(found.left.tolist(), found.right.tolist(), strict=True)),
        tuple(zip(found.removed.tolist(), found.gap_left[found.removed].tolist(), strict=True)),
        tuple(zip(found.added.tolist(), found.gap_right[found.added].tolist(), strict=True)),
    )


def _key(text: str) -> Key:
    return Key(text, "", "", text)


_STEPS = st.lists(st.sampled_from("abcdef"), max_size=40)


@given(st.lists(st.integers(0, 20)))
def test_longest_increasing_subsequence_is_found(values: list[int]) -> None:
    found = [values[place] for place in longest_increasing(values)]
    assert all(one < other for one, other in pairwise(found))


@given(_STEPS, _STEPS)
def test_every_row_has_at_most_one_partner(before: list[str], after: list[str]) -> None:
    found = align([_key(one) for one in before], [_key(one) for one in after])
    left = [row for row, _ in found.pairs] + [row for row, _ in found.removed]
    right = [row for _, row in found.pairs] + [row for row, _ in found.added]
    assert sorted(left) == list(range(len(before)))
    assert sorted(right) == list(range(len(after)))
    assert all(before[one] == after[other] for one, other in found.pairs)
    # What is left over on one side is nowhere on the other one.
    rest = {before[row] for row, _ in found.removed} & {after[row] for row, _ in found.added}
    assert not rest


@given(_STEPS)
def test_equal_steps_are_paired_row_by_row(rows: list[str]) -> None:
    keys = [_key(one) for one in rows]
    assert align(keys, keys).pairs == tuple((row, row) for row in range(len(rows)))


def test_newer_version_of_an_op_is_the_same_op() -> None:
    before = [Key("MatMul", "2,2", "", "matmul")]
    after = [Key("MatMulV2", "2,2", "", "matmul")]
    assert align(before, after).pairs == ((0, 0),)


def test_hundred_thousand_ops_take_less_than_two_seconds() -> None:
    before = [_key(f"{row % 997}") for row in range(100_000)]
    after = [key for row, key in enumerate(before) if row % 10]
    begin = time.thread_time()
    found = align(before, after)
    assert time.thread_time() - begin < 2
    assert len(found.pairs) == 90_000


@given(st.lists(st.integers(0, 9), max_size=12))
def test_no_longer_increasing_subsequence_exists(values: list[int]) -> None:
    best = [0] * len(values)
    for place, value in enumerate(values):
        best[place] = 1 + max((best[at] for at in range(place) if values[at] < value), default=0)
    assert len(longest_increasing(values)) == max(best, default=0)


def test_ops_are_paired_by_order_then_between_equal_neighbours() -> None:
    def keys(text: str) -> list[Key]:
        """`kind.shape` each; the base of a kind is its first letter."""
        rows = [one.partition(".") for one in text.split()]
        return [Key(kind, shape, "m", kind[0]) for kind, _, shape in rows]

    before = keys("anchor.1 x.1 x.2 anchor.2 y1.1 gone.1 anchor.3 moved.1 anchor.4")
    after = keys("moved.1 anchor.1 x.3 anchor.2 y2.1 y2.1 anchor.3 anchor.4 new.1 last.1")
    found = align(before, after)
    # The first x of a gap is paired with that of other shape, y1 with the first y2, and what moved.
    assert found.pairs == ((0, 1), (1, 2), (3, 3), (4, 4), (6, 6), (7, 0), (8, 7))
    assert found.removed == ((2, 1), (5, 2))
    assert found.added == ((5, 2), (8, 4), (9, 4))
    with pytest.raises(AttributeError):
        found.pairs = ()  # pyright: ignore[reportAttributeAccessIssue]


def test_steps_are_paired_one_by_one() -> None:
    def tokens(step: list[int], kinds: list[int]) -> Tokens:
        kind = np.array(kinds, np.int64)
        return Tokens(np.array(step, np.int64), kind, kind + 10, kind + 20)

    aligned = align_rows(tokens([0, 0, 1, 1], [1, 2, 3, 4]), tokens([0, 1, 1, 1], [1, 2, 4, 5]))
    assert (aligned.left.tolist(), aligned.right.tolist()) == ([0, 3], [0, 2])
    assert (aligned.removed.tolist(), aligned.added.tolist()) == ([1, 2], [1, 3])
    # The end of a step and the beginning of the next one are two gaps.
    assert aligned.gap_left.tolist() == [1, 1, 2, 3]
    assert aligned.gap_right.tolist() == [1, 2, 3, 3]
    nothing = align_rows(tokens([], []), tokens([0], [1]))
    assert (nothing.left.tolist(), nothing.added.tolist()) == ([], [0])
    assert align_rows(tokens([], []), tokens([], [])).left.tolist() == []


@given(_STEPS, _STEPS)
def test_common_subsequence_is_kept(before: list[str], after: list[str]) -> None:
    found = align([_key(one) for one in before], [_key(one) for one in after])
    # Of each kind the n-th is paired with the n-th, but for what another gap holds.
    for kind in "abcdef":
        paired = sum(before[left] == kind for left, _ in found.pairs)
        assert paired == min(before.count(kind), after.count(kind))
