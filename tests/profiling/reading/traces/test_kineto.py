"""Traces of torch.profiler: what PyTorch itself says of its ops comes out of its trace."""

import gzip
import json
from pathlib import Path

import polars as pl
import torch
from torch.profiler import ProfilerActivity, profile, record_function, schedule

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


def test_a_cuda_trace_without_kernels_says_so(tmp_path: Path) -> None:
    event = {"ph": "X", "name": "cudaLaunchKernel", "cat": "cuda_runtime", "pid": 1, "tid": 1}
    event |= {"ts": 1, "dur": 2, "args": {"correlation": 3}}
    (tmp_path / "x.json").write_text(json.dumps({"traceEvents": [event]}))
    assert "kernels" in read(tmp_path / "x.json").missing[0].what


def test_gloo_collectives_of_a_cpu_trace_are_communication(shared: Path) -> None:
    profile = read(shared / "data" / "msprof" / "torch_cpu")
    assert profile.ranks == (34,)
    cores = profile.ops.group_by("core").len().sort("core").rows()
    assert cores == [("COMMUNICATION", 10), ("CPU", 4)]
    assert profile.steps["step"].to_list() == [551]
