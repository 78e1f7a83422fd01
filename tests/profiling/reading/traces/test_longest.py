"""Which calls on the host are kept of a long trace."""

import polars as pl
import pytest

from jumar.profiling.profile import HOST_SCHEMA, Missing
from jumar.profiling.reading.traces import longest
from jumar.profiling.reading.traces.longest import longest_calls


def frame(*calls: tuple[int, str]) -> pl.DataFrame:
    return pl.DataFrame(calls, schema={"duration_ns": pl.Int64, "layer": pl.String}, orient="row")


def test_without_calls_the_table_is_empty() -> None:
    host, gaps = longest_calls([], "x")
    assert gaps == []
    assert dict(host.schema) == {name: kind for name, kind in HOST_SCHEMA.items() if name != "rank"}


@pytest.mark.parametrize(
    ("durations", "kept", "bound"),
    [
        ([5, 6, 7, 8], [5, 6, 7, 8], None),
        # More than are kept: the fourth longest is dropped with those that are not longer.
        ([5, 6, 7, 8, 9], [7, 8, 9], "0.006"),
        ([9, 6, 6, 6, 8], [9, 8], "0.006"),
        ([0, 0, 0, 0, 9], [9], "0.000"),
    ],
)
def test_shortest_excess_calls_are_dropped_and_marks_kept(
    monkeypatch: pytest.MonkeyPatch, durations: list[int], kept: list[int], bound: str | None
) -> None:
    monkeypatch.setattr(longest, "MAX_CALLS", 4)
    calls = [(duration, "op") for duration in durations]
    host, gaps = longest_calls([frame(*calls[:2]), frame(*calls[2:])], "shown.json")
    assert host["duration_ns"].to_list() == kept
    if bound is None:
        assert gaps == []
    else:
        what = f"host calls of {bound} us or less: there are too many to keep"
        assert gaps == [Missing(file="shown.json", what=what, needed_for=("short host calls",))]


def test_short_calls_are_dropped_on_arrival_once_a_bound_is_known(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(longest, "MAX_CALLS", 4)
    frames = [
        frame(*((number, "op") for number in (10, 11, 12, 13, 14, 15))),
        frame((1, "op"), (2, "mark"), (12, "op"), (16, "op")),
        frame((13, "op"), (20, "op"), (0, "mark")),
    ]
    # Six are more than 5/4 of the four that are kept: the fourth longest, 12, is the first bound;
    # 14 is the second, with six above 12 and two marks.
    host, gaps = longest_calls(frames, "x")
    assert host["duration_ns"].to_list() == [15, 2, 16, 20, 0]
    assert " 0.014 us" in gaps[0].what


def test_excess_calls_without_a_length_are_dropped_on_arrival(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(longest, "MAX_CALLS", 4)
    frames = [frame(*[(0, "op")] * 6), frame((0, "op"), (0, "mark"), (9, "op"))]
    host, gaps = longest_calls(frames, "x")
    assert host.rows() == [(0, "mark"), (9, "op")]
    assert " 0.000 us" in gaps[0].what
