"""Calls within calls: their own times and who was running add up."""

import json
from pathlib import Path
from tempfile import TemporaryDirectory

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jumar.profiling import read
from jumar.profiling.reading.traces.nesting import (
    Sweep,
    innermost,
    launched_before_recording,
    step_at,
    with_waits,
)


def _laid_out(tree: list, start: int, rows: list[tuple[int, int, int]], parent: int) -> int:
    """Lay a tree of calls out in time: (start, duration, parent) a call; returns its end."""
    for inner in tree:
        row = len(rows)
        rows.append((start, 0, parent))
        end = _laid_out(inner, start + 1, rows, row) + 1
        rows[row] = (start, end - start, parent)
        start = end
    return start


def _read(calls: pl.DataFrame) -> pl.DataFrame:
    """The ops of a trace of torch.profiler in which the calls are ops of the CPU."""
    events = [
        {
            "ph": "X",
            "cat": "cpu_op",
            "name": "aten::add",
            "pid": 1,
            "tid": int(call["thread"]),
            "ts": call["start_ns"] / 1000,
            "dur": call["duration_ns"] / 1000,
            "args": {"External id": number},
        }
        for number, call in enumerate(calls.iter_rows(named=True))
    ]
    trace = {"schemaVersion": 1, "deviceProperties": [], "traceEvents": events}
    with TemporaryDirectory() as folder:
        file = Path(folder) / "trace.json"
        file.write_text(json.dumps(trace), encoding="utf-8")
        return read(file).ops


_trees = st.recursive(st.just([]), lambda inner: st.lists(inner, max_size=4), max_leaves=20)


@settings(max_examples=60)
@given(st.lists(_trees, min_size=1, max_size=3), st.randoms())
def test_own_times_exclude_children_and_parents_are_found(threads: list, random: object) -> None:
    rows: list[tuple[str, int, int, int]] = []
    for number, tree in enumerate(threads):
        found: list[tuple[int, int, int]] = []
        _laid_out([tree], 10, found, -1)
        base = len(rows)
        rows += [(str(number), s, d, p + base if p >= 0 else -1) for s, d, p in found]
    calls = pl.DataFrame(rows, schema=["thread", "start_ns", "duration_ns", "parent"], orient="row")
    own = _read(calls)["duration_ns"]
    assert (own > 0).all()
    tops = calls.filter(pl.col("parent") < 0)["duration_ns"].sum()
    assert own.sum() == tops
    within = innermost(calls, calls.with_columns(pl.col("start_ns") + 0))
    assert within.to_list() == list(range(calls.height))


def test_moment_outside_all_calls_has_no_call() -> None:
    calls = pl.DataFrame({"thread": ["1"], "start_ns": [10], "duration_ns": [5]})
    moments = pl.DataFrame({"thread": ["1", "1", "1", "2"], "start_ns": [9, 10, 15, 12]})
    assert innermost(calls, moments).to_list() == [None, 0, None, None]


def test_parents_are_the_innermost_calls_of_the_same_thread() -> None:
    calls = [
        *((1, 0, 100, -1), (1, 0, 50, 0), (1, 10, 5, 1), (1, 15, 5, 1), (1, 60, 40, 0)),
        # As long as the one before: within it. After its end: in none.
        *((1, 60, 40, 4), (1, 100, 3, -1), (2, 10, 5, -1), (1, 101, 0, 6), (1, 102, -1, 10)),
        *((1, 102, 1, 6), (1, 103, -1, -1)),
    ]
    table = pl.DataFrame(calls, schema=["thread", "start", "lasts", "parent"], orient="row")
    found = Sweep().parents(table["thread"], table["start"], table["lasts"])
    assert found.tolist() == table["parent"].to_list()


def test_running_calls_are_kept_for_the_next_span() -> None:
    sweep = Sweep()
    one = pl.Series([1, 1, 2])
    assert sweep.parents(one, pl.Series([0, 5, 7]), pl.Series([100, 10, 3])).tolist() == [-1, 0, -1]
    assert sweep.still_open(9).tolist() == [0, 1, 2]
    assert sweep.still_open(10).tolist() == [0, 1]
    assert sweep.still_open(15).tolist() == [0]
    found = sweep.parents(pl.Series([1, 2]), pl.Series([20, 20]), pl.Series([5, 5]))
    assert found.tolist() == [0, -1]
    assert sweep.still_open(21).tolist() == [0, 3, 4]
    assert sweep.still_open(1000).tolist() == []


