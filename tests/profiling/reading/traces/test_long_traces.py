"""A trace of any length is read in the memory that its op table takes, and leaves nothing."""

import json
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jumar.ground.errors import UserError
from jumar.profiling import read
from jumar.profiling.reading.traces import longest, spilling, sweeping
from jumar.profiling.reading.traces.nesting import Sweep
from jumar.profiling.reading.traces.spilling import SpillingTable, TextNumbers

_COLUMNS: dict[str, spilling.ColumnType] = {"name": "text", "start_ns": "integer", "id": "digits"}


def _events(steps: int, device: bool) -> Iterator[dict[str, Any]]:
    """A run: in each step ten ops within ops, each of which launches a kernel.

    As torch.profiler writes them, all ops stand before all that happened on the device.
    """
    for step in range(steps):
        begin = 1_700_000_000_000_000 + step * 10_000
        mark = {"cat": "user_annotation", "name": f"ProfilerStep#{step}", "ts": begin, "dur": 9_000}
        yield mark | {"ph": "X", "pid": 1, "tid": 1}
        for place in range(10):
            outer = {"ph": "X", "cat": "cpu_op", "name": f"aten::linear{place}", "pid": 1, "tid": 1}
            yield outer | {"ts": begin + place * 500 + 0.125, "dur": 400}
            inner = {"name": "aten::mm", "ts": begin + place * 500 + 50, "dur": 200.5 + place}
            shapes = {"Input Dims": [[64, 64], [64, 32]], "Input type": ["float", "float"]}
            yield outer | inner | {"args": shapes | {"External id": step * 10 + place}}
    for number in range(steps * 10 if device else 0):
        begin = 1_700_000_000_000_000 + number // 10 * 10_000 + number % 10 * 500
        ids = {"correlation": number}
        yield {
            **{"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1},
            **{"ts": begin + 60, "dur": 5 + number % 7, "args": ids},
        }
        yield {
            **{"ph": "X", "cat": "kernel", "name": "sgemm_128x64", "pid": 0, "tid": 7},
            **{"ts": begin + 100, "dur": 90, "args": ids | {"device": 0, "stream": 7}},
        }


def _written(path: Path, steps: int, device: bool = True) -> Path:
    with path.open("w") as file:
        file.write('{"traceEvents": [\n')
        file.write(",\n".join(json.dumps(event) for event in _events(steps, device)))
        file.write("\n]}")
    return path


def _spill(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have everything on the disk and in spans, also of a short trace."""
    monkeypatch.setattr(spilling, "ROWS_PER_BATCH", 37)
    monkeypatch.setattr(spilling, "BATCHES_IN_MEMORY", 0)
    monkeypatch.setattr(sweeping, "ROWS_PER_SPAN", 100)


@pytest.mark.parametrize(
    "sample",
    [
        "torch_cuda_pair/test.json.gz",
        "torch_cpu",
        "torch_npu_2024_trace",
        "torch_npu_level1_2rank/rank0_ascend_pt/ASCEND_PROFILER_OUTPUT/trace_view.json",
    ],
)
def test_columns_on_disk_equal_those_in_memory(
    sample: str, shared: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = read(shared / "data" / "msprof" / sample)
    _spill(monkeypatch)
    monkeypatch.setattr(spilling, "ROWS_PER_BATCH", 1500)
    monkeypatch.setattr(sweeping, "ROWS_PER_SPAN", 5000)
    found = read(shared / "data" / "msprof" / sample)
    for name in ("ops", "steps", "host"):
        assert getattr(found, name).equals(getattr(expected, name)), name
    assert found.missing == expected.missing


@pytest.mark.parametrize("device", [True, False])
def test_ops_are_nested_across_time_spans(
    device: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _spill(monkeypatch)
    ops = read(_written(tmp_path / "x.json", 40, device)).ops
    mm = ops.filter(pl.col("type") == "mm").sort("start_ns")
    assert mm.height == 400
    assert mm["name"].to_list() == [f"mm_{place}" for _ in range(40) for place in range(10)]
    assert mm["step"].to_list() == [step for step in range(40) for _ in range(10)]
    assert mm["input_shapes"].unique().to_list() == ["64,64;64,32"]
    if not device:
        outer = ops.filter(pl.col("type") == "linear3")
        assert outer["duration_ns"].unique().to_list() == [400_000 - 203_500]


_calls = st.lists(
    st.tuples(st.integers(0, 2), st.integers(0, 60), st.integers(0, 30)), min_size=1, max_size=60
)


@settings(max_examples=200)
@given(_calls, st.lists(st.integers(0, 60), max_size=5))
def test_spanned_sweep_finds_the_same_parents_as_a_single_one(
    calls: list[tuple[int, int, int]], edges: list[int]
) -> None:
    table = pl.DataFrame(calls, schema=["thread", "start", "duration"], orient="row")
    table = table.with_row_index("row")
    whole = Sweep().parents(table["thread"], table["start"], table["duration"])
    sweep, place_of, found = Sweep(), np.empty(0, dtype=np.int64), dict[int, int]()
    for low, high in zip([0, *sorted(edges)], [*sorted(edges), 61], strict=True):
        span = table.filter(pl.col("start").is_between(low, high, closed="left"))
        place_of = np.concatenate([place_of, span["row"].to_numpy()])
        parents = sweep.parents(span["thread"], span["start"], span["duration"])
        found |= {
            row: int(place_of[parent]) if parent >= 0 else -1
            for row, parent in zip(span["row"].to_list(), parents.tolist(), strict=True)
        }
        sweep.still_open(high)
    assert [found[row] for row in range(len(calls))] == whole.tolist()


@settings(max_examples=60)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["a", "b", "", None, "é", 7, True]),
            st.integers(-(2**62), 2**62),
            st.sampled_from([None, 5, "6", "x", str(2**70)]),
        ),
        max_size=60,
    ),
    st.integers(1, 9),
    st.integers(0, 2),
    st.integers(1, 40),
)
def test_table_round_trips_every_row(
    rows: list[tuple[Any, int, Any]], batch: int, kept: int, span: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(spilling, "ROWS_PER_BATCH", batch)
        patch.setattr(spilling, "BATCHES_IN_MEMORY", kept)
        table = SpillingTable(_COLUMNS, TextNumbers())
        for row in rows:
            table.add(row)
        table.pack()
        whole = table.decoded(table.joined(table.frames()))
        spans = [part for part in table.spans(span) if part.height]
        table.close()
    texts = [None if name is None else str(name) for name, _, _ in rows]
    numbers = [{5: 5, "6": 6}.get(number) for _, _, number in rows]
    starts = [start for _, start, _ in rows]
    assert whole.rows() == list(zip(texts, starts, numbers, strict=True))
    ends = [part["start_ns"].max() for part in spans]
    begins = [part["start_ns"].min() for part in spans]
    assert all(end < begin for end, begin in zip(ends, begins[1:], strict=False))
    found = sorted(row for part in spans for row in part["row"].to_list())
    assert found == list(range(len(rows)))


@settings(max_examples=100)
@given(
    st.lists(st.lists(st.tuples(st.integers(0, 9), st.booleans()), max_size=20), max_size=9),
    st.integers(1, 12),
)
def test_longest_calls_match_a_single_pass(parts: list[list[tuple[int, bool]]], kept: int) -> None:
    frames = [
        pl.DataFrame(
            {
                "duration_ns": pl.Series([length for length, _ in part], dtype=pl.Int64),
                "layer": pl.Series(["mark" if mark else "op" for _, mark in part], dtype=pl.String),
            }
        )
        for part in parts
    ]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(longest, "MAX_CALLS", kept)
        found, gaps = longest.longest_calls(frames, "x")
    calls = [call for part in parts for call in part]
    if len(calls) <= kept:
        assert found.height == len(calls)
        assert not gaps
    else:
        bound = sorted(length for length, _ in calls)[-kept]
        expected = [(length, mark) for length, mark in calls if length > bound or mark]
        assert found["duration_ns"].to_list() == [length for length, _ in expected]
        assert f" {bound / 1000:.3f} us" in gaps[0].what


def test_column_file_is_unlinked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(spilling, "BATCHES_IN_MEMORY", 0)
    before = len(list(Path("/proc/self/fd").iterdir()))
    table = SpillingTable(_COLUMNS, TextNumbers())
    table.add(("a", 1, 2))
    table.pack()
    assert len(list(Path("/proc/self/fd").iterdir())) == before + 1
    assert not list(tmp_path.iterdir())
    table.close()
    assert len(list(Path("/proc/self/fd").iterdir())) == before


def test_full_disk_is_reported_and_no_file_stays_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trace = _written(tmp_path / "x.json", 400)
    _spill(monkeypatch)
    before = len(list(Path("/proc/self/fd").iterdir()))
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (65_536, hard))
    try:
        with pytest.raises(UserError, match="TMPDIR"):
            read(trace)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert len(list(Path("/proc/self/fd").iterdir())) == before


_PEAK = """
import sys, jumar.profiling
from jumar.profiling.reading.traces import spilling, sweeping
# The constant part must be small compared with the growing one, so that short traces show growth.
spilling.ROWS_PER_BATCH, spilling.BATCHES_IN_MEMORY, sweeping.ROWS_PER_SPAN = 4096, 1, 8192
profile = jumar.profiling.read(sys.argv[1])
peak = next(line for line in open("/proc/self/status") if line.startswith("VmHWM"))
print(profile.ops.height, peak.split()[1])
"""


def _peak(trace: Path) -> tuple[int, int]:
    """The rows of the op table, and the most bytes that reading it took."""
    environment = {**os.environ, "POLARS_MAX_THREADS": "1", "PYTHONPATH": os.pathsep.join(sys.path)}
    told = subprocess.run(
        [sys.executable, "-c", _PEAK, str(trace)],
        capture_output=True,
        text=True,
        check=True,
        env=environment,
    ).stdout.split()
    return int(told[0]), int(told[1]) * 1024


@pytest.mark.parametrize(("device", "bound"), [(True, 1000), (False, 550)])
def test_memory_grows_only_with_kept_rows(device: bool, bound: int, tmp_path: Path) -> None:
    rows, small = _peak(_written(tmp_path / "s.json", 1_000, device))
    more, large = _peak(_written(tmp_path / "l.json", 4_000, device))
    assert more == 4 * rows
    assert (large - small) / (more - rows) < bound
