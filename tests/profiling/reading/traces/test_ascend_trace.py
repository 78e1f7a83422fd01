"""Traces of torch_npu and msprof: every table follows from the events."""

import json
from pathlib import Path
from typing import Any

import pytest

from jumar.profiling.profile import Missing
from jumar.profiling.reading.file_content import FileContent
from jumar.profiling.reading.traces import ascend_trace
from jumar.profiling.reading.traces.trace import read_trace


def named(pid: int, name: str) -> dict[str, Any]:
    return {"ph": "M", "name": "process_name", "pid": pid, "args": {"name": name}}


def thread(pid: int, tid: int, name: str) -> dict[str, Any]:
    return {"ph": "M", "name": "thread_name", "pid": pid, "tid": tid, "args": {"name": name}}


def ran(pid: int, tid: int, name: str, start: float, lasted: float, **args: Any) -> dict[str, Any]:
    place = {"ph": "X", "pid": pid, "tid": tid, "ts": start, "dur": lasted}
    return {
        **place,
        "name": name,
        "args": {key.replace("_", " "): one for key, one in args.items()},
    }


def of_torch(category: str, name: str, start: float, lasted: float) -> dict[str, Any]:
    return {**ran(1, 9, name, start, lasted), "cat": category}


def content(folder: Path, *events: dict[str, Any], cut: bool = False) -> FileContent:
    path = folder / "x.json"
    text = json.dumps(events)
    path.write_text(text[:-1] if cut else text)
    with read_trace(path, "shown.json") as trace:
        assert ascend_trace.is_ascend(trace)
        return ascend_trace.content_of(trace, "shown.json")


HARDWARE = named(3, "Ascend Hardware")


def test_hardware_ops_and_collectives_have_their_launches(tmp_path: Path) -> None:
    found = content(
        tmp_path,
        HARDWARE,
        named(4, "HCCL"),
        named(5, "CANN"),
        thread(3, 99, "Step Trace(Model ID:1)"),
        thread(4, 1, "Group 0 Communication"),
        thread(4, 2, "Plane 0"),
        of_torch("cpu_op", "aten::mm", 1, 2),
        of_torch("user_annotation", "ProfilerStep#6", 0, 50),
        ran(3, 2, "aclnnMatmul_MatMulCommon_MatMulV2", 10, 5, Task_Type="AI_CORE", Task_Id=7)
        | {"args": {"Task Type": "AI_CORE", "Task Id": 7, "connection_id": 70}},
        ran(3, 2, "net/conv/Conv2D-op12", 20, 5, Task_Type="AI_VECTOR_CORE", Physic_Stream_Id=33),
        ran(3, 2, "TopK_3", 26, 1, Task_Type="AI_CPU"),
        ran(3, 2, "EVENT_RECORD", 30, 1, Task_Type="Other"),
        ran(3, 2, "Cast12", 32, 1, Task_Type="N/A"),
        ran(3, 2, "unknown core", 33, 1, Task_Type="EVENT"),
        ran(3, 99, "Iteration_7", 34, 1, Task_Type="AI_CORE"),
        {**ran(3, 2, "of another category", 35, 1, Task_Type="AI_CORE"), "cat": "kernel"},
        ran(4, 1, "hcom_allReduce__1_2", 60, 4),
        ran(4, 2, "Memcpy", 61, 1),
        ran(5, 1, "Launch", 8, 1, Task_Type="AI_CORE"),
        {"ph": "s", "cat": "async_npu", "id": "10000", "ts": 4},
        {"ph": "s", "cat": "async_npu", "id": "10000", "ts": 5},
        {"ph": "s", "cat": "async_npu", "id": "text", "ts": 6},
        {"ph": "s", "cat": "async_npu", "id": 60_000, "ts": 7},
    )
    columns = ("device", "stream", "task", "name", "type", "core", "start_ns", "duration_ns")
    more = ("wait_ns", "correlation", "launch_ns", "step")
    assert found.ops is not None
    assert found.ops.columns == [*columns, *more]
    matmul = "aclnnMatmul_MatMulCommon_MatMulV2"
    conv = "net/conv/Conv2D-op12"
    sums, kind = "hcom_allReduce__1_2", "hcom_allReduce__1"
    assert found.ops.rows() == [
        (None, "2", 7, matmul, "MatMulV2", "AI_CORE", 10_000, 5_000, None, 70, 4_000, 6),
        (None, "33", None, conv, "Conv2D", "AI_VECTOR_CORE", 20_000, 5_000, None, None, None, 6),
        (None, "2", None, "TopK_3", "TopK", "AI_CPU", 26_000, 1_000, 11_000, None, None, 6),
        (None, "2", None, "Cast12", "Cast", None, 32_000, 1_000, 5_000, None, None, 6),
        (None, "1", None, sums, kind, "COMMUNICATION", 60_000, 4_000, None, None, 7_000, None),
    ]
    assert (found.file, found.kind, found.device) == ("shown.json", "trace", "npu")
    assert (found.producer, found.missing, found.statistics) == ("torch_npu", (), {})
    assert found.steps is not None
    assert found.steps.rows() == [(6, 0, 50_000)]


