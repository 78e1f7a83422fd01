"""Calls within calls: their own times and who was running add up."""

import json
from pathlib import Path
from tempfile import TemporaryDirectory

import polars as pl
from hypothesis import given, settings
from hypothesis import strategies as st

from jumar.profiling import read
from jumar.profiling.reading.traces.nesting import innermost


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
def test_own_times_are_durations_less_children_and_parents_are_found(
    threads: list, random: object
) -> None:
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


def test_a_moment_outside_of_all_calls_is_in_none() -> None:
    calls = pl.DataFrame({"thread": ["1"], "start_ns": [10], "duration_ns": [5]})
    moments = pl.DataFrame({"thread": ["1", "1", "1", "2"], "start_ns": [9, 10, 15, 12]})
    assert innermost(calls, moments).to_list() == [None, 0, None, None]
