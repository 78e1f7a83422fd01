"""Layers of traces: kernels and CPU ops, forward and backward, of torch.profiler and torch_npu."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import polars as pl

from jumar.profiling import read

FORWARD, BACKWARD = 1, 2


def call(category: str, name: str, start: float, lasted: float, **more: Any) -> dict[str, Any]:
    place = {"pid": 9, "tid": more.pop("tid", FORWARD)}
    return {
        "ph": "X",
        "cat": category,
        "name": name,
        "ts": start,
        "dur": lasted,
        **place,
        "args": more,
    }


def arrow(phase: str, number: int, at: float, tid: int) -> dict[str, Any]:
    return {"ph": phase, "cat": "fwdbwd", "id": number, "ts": at, "tid": tid, "pid": 9}


EVENTS = [
    call("python_function", "nn.Module: Net_0", 0, 100),
    call("python_function", "nn.Module: Linear_0", 10, 30),
    call("python_function", "net.py(3): forward", 12, 20),
    call("cpu_op", "aten::addmm", 15, 10),
    call("cpu_op", "aten::relu", 50, 10),
    call("cpu_op", "aten::zero_", 150, 10),
    call("cpu_op", "autograd::engine::evaluate_function: AddmmBackward0", 200, 40, tid=BACKWARD),
    call("cpu_op", "AddmmBackward0", 205, 20, tid=BACKWARD),
    call("cpu_op", "aten::mm", 210, 10, tid=BACKWARD),
    call("cpu_op", "aten::sum", 230, 5, tid=BACKWARD),
    call("cpu_op", "autograd::engine::evaluate_function: AccumulateGrad", 250, 9, tid=BACKWARD),
    call("cpu_op", "aten::add_", 252, 5, tid=BACKWARD),
    arrow("s", 3, 55, FORWARD),
    arrow("f", 3, 199, BACKWARD),
    arrow("s", 1, 15, FORWARD),
    arrow("f", 1, 205, BACKWARD),
]
LINEAR, NET = "Net_0.Linear_0", "Net_0"


def written(path: Path, events: Iterable[dict[str, Any]]) -> pl.DataFrame:
    path.write_text(json.dumps({"traceEvents": list(events)}))
    return read(path).ops


def test_kernels_have_the_layer_in_which_they_were_launched(tmp_path: Path) -> None:
    launches = (("mm", 16, 1), ("relu", 52, 1), ("zero", 152, 1))
    more = (("mm of backward", 212, 2), ("sum of backward", 231, 2), ("accumulated", 253, 2))
    events = list(EVENTS)
    for number, (name, at, thread) in enumerate((*launches, *more)):
        events += [
            call("cuda_runtime", "cudaLaunchKernel", at, 1, tid=thread, correlation=number),
            call("kernel", name, at + 500, 1, correlation=number, device=0, stream=7),
        ]
    ops = written(tmp_path / "t.json", events)
    assert dict(ops.select("kernel", "module").iter_rows()) == {
        "mm": LINEAR,
        "relu": NET,
        "zero": None,
        "mm of backward": LINEAR,
        "sum of backward": LINEAR,
        "accumulated": None,
    }


def test_ops_of_a_cpu_have_the_layer_in_which_they_ran(tmp_path: Path) -> None:
    ops = written(tmp_path / "t.json", EVENTS)
    layers = dict(ops.select("type", "module").iter_rows())
    assert layers == {
        "addmm": LINEAR,
        "relu": NET,
        "zero_": None,
        "autograd::engine::evaluate_function: AddmmBackward0": LINEAR,
        "AddmmBackward0": LINEAR,
        "mm": LINEAR,
        "sum": LINEAR,
        "autograd::engine::evaluate_function: AccumulateGrad": None,
        "add_": None,
    }


def test_layer_recorded_with_an_op_takes_precedence(tmp_path: Path) -> None:
    named = call("cpu_op", "aten::mul", 20, 2, **{"Module Hierarchy": "net.fc1"})
    ops = written(tmp_path / "t.json", [*EVENTS, named])
    assert dict(ops.select("type", "module").iter_rows())["mul"] == "net.fc1"


def test_trace_without_modules_has_no_layers(tmp_path: Path) -> None:
    events = [event for event in EVENTS if not event.get("name", "").startswith("nn.Module")]
    assert written(tmp_path / "t.json", events)["module"].null_count() == 9


def test_real_captures_of_an_npu_have_the_layers_of_the_network(shared: Path) -> None:
    for folder, ranks in (("torch_npu_level1_2rank", 2), ("torch_npu_level1_db", 1)):
        ops = read(shared / "data/msprof" / folder).ops
        first = "DistributedDataParallel_0.AlexNet_0.Sequential_0.Conv2d_0"
        own = ops.filter(pl.col("module") == first)
        counts = dict(own["type"].value_counts().iter_rows())
        assert counts["Conv2D"] == ranks, folder
        assert counts["Conv2DBackpropFilter"] == ranks, folder
        # The first layer needs no gradient of its input, and each of the others makes one.
        assert "Conv2DBackpropInput" not in counts, folder
        inner = ops.filter(pl.col("type") == "Conv2DBackpropInput")["module"]
        assert inner.n_unique() == 4, folder
        assert inner.null_count() == 0, folder
        dense = ops.filter(pl.col("type").str.starts_with("MatMul"))["module"].drop_nulls()
        leaves = sorted(dense.str.split(".").list.last().unique())
        assert leaves == ["Linear_0", "Linear_1", "Linear_2"], folder
        lonely = ops.filter(pl.col("module").is_null())["type"].unique()
        assert not set(lonely) & {"Conv2D", "MatMulV2", "MatMulV3"}, folder
