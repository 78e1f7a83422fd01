"""Traces of torch.profiler: what PyTorch itself says of its ops comes out of its trace."""

import gzip
import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import torch
from torch.profiler import ProfilerActivity, profile, record_function, schedule

from jumar.ground.errors import UserError
from jumar.profiling import read


def _captured(path: Path) -> dict[str, tuple[int, float]]:
    """Record three steps, and say of each op how often it ran and its own time in us."""
    model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 8))
    found: dict[str, tuple[int, float]] = {}

    def save(recorded: profile) -> None:
        recorded.export_chrome_trace(str(path))
        for average in recorded.key_averages():
            if average.key.startswith("aten::"):
                found[average.key] = (average.count, average.self_cpu_time_total)

    with profile(
        activities=[ProfilerActivity.CPU],
        schedule=schedule(wait=0, warmup=1, active=3, repeat=1),
        on_trace_ready=save,
        record_shapes=True,
    ) as recorded:
        for _ in range(4):
            with record_function("forward"):
                loss = model(torch.ones(16, 64)).square().sum()
            loss.backward()
            recorded.step()
    return found


def test_own_times_of_cpu_ops_are_those_of_pytorch(tmp_path: Path) -> None:
    expected = _captured(tmp_path / "trace.json")
    profile = read(tmp_path / "trace.json")
    assert (profile.kind, profile.producer) == ("cpu", "kineto")
    ops = profile.ops.filter(pl.col("correlation").is_not_null())
    found = ops.group_by("type").agg(pl.len(), pl.col("duration_ns").sum())
    ours = {f"aten::{name}": (count, time) for name, count, time in found.iter_rows()}
    assert len(expected) > 10
    for name, (count, own_us) in expected.items():
        # PyTorch counts an op that calls itself under another overload once.
        assert ours[name][0] >= count, name
        assert abs(ours[name][1] / 1000 - own_us) <= 0.002 * count + 0.01, name


def test_ops_carry_step_shapes_types_and_thread(tmp_path: Path) -> None:
    _captured(tmp_path / "trace.json")
    profile = read(tmp_path / "trace.json")
    steps = profile.steps["step"].to_list()
    assert len(steps) == 3
    multiply = profile.ops.filter(pl.col("type") == "addmm")
    assert sorted(multiply["step"].unique()) == steps
    assert multiply["input_shapes"][0].split(";")[1:] == ["16,64", "64,64"]
    assert multiply["input_types"][0] == "FLOAT;FLOAT;FLOAT"
    assert multiply["stream"].null_count() == 0
    assert set(profile.host["layer"]) >= {"op", "mark"}


def test_a_packed_trace_is_the_same(tmp_path: Path) -> None:
    _captured(tmp_path / "trace.json")
    packed = tmp_path / "b" / "trace.json.gz"
    packed.parent.mkdir()
    packed.write_bytes(gzip.compress((tmp_path / "trace.json").read_bytes()))
    assert read(packed).ops.equals(read(tmp_path / "trace.json").ops)


def test_traces_in_one_folder_are_ranks(tmp_path: Path) -> None:
    for rank in (0, 5):
        event = {
            "ph": "X",
            "cat": "cpu_op",
            "name": "aten::mm",
            "pid": 1,
            "tid": 1,
            "ts": 1,
            "dur": 2,
        }
        trace = {"distributedInfo": {"rank": rank}, "traceEvents": [event]}
        (tmp_path / f"{rank}.json").write_text(json.dumps(trace))
    assert read(tmp_path).ranks == (0, 5)


def _slice(category: str, name: str, start: int, length: int, **more: Any) -> dict[str, Any]:
    event = {"ph": "X", "cat": category, "name": name, "pid": 1, "tid": 1, "args": {}}
    return event | {"ts": start, "dur": length} | more


def _written(path: Path, *events: dict[str, Any], **beside: Any) -> Path:
    path.parent.mkdir(exist_ok=True, parents=True)
    path.write_text(json.dumps({"schemaVersion": 1, **beside, "traceEvents": events}))
    return path


def test_a_cuda_trace_without_kernels_is_an_error_that_says_so(tmp_path: Path) -> None:
    call = _slice("cuda_runtime", "cudaLaunchKernel", 1, 2, args={"correlation": 3})
    with pytest.raises(UserError, match="kernels: calls to the device's runtime are there"):
        read(_written(tmp_path / "x.json", call))


def test_a_trace_of_pytorch_1_8_has_its_kernels_with_their_ops(tmp_path: Path) -> None:
    """Categories were capitalised, ids were texts, and `Input dims` was spelt so."""
    launched = {"correlation": "77", "external id": "5"}
    op = {"External id": "5", "Input dims": [[2, 3], [3, 4]], "Input type": ["float", "float"]}
    kernel = {**launched, "device": 0, "stream": 7, "grid": [1, 2, 1]}
    copy = {"device": 0, "stream": 7, "correlation": "78", "bytes": 1024}
    path = _written(
        tmp_path / "x.json",
        _slice("Operator", "ProfilerStep#4", 1000, 500),
        _slice("Operator", "aten::mm", 1010, 20, args=op),
        _slice("Runtime", "cudaLaunchKernel", 1015, 5, args=launched),
        _slice("Kernel", "volta_sgemm_128x64", 1100, 50, pid=0, tid="stream 7", args=kernel),
        _slice("Memcpy", "Memcpy HtoD (Pageable -> Device)", 1200, 10, pid=0, args=copy),
        _slice("Memset", "Memset (Device)", 1300, 1, pid=0, args={"device": 0, "stream": 7}),
    )
    profile = read(path)
    columns = ("step", "type", "core", "duration_ns", "input_shapes", "launch_ns", "bytes")
    assert (profile.kind, profile.missing) == ("cuda", ())
    assert profile.ops.select(columns).rows() == [
        (4, "mm", "CUDA", 50_000, "2,3;3,4", 1_015_000, None),
        (4, "Memcpy", "CUDA_MEMCPY", 10_000, None, None, 1024),
        (4, "Memset", "CUDA_MEMSET", 1_000, None, None, None),
    ]
    assert sorted(profile.host["layer"]) == ["mark", "op", "runtime"]


