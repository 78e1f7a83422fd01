"""What is kept of each event of a trace."""

import json
from pathlib import Path
from typing import Any

import pytest

from jumar.profiling.reading.traces import trace as traces
from jumar.profiling.reading.traces.spilling import SpillingTable
from jumar.profiling.reading.traces.trace import Trace, read_trace


def taken(path: Path, *events: dict[str, Any], **beside: Any) -> Trace:
    path.write_text(json.dumps({"traceEvents": events, **beside}))
    return read_trace(path, "shown.json")


def rows(table: SpillingTable) -> list[dict[str, Any]]:
    return table.decoded(table.joined(table.frames())).to_dicts()


OP = {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 2, "ts": 1.5, "dur": 2.25}
KERNEL = {"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": 5, "dur": 1}
NO_CALL = {
    **{"name": "aten::mm", "category": "cpu_op", "thread": "2", "start_ns": 1500},
    **{"duration_ns": 2250, "correlation": None, "external": None, "shapes": "", "types": ""},
    "module": None,
}
NO_KERNEL = {
    **{"name": "k", "category": "kernel", "pid": "0", "thread": "7", "start_ns": 5000},
    **{"duration_ns": 1000, "correlation": None, "external": None, "device": None},
    **{"stream": None, "task": None, "core": None, "block_num": None, "bytes": None},
}


def test_calls_on_the_host_have_ids_shapes_types_and_module(tmp_path: Path) -> None:
    shapes = {"Input Dims": [[2, 3], []], "Input type": ["float", "long int"]}
    older = {"Input dims": [[4]], "Input Type": ["double"]}
    with taken(
        tmp_path / "x.json",
        OP | {"args": {"correlation": 3, "External id": 4, "Module Hierarchy": "net.1", **shapes}},
        OP | {"args": {"correlation_id": 5, "external id": 6, "Module Hierarchy": "", **older}},
        # Steps and forward passes are annotations; of other calls the arguments are no tensors.
        OP | {"cat": "user_annotation", "args": older},
        OP | {"cat": "cuda_runtime", "args": older},
        OP | {"cat": "python_function", "args": older},
        # Without a duration it is a moment.
        {name: value for name, value in OP.items() if name != "dur"} | {"args": ["odd"]},
    ) as trace:
        ids = {"correlation": 3, "external": 4, "module": "net.1"}
        assert rows(trace.calls) == [
            NO_CALL | ids | {"shapes": "2,3;", "types": "FLOAT;INT64"},
            NO_CALL | {"correlation": 5, "external": 6, "shapes": "4", "types": "DOUBLE"},
            NO_CALL | {"category": "user_annotation", "shapes": "4", "types": "DOUBLE"},
            NO_CALL | {"category": "cuda_runtime"},
            NO_CALL | {"duration_ns": 0},
        ]
        assert rows(trace.python) == [NO_CALL | {"category": "python_function"}]
        assert (trace.slice_count, rows(trace.kernels), trace.problem) == (6, [], "")
        assert [len(part) for part in trace.host_calls("name")] == [5, 1]
        found = trace.calls_named("^aten::m").to_dicts()
        assert len(found) == 6
        assert found[0]["start_ns"] == 1500
        assert trace.calls_named("^nothing").to_dicts() == []


def test_device_events_have_location_and_size(tmp_path: Path) -> None:
    first = {
        **{"correlation": 1, "External id": 2, "device": 3, "stream": 4, "Task Id": 5},
        **{"Task Type": "AI_CORE", "grid": [2, 3, 4, 5], "bytes": 6},
    }
    second = {
        **{"connection_id": 1, "external id": 2, "Physic Stream Id": 4, "level": "runtime"},
        "grid": [2.5, 1],
    }
    with taken(
        tmp_path / "x.json",
        KERNEL | {"args": first},
        KERNEL | {"args": second, "cat": None},
        KERNEL | {"args": {"Stream Id": 9, "grid": [7]}, "cat": "gpu_memset"},
        KERNEL | {"args": {"grid": []}, "cat": "Memcpy"},
    ) as trace:
        assert rows(trace.kernels) == [
            NO_KERNEL
            | {"correlation": 1, "external": 2, "device": 3, "stream": "4", "task": 5}
            | {"core": "AI_CORE", "block_num": 24, "bytes": 6},
            NO_KERNEL
            | {"category": None, "correlation": 1, "external": 2, "stream": "4"}
            | {"core": "runtime"},
            NO_KERNEL | {"category": "gpu_memset", "stream": "9", "block_num": 7},
            NO_KERNEL | {"category": "gpu_memcpy", "block_num": 1},
        ]