def test_calls_have_the_layer_of_their_category_or_level(tmp_path: Path) -> None:
    found = content(
        tmp_path,
        named(5, "CANN"),
        named(6, "Elsewhere"),
        of_torch("cpu_op", "aten::mm", 1, 2),
        of_torch("python_function", "f", 2, 2),
        of_torch("dequeue", "Dequeue", 3, 2),
        of_torch("enqueue", "Enqueue", 4, 2),
        of_torch("cpu_op", "ProfilerStep#1", 5, 2),
        of_torch("whatever", "w", 6, 2),
        ran(5, 1, "aclnnAdd", 7, 2, level="acl", connection_id=0),
        ran(5, 1, "rtLaunch", 8, 2) | {"args": {"level": "runtime", "connection_id": 4}},
        ran(5, 1, "hccl", 9, 2, level="hccl"),
        ran(5, 1, "comm", 10, 2, level="communication"),
        ran(6, 1, "elsewhere", 11, 2, level="runtime"),
    )
    assert found.host is not None
    assert found.host.columns == [
        *("thread", "layer", "name", "start_ns", "duration_ns", "correlation"),
    ]
    assert [row[1:4] + row[5:] for row in found.host.rows()] == [
        ("op", "aten::mm", 1_000, None),
        ("dequeue", "Dequeue", 3_000, None),
        ("enqueue", "Enqueue", 4_000, None),
        ("mark", "ProfilerStep#1", 5_000, None),
        ("mark", "w", 6_000, None),
        ("python", "f", 2_000, None),
        ("cann", "aclnnAdd", 7_000, None),
        ("runtime", "rtLaunch", 8_000, 4),
        ("runtime", "hccl", 9_000, None),
        ("runtime", "comm", 10_000, None),
    ]
    assert found.host["thread"].to_list() == ["9"] * 6 + ["1"] * 4
    assert found.host["duration_ns"].to_list() == [2_000] * 10


def test_graph_mode_iterations_are_steps_with_the_longest_data_wait(tmp_path: Path) -> None:
    def waited(name: str, time: float) -> dict[str, Any]:
        arguments = {"Data_aug Bound(us)": time}
        return {"ph": "t", "cat": "Data_aug Bound", "name": name, "args": arguments}

    def iteration(number: str, start: int, lasted: int) -> dict[str, Any]:
        return {**ran(1, 1, f"Iteration {number}", start, lasted), "cat": "Iteration Time"}

    found = content(
        tmp_path,
        named(1, "Step Trace"),
        iteration("3", 100, 50),
        iteration("2", 0, 100),
        iteration("2", 7, 1),
        iteration("x", 7, 1),
        waited("Data_aug Bound 2", 1.5),
        waited("Data_aug Bound 2", 4),
        waited("Data_aug Bound 2", 2),
        waited("no number", 9),
        cut=True,
    )
    assert found.steps is not None
    assert found.steps.columns == ["step", "start_ns", "end_ns", "data_ns"]
    assert found.steps.rows() == [(2, 0, 100_000, 4_000), (3, 100_000, 150_000, None)]
    assert found.producer == "msprof"
    assert found.missing == (Missing(file="shown.json", what="the end: truncated"),)


def test_spans_of_the_step_trace_are_no_calls_on_the_host(tmp_path: Path) -> None:
    def traced(category: str, name: str) -> dict[str, Any]:
        return {**ran(1, 1, name, 0, 100), "cat": category}

    found = content(
        tmp_path,
        named(1, "Step Trace"),
        traced("Iteration Time", "Iteration 2"),
        traced("FP_BP Time", "FP_BP Time 2"),
        traced("Iteration Refresh", "Iteration Refresh 2"),
        traced("Reduce", "Reduce_2_0"),
        of_torch("enqueue", "Enqueue@aclnnMul", 3, 4),
    )
    assert found.host is not None
    assert found.host["name"].to_list() == ["Enqueue@aclnnMul"]
    assert found.steps is not None
    assert found.steps["step"].to_list() == [2]


def test_clocks_and_overlap_analysis_are_read(tmp_path: Path) -> None:
    def clock(time: int, megahertz: int) -> dict[str, Any]:
        return {"ph": "C", "name": "AI Core Freq", "ts": time, "args": {"MHz": megahertz}}

    found = content(
        tmp_path,
        named(8, "Overlap Analysis"),
        named(9, "Task Scheduler"),
        clock(9, 800),
        clock(3, 1600),
        ran(8, 1, "Computing", 1, 2),
        ran(9, 1, "AscendCL@x", 1, 2),
    )
    assert list(found.statistics) == ["overlap_analysis", "frequency"]
    assert found.statistics["overlap_analysis"].to_dicts() == [
        {"name": "Computing", "start_ns": 1_000, "duration_ns": 2_000}
    ]
    assert found.statistics["frequency"].rows() == [(3_000, 1600), (9_000, 800)]


@pytest.mark.parametrize(
    ("process", "expected"),
    [
        *((name, True) for name in ("Ascend Hardware", "Task Scheduler", "HCCL", "Communication")),
        *((name, True) for name in ("CANN", "Overlap Analysis", "Step Trace")),
        *((name, False) for name in ("python", "GPU0")),
    ],
)
def test_cann_trace_is_recognised_by_its_processes(
    tmp_path: Path, process: str, expected: bool
) -> None:
    path = tmp_path / "x.json"
    path.write_text(json.dumps([named(1, process), named(2, "Python")]))
    with read_trace(path) as trace:
        assert ascend_trace.is_ascend(trace) is expected
