"""The chain of ops and calls that decides how long the steps of the slowest rank take."""

from typing import Any

import pytest

from jumar.profiling.views.critical_path import critical_path
from jumar.profiling.views.view import VIEWS, Impossible, Options
from tests.profiling.generated import profile_of

_US = 1000


def _op(
    step: int, start: int, length: int, kind: str | None = "Add", **more: Any
) -> dict[str, Any]:
    row = {"rank": 0, "step": step, "name": "named", "type": kind, "core": "AI_CORE"}
    return row | {"start_ns": start, "duration_ns": length} | more


def _call(layer: str, name: str, start: int | None, length: int, **more: Any) -> dict[str, Any]:
    row = {"rank": 0, "layer": layer, "name": name}
    return row | {"start_ns": start, "duration_ns": length} | more


def test_critical_path_of_the_slowest_rank_is_listed_by_parts() -> None:
    us = _US
    ops = [
        # A gap of 5 us is between ops, one of a nanosecond more is waiting.
        _op(0, 0, 10 * us),
        _op(0, 15 * us, 10 * us, "Mul"),
        _op(0, 30 * us + 1, 10 * us - 1, None),
        # What runs concurrently is not on the path, unless it ends last.
        _op(0, 31 * us, 5 * us, "Beside"),
        _op(0, 40 * us, 20 * us, "hcom_x", core="COMMUNICATION"),
        _op(0, 50 * us, 0, "Nothing"),
        _op(1, 80 * us, 20 * us),
        _op(1, 100 * us, 20 * us, None, name=None),
        _op(0, 0, 50 * us, rank=1),
        _op(1, 50 * us, 50 * us, rank=1),
    ]
    calls = [
        _call("cann", "launch", 60 * us, 12 * us),
        _call("op", "outer", 60 * us, 20 * us),
        _call("op", "of another", 60 * us, 20 * us, rank=1),
        _call("python", "loop", 0, 120 * us),
        _call("mark", "ProfilerStep#1", 60 * us, 60 * us),
        _call("op", "no time", 60 * us, 0),
    ]
    table = VIEWS["critical"].make(profile_of(ops, host=calls), Options())
    assert table.columns == ["rank", "place", "what", "pieces", "path_ms", "share_%"]
    assert table.rows() == [
        (0, "device", "Add", 2, 0.03, 25.0),
        (0, "device", "?", 1, 0.02, 16.67),
        (0, "communication", "hcom_x", 1, 0.02, 16.67),
        (0, "host", "outer", 1, 0.02, 16.67),
        (0, "device", "Mul", 1, 0.01, 8.33),
        (0, "device", "named", 1, 0.009999, 8.33),
        (0, "host", "no call recorded", 1, 0.005001, 4.17),
        (0, "device", "between ops", 1, 0.005, 4.17),
    ]


def test_last_of_equally_slow_ranks_is_used() -> None:
    ops = [_op(0, 0, 10, rank=rank) for rank in (None, 2, 1)]
    assert critical_path(profile_of(ops), Options())["rank"].to_list() == [2]
    # By the average of the steps, not by their sum.
    ops = [_op(step, 10 * step, 10) for step in range(3)]
    ops += [_op(step, 11 * step, 11, rank=1) for step in range(2)]
    assert critical_path(profile_of(ops), Options())["rank"].to_list() == [1]


def test_equal_parts_are_sorted_by_key() -> None:
    ops = [
        _op(0, 0, 10_000, "B"),
        _op(0, 10_000, 10_000, "A"),
        _op(0, 20_000, 10_000, "A", core="COMMUNICATION"),
        _op(0, 40_000, 10_000, "D"),
    ]
    calls = [_call("mark", "A", 30_000, 10_000)]
    table = critical_path(profile_of(ops, host=calls), Options())
    assert table.select("what", "place").rows() == [
        ("A", "communication"),
        ("A", "device"),
        ("A", "host"),
        ("B", "device"),
        ("D", "device"),
    ]
    assert table["share_%"].to_list() == [20.0] * 5


def test_op_running_into_the_next_step_is_on_both_paths() -> None:
    ops = [_op(0, 0, 130, "Long"), _op(1, 100, 100, "Short")]
    table = critical_path(profile_of(ops), Options())
    # The first step ends where the second begins, but its last op ends later and is not on it.
    assert sum(table["path_ns"]) == 200
    assert table.select("what", "path_ns").rows() == [("Short", 100), ("between ops", 100)]


def test_without_start_times_there_is_no_critical_path() -> None:
    for ops in ([], [_op(0, 0, 5, start_ns=None)], [_op(0, 0, 0)]):
        with pytest.raises(Impossible) as told:
            critical_path(profile_of(ops), Options())
        assert str(told.value) == "needs ops with start times"