def test_flows_clocks_and_waits_are_kept_and_other_events_counted(tmp_path: Path) -> None:
    clock = {"ph": "C", "name": "AI Core Freq", "ts": 3, "args": {"MHz": 1800}}
    wait = {"ph": "t", "cat": "Data_aug Bound", "name": "Iteration 4"}
    with taken(
        tmp_path / "x.json",
        {"ph": "s", "cat": "async_npu", "id": "1736408883704643212", "ts": 1.25, "tid": 8},
        {"ph": "s", "cat": "fwdbwd", "id": 5, "ts": "4.5", "tid": 8},
        {"ph": "f", "cat": "fwdbwd", "id": 5, "ts": 7, "tid": 9},
        {"ph": "f", "cat": "fwdbwd", "id": 6, "ts": "never", "tid": 9},
        {"ph": "s", "cat": "ac2g", "id": 3, "ts": 2},
        {"ph": "f", "cat": "async_npu", "id": 3, "ts": 2},
        clock,
        clock | {"name": "HBM Freq", "cat": "clock"},
        wait | {"args": {"Data_aug Bound(us)": 2.5}},
        wait | {"cat": "other"},
        *({"ph": phase, "cat": f"of {phase}", "ts": 1} for phase in "BbiICOEe"),
        {"ph": "i", "cat": 7},
        schemaVersion=1,
    ) as trace:
        launch = {"arrow": 1736408883704643212, "launch_ns": 1250, "thread": "8"}
        assert rows(trace.launches) == [launch]
        assert rows(trace.forward) == [{"arrow": 5, "thread": "8", "start_ns": 4500}]
        assert rows(trace.backward) == [{"arrow": 5, "thread": "9", "start_ns": 7000}]
        assert rows(trace.clocks) == [{"time_ns": 3000, "mhz": 1800}]
        assert rows(trace.data_waits) == [{"name": "Iteration 4", "data_ns": 2500}]
        unread = {f"of {phase}": 1 for phase in "BbiICO"}
        assert dict(trace.unread_events) == {**unread, "clock": 1}
        assert trace.other_values == {"schemaVersion": 1}
        assert (trace.slice_count, rows(trace.calls), rows(trace.kernels)) == (0, [], [])


def test_processes_and_threads_are_named_up_to_a_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(traces, "MAX_NAMES", 3)

    def named(kind: str, pid: int, name: object, tid: int = 0) -> dict[str, Any]:
        return {"ph": "M", "name": kind, "pid": pid, "tid": tid, "args": {"name": name}}

    with taken(
        tmp_path / "x.json",
        named("process_name", 1, "CANN"),
        named("process_name", 2, 5),
        named("process_labels", 3, "x"),
        named("thread_name", 1, "first", 4),
        named("thread_name", 1, "second", 5),
        named("process_name", 6, "the last"),
        named("process_name", 7, "beyond"),
    ) as trace:
        assert trace.processes == {"1": "CANN", "6": "the last"}
        assert trace.threads == {("1", "4"): "first", ("1", "5"): "second"}


def test_slices_without_a_time_and_a_broken_end_are_named(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text(json.dumps([OP, OP | {"ts": "soon"}])[:-1])
    with read_trace(path) as trace:
        assert trace.problem == "truncated"
        assert [gap.file for gap in trace.unreadable.missing()] == [str(path)]
        assert trace.slice_count == 1
    with taken(path, OP | {"dur": -1}) as trace:
        (gap,) = trace.unreadable.missing()
        assert (gap.file, gap.what) == (
            "shown.json",
            "1 number cannot be read: event 'aten::mm', dur: '-1'",
        )