def test_calls_without_a_thread_a_start_or_a_length_are_placed_at_zero() -> None:
    calls = pl.DataFrame(
        {"thread": [None, None], "start_ns": [0, 3], "duration_ns": [9, None]},
        schema={"thread": pl.String, "start_ns": pl.Int64, "duration_ns": pl.Int64},
    )
    moments = pl.DataFrame(
        {"thread": [None, None], "start_ns": [None, 2]},
        schema={"thread": pl.String, "start_ns": pl.Int64},
    )
    assert innermost(calls, moments).to_list() == [0, 0]


def test_op_waits_since_the_latest_earlier_end_on_its_stream() -> None:
    ops = pl.DataFrame(
        {
            "device": [0, 0, 0, 0, 1, 0],
            "stream": ["a", "a", "b", "a", "a", "a"],
            "start_ns": [50, 0, 10, 20, 5, 41],
            "duration_ns": [1, 30, 5, 5, 1, 2],
        }
    )
    found = with_waits(ops).select("start_ns", "stream", "wait_ns")
    assert found.rows() == [
        *((0, "a", None), (5, "a", None), (10, "b", None), (20, "a", 0), (41, "a", 11)),
        (50, "a", 7),
    ]


def test_step_boundary_belongs_to_the_starting_step() -> None:
    steps = pl.DataFrame({"step": [4, 3], "start_ns": [20, 10], "end_ns": [30, 18]})
    moments = pl.Series([9, 10, 17, 18, 19, 20, 29, 30, None])
    found = step_at(moments, steps)
    assert found.to_list() == [None, 3, 3, None, None, 4, 4, None, None]
    assert step_at(moments, steps.clear()).to_list() == [None] * 9
    before = pl.DataFrame({"step": [1], "start_ns": [-1], "end_ns": [5]})
    assert step_at(pl.Series([-2, 0, 4]), before).to_list() == [None, 1, 1]


@pytest.mark.parametrize("thread", [0, 1, 2])
def test_call_of_any_thread_is_kept_while_it_runs(thread: int) -> None:
    sweep = Sweep()
    one = pl.Series([thread])
    assert sweep.parents(one, pl.Series([3]), pl.Series([4])).tolist() == [-1]
    assert sweep.still_open(5).tolist() == [0]
    assert sweep.parents(one, pl.Series([5]), pl.Series([1])).tolist() == [0]


def test_rows_without_a_time_have_no_step() -> None:
    steps = pl.DataFrame({"step": [1], "start_ns": [0], "end_ns": [5]})
    assert step_at(pl.Series([None, 0, 4, 5], dtype=pl.Int64), steps).to_list() == [
        None,
        1,
        1,
        None,
    ]


@pytest.mark.parametrize(
    ("ops", "earlier"),
    [
        # On a stream whose first launched op starts at 30, whenever that was launched.
        (
            [(0, "7", 10, None), (0, "7", 29, None), (0, "7", 30, 5), (0, "7", 31, None)],
            [1, 1, 0, 0],
        ),
        ([(0, "7", 30, None), (0, "7", 30, 5)], [0, 0]),
        # Each stream and each device for itself.
        ([(0, "7", 20, None), (0, "7", 30, 5), (0, "8", 10, 5), (0, "8", 20, None)], [1, 0, 0, 0]),
        ([(0, "7", 20, None), (1, "7", 30, 5)], [0, 0]),
        ([(None, "7", 20, None), (None, "7", 30, 5), (0, "7", 20, None)], [1, 0, 0]),
        # On a stream without launches, the first launch for the device decides.
        ([(0, "9", 4, None), (0, "9", 5, None), (0, "7", 30, 5), (0, "7", 40, 3)], [0, 0, 0, 0]),
        ([(0, "9", 4, None), (0, "9", 5, None), (0, "7", 30, 5)], [1, 0, 0]),
        # Without a launch, or a start, nothing is known.
        ([(0, "7", 10, None), (0, "7", 20, None)], [0, 0]),
        ([(0, "7", None, None), (0, "7", 20, 1)], [0, 0]),
        ([], []),
    ],
)
def test_op_that_no_recorded_call_launched_is_of_earlier_where_it_precedes_the_launched_ones(
    ops: list[tuple[int | None, str, int | None, int | None]], earlier: list[int]
) -> None:
    schema = {"device": pl.Int32, "stream": pl.String, "start_ns": pl.Int64, "launch_ns": pl.Int64}
    table = pl.DataFrame(ops, schema=schema, orient="row")
    assert launched_before_recording(table).cast(pl.Int8).to_list() == earlier
