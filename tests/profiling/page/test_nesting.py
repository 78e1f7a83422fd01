"""Calls of the host nest as on their thread's stack, and the tree adds them up."""

from collections.abc import Sequence

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jumar.profiling.page import nesting
from jumar.profiling.page.nesting import call_tree, with_depths

Call = tuple[int, int, int, int, int]
"""Thread, depth, start, end, label."""


@st.composite
def stacks(draw: st.DrawFn) -> list[Call]:
    """Calls as threads make them: each inside its caller, or next to it."""
    calls: list[Call] = []

    def call(thread: int, depth: int, at: int) -> int:
        start = at
        end = at + draw(st.integers(0, 2))
        label = draw(st.integers(0, 2))
        for _ in range(draw(st.integers(0, 2)) if depth < 3 else 0):
            end = call(thread, depth + 1, end) + draw(st.integers(0, 1))
        end = max(end, start + 1)
        calls.append((thread, depth, start, end, label))
        return end

    for thread in range(draw(st.integers(1, 2))):
        at = 0
        for _ in range(draw(st.integers(0, 3))):
            at = call(thread, 0, at) + draw(st.integers(0, 1))
    return draw(st.permutations(calls))


def _table(calls: Sequence[Call]) -> pl.DataFrame:
    rows = [(thread, start, end, label) for thread, _, start, end, label in calls]
    schema = {name: pl.Int64() for name in ("thread_id", "start", "end", "label")}
    return pl.DataFrame(rows, schema=schema, orient="row")


@given(stacks())
def test_depth_of_a_call_is_the_stack_depth_at_its_start(calls: list[Call]) -> None:
    nested = with_depths(_table(calls))
    expected = sorted((thread, start, depth, end) for thread, depth, start, end, _ in calls)
    assert sorted(nested.select("thread_id", "start", "depth", "end").rows()) == expected


@given(stacks())
def test_tree_time_equals_outermost_calls_and_children_never_exceed_parents(
    calls: list[Call],
) -> None:
    trees = call_tree(with_depths(_table(calls)), ["first", "second"])
    for place, name in enumerate(["first", "second"]):
        outermost = [
            end - start for thread, depth, start, end, _ in calls if (thread, depth) == (place, 0)
        ]
        totals = [total for title, total, _, _ in trees if title == name]
        assert totals == ([sum(outermost)] if outermost else [])
    assert sum(_counted(tree) for tree in trees) == len(calls)
    waiting = list(trees)
    while waiting:
        _, total, _, inner = waiting.pop()
        assert sum(node[1] for node in inner) <= total
        waiting += inner


def _counted(node: list) -> int:
    return node[2] + sum(map(_counted, node[3]))


def test_equally_named_calls_are_merged_only_under_the_same_parent() -> None:
    calls = [
        (0, 0, 0, 10, 1),
        (0, 1, 2, 5, 2),
        (0, 0, 10, 14, 1),
        (0, 1, 11, 12, 2),
        (0, 0, 20, 21, 2),
    ]
    [tree] = call_tree(with_depths(_table(calls)), ["main"])
    assert tree == ["main", 15, 0, [[1, 14, 2, [[2, 4, 2, []]]], [2, 1, 1, []]]]


def test_tree_of_many_names_keeps_the_longest(monkeypatch) -> None:
    monkeypatch.setattr(nesting, "MAX_NODES", 3)
    calls = [(0, 0, 100 * label, 100 * label + label + 1, label) for label in range(10)]
    [tree] = call_tree(with_depths(_table(calls)), ["main"])
    assert [node[0] for node in tree[3]] == [9, 8]
    assert tree[1] == sum(range(1, 11))


@pytest.mark.parametrize(("most", "names"), [(4, [3, 2, 1]), (3, [3, 2]), (2, [3]), (9, [3, 2, 1])])
def test_tree_size_is_limited_including_its_thread(
    most: int, names: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert nesting.MAX_NODES == 4000
    monkeypatch.setattr(nesting, "MAX_NODES", most)
    calls = [(0, 0, 10 * label, 10 * label + label, label) for label in (1, 2, 3)]
    [tree] = call_tree(with_depths(_table(calls)), ["main"])
    assert [node[0] for node in tree[3]] == names


def test_threads_without_calls_have_no_tree_and_the_longest_is_first() -> None:
    calls = [(0, 0, 0, 5, 1), (2, 0, 0, 9, 1), (2, 1, 3, 4, 1)]
    assert call_tree(with_depths(_table(calls)), ["a", "b", "c"]) == [
        ["c", 9, 0, [[1, 9, 1, [[1, 1, 1, []]]]]],
        ["a", 5, 0, [[1, 5, 1, []]]],
    ]
