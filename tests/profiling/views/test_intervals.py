"""Unions and overlaps, against sets of single nanoseconds."""

import polars as pl
from hypothesis import given, settings
from hypothesis import strategies as st

from jumar.profiling.views.intervals import (
    SPAN,
    count_of,
    difference,
    intersection,
    length,
    segments,
    spans,
    swept,
    union,
)
from jumar.profiling.views.windows import within

INTERVALS = st.lists(st.tuples(st.integers(0, 1), st.integers(0, 40), st.integers(1, 12)))


def table(rows: list[tuple[int, int, int]]) -> pl.DataFrame:
    found = [(rank, start, start + size) for rank, start, size in rows]
    return pl.DataFrame(found, schema=SPAN, orient="row")


def moments(frame: pl.DataFrame) -> set[tuple[int, int]]:
    rows = frame.select(list(SPAN)).iter_rows()
    return {(rank, at) for rank, start, end in rows for at in range(start, end)}


@given(INTERVALS)
@settings(max_examples=30)
def test_union_covers_the_same_moments_once(rows: list[tuple[int, int, int]]) -> None:
    merged = union(table(rows))
    assert moments(merged) == moments(table(rows))
    assert length(merged) == len(moments(merged))


@given(INTERVALS, INTERVALS)
@settings(max_examples=30)
def test_intersection_and_difference_match_moment_sets(
    first: list[tuple[int, int, int]], second: list[tuple[int, int, int]]
) -> None:
    a, b = moments(table(first)), moments(table(second))
    assert moments(intersection(table(first), table(second))) == a & b
    assert moments(difference(table(first), table(second))) == a - b
    assert length(intersection(table(first), table(second))) == len(a & b)


@given(INTERVALS, INTERVALS)
@settings(max_examples=30)
def test_windows_are_filled_by_their_moments(
    windows: list[tuple[int, int, int]], rows: list[tuple[int, int, int]]
) -> None:
    asked = table(windows)
    filled = moments(table(rows))
    assert within(asked, union(table(rows))).to_list() == [
        sum((rank, at) in filled for at in range(start, end))
        for rank, start, end in asked.iter_rows()
    ]


def test_segments_count_overlapping_intervals() -> None:
    cut = segments({"a": table([(0, 0, 10), (0, 5, 10)]), "b": table([(0, 8, 1)])})
    assert cut.rows() == [
        (0, 0, 5, 1, 0),
        (0, 5, 8, 2, 0),
        (0, 8, 9, 2, 1),
        (0, 9, 10, 2, 0),
        (0, 10, 15, 1, 0),
    ]


def test_ops_without_length_or_start_make_no_interval() -> None:
    ops = pl.DataFrame(
        {"rank": [None, 0, 0], "start_ns": [3, None, 7], "duration_ns": [2, 5, 0]},
        schema={"rank": pl.Int32, "start_ns": pl.Int64, "duration_ns": pl.Int64},
    )
    assert spans(ops).rows() == [(0, 3, 5)]


ONE_RANK = st.lists(st.tuples(st.just(3), st.integers(0, 60), st.integers(1, 9)), min_size=1)


@given(ONE_RANK, ONE_RANK)
@settings(max_examples=60)
def test_difference_within_one_rank_matches_moment_sets(
    first: list[tuple[int, int, int]], second: list[tuple[int, int, int]]
) -> None:
    rest = difference(table(first), table(second))
    assert moments(rest) == moments(table(first)) - moments(table(second))
    assert length(rest) == len(moments(rest))


def test_touching_intervals_are_joined_and_others_stay_separate() -> None:
    rows = [(1, 5, 5), (0, 7, 3), (0, 0, 4), (0, 4, 2), (0, 1, 2), (1, 3, 2)]
    assert union(table(rows)).rows() == [(0, 0, 6), (0, 7, 10), (1, 3, 10)]
    assert union(table(rows[1:5])).rows() == [(0, 0, 6), (0, 7, 10)]
    assert union(table([])).rows() == []


def test_interval_edges_are_sorted_by_time_per_rank() -> None:
    one = swept([table([(4, 0, 5)]), table([(4, 2, 1)])])
    columns = ("rank", "start_ns", "end_ns", "set", "delta")
    assert one.select(columns).rows() == [
        (4, 0, 2, 0, 1),
        (4, 2, 3, 1, 1),
        (4, 3, 5, 1, -1),
        (4, 5, None, 0, -1),
    ]
    assert one.select(count_of(0), count_of(1).alias("b")).rows() == [
        (1, 0),
        (1, 1),
        (1, 0),
        (0, 0),
    ]
    two = swept([table([(4, 3, 2)]), table([(2, 0, 9)])])
    assert two.select(columns).rows() == [
        (2, 0, 9, 1, 1),
        (2, 9, None, 1, -1),
        (4, 3, 5, 0, 1),
        (4, 5, None, 0, -1),
    ]
    assert swept([table([]), table([])]).rows() == []


def test_duration_column_may_have_another_name() -> None:
    rows = pl.DataFrame({"rank": [1], "start_ns": [3], "elapse_ns": [4], "duration_ns": [9]})
    assert spans(rows, duration="elapse_ns").rows() == [(1, 3, 7)]
    assert spans(rows).rows() == [(1, 3, 12)]