@pytest.mark.parametrize(
    ("device", "runtime"),
    [
        ("mtia_ccp_events", "mtia_runtime"),
        ("kernel_dispatch", "hip_runtime_api"),
        ("kernel", "hip_runtime"),
        ("hpu_op", "privateuse1_runtime"),
    ],
)
def test_devices_of_other_vendors_have_ops(tmp_path: Path, device: str, runtime: str) -> None:
    where = {"device": 0, "stream": 1, "correlation": 3}
    path = _written(
        tmp_path / "x.json",
        _slice("cpu_op", "aten::mm", 9, 9),
        _slice(runtime, "launch", 10, 5, args={"correlation": 3}),
        _slice(device, "a_kernel", 100, 50, pid=0, args=where),
    )
    ops = read(path).ops
    assert ops.select("type", "core", "duration_ns", "launch_ns").rows() == [
        ("mm", "CUDA", 50_000, 10_000)
    ]


def test_slices_of_rocprof_are_ops_by_their_process(tmp_path: Path) -> None:
    names = {6: "GPU0", 1: "COPY", 2: "CPU HIP API"}
    path = _written(
        tmp_path / "x.json",
        *(
            {"ph": "M", "name": "process_name", "pid": pid, "args": {"name": name}}
            for pid, name in names.items()
        ),
        *(
            {"ph": "X", "name": f"Cijk_{pid}", "pid": pid, "tid": 0, "ts": str(pid), "dur": "3"}
            for pid in names
        ),
    )
    profile = read(path)
    assert profile.ops.select("kernel", "core").rows() == [
        ("Cijk_1", "CUDA_MEMCPY"),
        ("Cijk_6", "CUDA"),
    ]
    assert [gap.what for gap in profile.missing] == [
        "events of categories that are not read: (no category) 1"
    ]


def test_every_category_that_is_left_out_is_listed_with_its_count(tmp_path: Path) -> None:
    path = _written(
        tmp_path / "x.json",
        _slice("kernel", "k", 1, 1),
        _slice("Trace", "PyTorch Profiler (0)", 0, 9),
        *[_slice("gpu_user_annotation", "forward", 1, 1)] * 3,
        {"ph": "i", "cat": "cpu_instant_event", "name": "[memory]", "ts": 1},
        {"ph": "s", "cat": "ac2g", "name": "ac2g", "ts": 1, "id": 3},
    )
    assert [gap.what for gap in read(path).missing] == [
        "events of categories that are not read: gpu_user_annotation 3, cpu_instant_event 1"
    ]


def test_a_trace_of_which_nothing_is_read_is_an_error_with_its_categories(tmp_path: Path) -> None:
    marked = _slice("user_annotation", "ProfilerStep#1", 0, 9)
    path = _written(tmp_path / "x.json", marked, *[_slice("tpu_things", "t", 1, 1)] * 7)
    with pytest.raises(UserError, match="not read: tpu_things 7"):
        read(path)


def test_two_captures_of_one_worker_are_not_two_ranks(tmp_path: Path) -> None:
    named = {"distributedInfo": {"rank": 3}}
    for place, beside in (("ranked", named), ("named", {})):
        folder = tmp_path / place
        for when, start in (("1700000000000", 100), ("1700000009999", 900)):
            name = f"host_17.{when}.pt.trace.json"
            _written(folder / name, _slice("kernel", "k", start, 1), **beside)
        profile = read(folder)
        assert profile.ranks == ((3,) if beside else (0,))
        assert profile.ops["start_ns"].to_list() == [900_000]
        (gap,) = profile.missing
        assert "host_17.1700000000000.pt" in gap.file
        assert "host_17.1700000009999.pt" in gap.what
        older = folder / "host_17.1700000000000.pt.trace.json"
        assert read(older).ops["start_ns"].to_list() == [100_000]
    apart = tmp_path / "apart"
    for worker in ("host_17", "host_18"):
        _written(apart / f"{worker}.1700000000000.pt.trace.json", _slice("kernel", "k", 1, 1))
    assert read(apart).ranks == (0, 1)


def test_gloo_collectives_of_a_cpu_trace_are_communication(shared: Path) -> None:
    profile = read(shared / "data" / "msprof" / "torch_cpu")
    assert profile.ranks == (34,)
    cores = profile.ops.group_by("core").len().sort("core").rows()
    assert cores == [("COMMUNICATION", 10), ("CPU", 4)]
    assert profile.steps["step"].to_list() == [551]
