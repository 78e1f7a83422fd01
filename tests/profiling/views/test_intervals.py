"""Unions and overlaps, against sets of single nanoseconds."""

import polars as pl
from hypothesis import given, settings
from hypothesis import strategies as st

from jumar.profiling.views.intervals import (
    SPAN,
    difference,
    intersection,
    length,
    segments,
    spans,
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
def test_a_union_covers_the_same_moments_once(rows: list[tuple[int, int, int]]) -> None:
    merged = union(table(rows))
    assert moments(merged) == moments(table(rows))
    assert length(merged) == len(moments(merged))


@given(INTERVALS, INTERVALS)
@settings(max_examples=30)
def test_intersection_and_difference_are_those_of_moments(
    first: list[tuple[int, int, int]], second: list[tuple[int, int, int]]
) -> None:
    a, b = moments(table(first)), moments(table(second))
    assert moments(intersection(table(first), table(second))) == a & b
    assert moments(difference(table(first), table(second))) == a - b
    assert length(intersection(table(first), table(second))) == len(a & b)


@given(INTERVALS, INTERVALS)
@settings(max_examples=30)
def test_windows_are_filled_by_the_moments_in_them(
    windows: list[tuple[int, int, int]], rows: list[tuple[int, int, int]]
) -> None:
    asked = table(windows)
    filled = moments(table(rows))
    assert within(asked, union(table(rows))).to_list() == [
        sum((rank, at) in filled for at in range(start, end))
        for rank, start, end in asked.iter_rows()
    ]


def test_segments_count_how_many_intervals_lie_over_each() -> None:
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
