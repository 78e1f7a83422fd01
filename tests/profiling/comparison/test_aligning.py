"""Ops of two steps find each other."""

import time
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from jumar.profiling.comparison.aligning import Key, align, longest_increasing


def _key(text: str) -> Key:
    return Key(text, "", "", text)


_STEPS = st.lists(st.sampled_from("abcdef"), max_size=40)


@given(st.lists(st.integers(0, 20)))
def test_what_increases_is_found_in_order(values: list[int]) -> None:
    found = [values[place] for place in longest_increasing(values)]
    assert all(one < other for one, other in pairwise(found))


@given(_STEPS, _STEPS)
def test_every_row_has_one_partner_or_none(before: list[str], after: list[str]) -> None:
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


def test_a_newer_version_of_an_op_is_the_same_op() -> None:
    before = [Key("MatMul", "2,2", "", "matmul")]
    after = [Key("MatMulV2", "2,2", "", "matmul")]
    assert align(before, after).pairs == ((0, 0),)


def test_a_hundred_thousand_ops_take_less_than_two_seconds() -> None:
    before = [_key(f"{row % 997}") for row in range(100_000)]
    after = [key for row, key in enumerate(before) if row % 10]
    begin = time.thread_time()
    found = align(before, after)
    assert time.thread_time() - begin < 2
    assert len(found.pairs) == 90_000
