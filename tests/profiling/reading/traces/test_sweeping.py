"""Ops of a trace by who launched what, across spans of time."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from jumar.profiling.reading.traces import sweeping
from jumar.profiling.reading.traces.sweeping import (
    is_in_sorted,
    launches,
    ops_with_unique_id,
    own_times,
)
from jumar.profiling.reading.traces.trace import Trace, read_trace


def call(category: str, name: str | None, start: int, lasted: int, **args: Any) -> dict[str, Any]:
    place = {"ph": "X", "cat": category, "pid": 1, "tid": args.pop("tid", 1), "ts": start}
    return place | {"dur": lasted, "name": name, "args": args}


SHAPES = {"Input Dims": [[2]], "Input type": ["float"]}
EVENTS = (
    call("cpu_op", "outer", 0, 100, **{"External id": 1, "Module Hierarchy": "net"}),
    call("cpu_op", "inner", 10, 20, **{"External id": 2, **SHAPES}),
    call("cpu_op", "ProfilerStep#1", 12, 5),
    call("cuda_runtime", "launch", 15, 1, correlation=7),
    call("cuda_runtime", "launch", 30, 1, correlation=8),
    call("cuda_driver", "launch", 100, 1, correlation=9),
    call("cuda_runtime", "again", 200, 1, correlation=7),
    call("cuda_runtime", "unwanted", 16, 1, correlation=10),
    call("cuda_runtime", "without", 17, 1),
    call("cpu_op", "later", 150, 30, **{"External id": 2}),
    call("cpu_op", "of another thread", 150, 20, tid=2),
    call("cuda_runtime", "launch", 155, 1, correlation=11, tid=2),
    call("user_annotation", "forward", 0, 300, **{"External id": 3}),
    call("cpu_op", None, 160, 5),
)


@pytest.fixture
def trace(tmp_path: Path) -> Trace:
    path = tmp_path / "x.json"
    path.write_text(json.dumps(EVENTS))
    return read_trace(path)


@pytest.mark.parametrize("span", [1, 3, 1000])
def test_launch_belongs_to_the_innermost_op_and_first_correlation_counts(
    trace: Trace, span: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sweeping, "ROWS_PER_SPAN", span)
    with trace:
        found = launches(trace, np.array([7, 8, 9, 11, 12]))
        texts = trace.calls.decoded(found.rename({"op": "name"}))
    names = ["correlation", "thread", "launch_ns", "name", "shapes", "types", "module"]
    assert texts.columns == names
    assert texts.rows() == [
        (7, "1", 15_000, "inner", "2", "FLOAT", None),
        (8, "1", 30_000, "outer", "", "", "net"),
        (9, "1", 100_000, None, None, None, None),
        (11, "2", 155_000, "of another thread", "", "", None),
    ]


def test_columns_are_the_same_without_launches(trace: Trace, tmp_path: Path) -> None:
    (tmp_path / "y.json").write_text("[]")
    with trace, read_trace(tmp_path / "y.json") as empty:
        assert launches(empty, np.array([7])).columns == launches(trace, np.array([7])).columns
        assert launches(trace, np.array([], dtype=np.int64)).height == 0


def test_id_identifies_an_op_only_if_unique(trace: Trace) -> None:
    with trace:
        found = ops_with_unique_id(trace, np.array([1, 2, 3, 4]))
        assert found.columns == ["external", "op", "shapes", "types", "module"]
        assert found["external"].to_list() == [1]
        assert trace.texts.texts_of(found["op"]).to_list() == ["outer"]
        assert ops_with_unique_id(trace, np.array([2, 3])).is_empty()


@pytest.mark.parametrize("span", [1, 3, 1000])
def test_own_times_exclude_direct_children(
    trace: Trace, span: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sweeping, "ROWS_PER_SPAN", span)
    with trace:
        found = pl.concat(own_times(trace)).sort("row")
        assert "within_ns" not in found.columns
        names = trace.texts.texts_of(found["name"]).to_list()
    assert dict(zip(names, found["own_ns"].to_list(), strict=True)) == {
        "outer": 80_000,
        "inner": 20_000,
        "later": 30_000 if None not in names else 25_000,
        "of another thread": 20_000,
        **({None: 5_000} if None in names else {}),
    }


def test_own_time_is_not_negative_if_children_take_longer(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    events = [call("cpu_op", "outer", 0, 10), call("cpu_op", "inner", 5, 30)]
    path.write_text(json.dumps(events))
    with read_trace(path) as trace:
        found = pl.concat(own_times(trace)).sort("row")
    assert found["own_ns"].to_list() == [0, 30_000]


def test_values_are_looked_up_in_a_sorted_array() -> None:
    values = pl.Series([5, 0, 9, 3, 10])
    assert is_in_sorted(values, np.array([3, 5, 9])).to_list() == [True, False, True, True, False]
    assert is_in_sorted(values, np.array([])).to_list() == [False] * 5


def test_only_runtime_calls_launch_kernels(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    events = [
        call("cpu_op", "numbered", 0, 100, correlation=7),
        call("cuda_runtime", "launch", 15, 1, correlation=7),
        call("cpu_op", "numbered", 200, 10, correlation=8),
    ]
    path.write_text(json.dumps(events))
    with read_trace(path) as trace:
        found = launches(trace, np.array([7, 8]))
    assert found.select("correlation", "launch_ns").rows() == [(7, 15_000)]
