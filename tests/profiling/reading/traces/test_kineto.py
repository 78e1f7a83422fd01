"""Traces of torch.profiler contain what PyTorch itself reports about its ops."""

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
from jumar.profiling.profile import Missing
from jumar.profiling.reading.file_content import FileContent
from jumar.profiling.reading.traces import kineto, longest
from jumar.profiling.reading.traces.trace import read_trace
from jumar.profiling.views.step_split import step_split


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


def test_own_times_of_cpu_ops_match_pytorch(tmp_path: Path) -> None:
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


def test_dropped_calls_of_the_host_are_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _captured(tmp_path / "trace.json")
    whole = read(tmp_path / "trace.json")
    assert not any("too many to keep" in each.what for each in whole.missing)
    monkeypatch.setattr(longest, "MAX_CALLS", 10)
    profile = read(tmp_path / "trace.json")
    assert profile.host.filter(pl.col("layer") != "mark").height <= 10
    (left_out,) = (each for each in profile.missing if "too many to keep" in each.what)
    assert left_out.file.endswith("trace.json")


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


def test_compressed_trace_reads_the_same(tmp_path: Path) -> None:
    _captured(tmp_path / "trace.json")
    packed = tmp_path / "b" / "trace.json.gz"
    packed.parent.mkdir()
    packed.write_bytes(gzip.compress((tmp_path / "trace.json").read_bytes()))
    assert read(packed).ops.equals(read(tmp_path / "trace.json").ops)


def test_traces_in_one_folder_become_ranks(tmp_path: Path) -> None:
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


def test_cuda_trace_without_kernels_is_an_error_that_says_so(tmp_path: Path) -> None:
    call = _slice("cuda_runtime", "cudaLaunchKernel", 1, 2, args={"correlation": 3})
    with pytest.raises(UserError, match="kernels: the trace has calls to the device's runtime"):
        read(_written(tmp_path / "x.json", call))


def test_trace_of_pytorch_1_8_has_its_kernels_with_their_ops(tmp_path: Path) -> None:
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


def test_rocprof_slices_are_ops_by_their_process(tmp_path: Path) -> None:
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
        "events of unsupported categories: (no category) 1"
    ]


def test_every_omitted_category_is_listed_with_its_count(tmp_path: Path) -> None:
    path = _written(
        tmp_path / "x.json",
        _slice("kernel", "k", 1, 1),
        _slice("Trace", "PyTorch Profiler (0)", 0, 9),
        *[_slice("gpu_user_annotation", "forward", 1, 1)] * 3,
        {"ph": "i", "cat": "cpu_instant_event", "name": "[memory]", "ts": 1},
        {"ph": "s", "cat": "ac2g", "name": "ac2g", "ts": 1, "id": 3},
    )
    assert [gap.what for gap in read(path).missing] == [
        "events of unsupported categories: gpu_user_annotation 3, cpu_instant_event 1"
    ]


def test_trace_without_readable_events_is_an_error_with_its_categories(tmp_path: Path) -> None:
    marked = _slice("user_annotation", "ProfilerStep#1", 0, 9)
    path = _written(tmp_path / "x.json", marked, *[_slice("tpu_things", "t", 1, 1)] * 7)
    with pytest.raises(UserError, match="unsupported categories: tpu_things 7"):
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


def _content(path: Path, *events: dict[str, Any], **beside: Any) -> FileContent:
    path.write_text(json.dumps({"traceEvents": events, **beside}))
    with read_trace(path, "shown.json") as trace:
        return kineto.content_of(trace, "shown.json")


def test_every_column_of_a_cuda_trace_follows_from_its_events(tmp_path: Path) -> None:
    """By hand: base 1000 ns, two steps, kernels with a launch, with an id alone, and with none."""
    shapes = {"Input Dims": [[2, 3], [3, 4]], "Input type": ["float", "float"]}
    launch = {"correlation": 5, "External id": 99}
    found = _content(
        tmp_path / "x.json",
        _slice("user_annotation", "ProfilerStep#8", 100, 50),
        _slice("user_annotation", "ProfilerStep#7", 0, 100),
        _slice("user_annotation", "ProfilerStep#7", 500, 100),
        _slice("user_annotation", "forward", 5, 10),
        _slice("cpu_op", "aten::linear", 10, 50),
        _slice("cpu_op", "aten::mm", 20, 20, args={"External id": 1, **shapes}),
        _slice("cpu_op", "aten::add", 70, 5, args={"External id": 2, "Module Hierarchy": "net.1"}),
        _slice("cpu_op", "aten::twice", 80, 1, args={"External id": 3}),
        _slice("cpu_op", "aten::twice", 82, 1, args={"External id": 3}),
        _slice("cuda_runtime", "cudaLaunchKernel", 25, 5, args=launch),
        _slice("cuda_runtime", "cudaLaunchKernel", 800, 5, args=launch),
        _slice("cuda_runtime", "cudaLaunchKernel", 90, 2, args={"correlation": 6}),
        _slice("python_function", "train.py(3): step", 1, 9),
        _slice("kernel", "sgemm", 130, 10, pid=0, args={
            "correlation": 5, "device": 1, "stream": 7, "grid": [2, 3, 1], "bytes": 12}),
        _slice("kernel", "vectorized_add", 140.5, 4, pid=0, args={
            "External id": 2, "device": 1, "stream": 7}),
        _slice("kernel", "my_softmax", 150, 1, pid=0, args={
            "External id": 3, "device": 1, "stream": 7}),
        _slice("gpu_memset", "Memset (Device)", 160, 2, pid=0, args={
            "correlation": 6, "device": 1, "stream": 7}),
        _slice("kernel", "ncclDevKernel_AllReduce_Sum(int)", 125, 3, pid=0, tid=20, args={
            "device": 1}),
        _slice("kernel", "ncclKernel_Broadcast", 129, 3, pid=0, tid=20, args={"device": 1}),
        baseTimeNanoseconds=1000,
        distributedInfo={"rank": 5},
        deviceProperties=[{"name": "NVIDIA  A100\n80GB"}, {"name": "other"}],
    )  # fmt: skip
    assert (found.file, found.kind, found.producer) == ("shown.json", "kineto", "kineto")
    assert (found.device, found.rank, found.chip) == ("cuda", 5, "NVIDIA A100 80GB")
    assert found.missing == ()
    assert found.steps is not None
    assert found.steps.columns == ["step", "start_ns", "end_ns"]
    assert found.steps.rows() == [(7, 1_000, 101_000), (8, 101_000, 151_000)]
    none = dict.fromkeys(
        ("input_shapes", "input_types", "module", "block_num", "bytes", "correlation", "launch_ns")
    )
    place = {"device": 1, "stream": "7", "core": "CUDA", **none}
    nccl = {"device": 1, "stream": "20", "core": "COMMUNICATION", **none, "step": 8}
    assert found.ops is not None
    rows = found.ops.to_dicts()
    assert rows == [
        nccl
        | {"name": "ncclDevKernel_AllReduce_Sum_0", "type": "ncclDevKernel_AllReduce_Sum"}
        | {"kernel": "ncclDevKernel_AllReduce_Sum(int)", "start_ns": 126_000, "duration_ns": 3_000}
        | {"wait_ns": None},
        nccl
        | {"name": "ncclKernel_Broadcast_0", "type": "ncclKernel_Broadcast"}
        | {"kernel": "ncclKernel_Broadcast", "start_ns": 130_000, "duration_ns": 3_000}
        | {"wait_ns": 1_000},
        place
        | {"name": "mm_0", "type": "mm", "kernel": "sgemm", "step": 7, "wait_ns": None}
        | {"start_ns": 131_000, "duration_ns": 10_000, "block_num": 6, "bytes": 12}
        | {"input_shapes": "2,3;3,4", "input_types": "FLOAT;FLOAT"}
        | {"correlation": 5, "launch_ns": 26_000},
        place
        | {"name": "add_0", "type": "add", "kernel": "vectorized_add", "step": 8, "wait_ns": 500}
        | {"start_ns": 141_500, "duration_ns": 4_000, "module": "net.1"}
        | {"input_shapes": "", "input_types": ""},
        # Two ops have its id, so that nobody knows which; after the last step there is none.
        place
        | {"name": "softmax_0", "type": "softmax", "kernel": "my_softmax", "step": None}
        | {"start_ns": 151_000, "duration_ns": 1_000, "wait_ns": 5_500},
        place
        | {"name": "Memset_0", "type": "Memset", "kernel": "Memset (Device)", "step": 7}
        | {"core": "CUDA_MEMSET", "start_ns": 161_000, "duration_ns": 2_000, "wait_ns": 9_000}
        | {"correlation": 6, "launch_ns": 91_000},
    ]
    assert found.host is not None
    assert found.host.rows() == [
        ("1", "mark", "ProfilerStep#8", 101_000, 50_000, None),
        ("1", "mark", "ProfilerStep#7", 1_000, 100_000, None),
        ("1", "mark", "ProfilerStep#7", 501_000, 100_000, None),
        ("1", "mark", "forward", 6_000, 10_000, None),
        ("1", "op", "aten::linear", 11_000, 50_000, None),
        ("1", "op", "aten::mm", 21_000, 20_000, None),
        ("1", "op", "aten::add", 71_000, 5_000, None),
        ("1", "op", "aten::twice", 81_000, 1_000, None),
        ("1", "op", "aten::twice", 83_000, 1_000, None),
        ("1", "runtime", "cudaLaunchKernel", 26_000, 5_000, 5),
        ("1", "runtime", "cudaLaunchKernel", 801_000, 5_000, 5),
        ("1", "runtime", "cudaLaunchKernel", 91_000, 2_000, 6),
        ("1", "python", "train.py(3): step", 2_000, 9_000, None),
    ]


def test_kernels_of_the_step_before_the_recording_belong_to_no_step(tmp_path: Path) -> None:
    """The device is behind: its first three kernels were launched before anything was recorded."""

    def kernel(start: float, stream: int, correlation: int) -> dict[str, Any]:
        where = {"device": 0, "stream": stream, "correlation": correlation}
        return _slice("kernel", "gemm", start, 10, pid=0, args=where)

    path = _written(
        tmp_path / "x.json",
        _slice("user_annotation", "ProfilerStep#3", 100, 100),
        _slice("user_annotation", "ProfilerStep#4", 200, 100),
        _slice("cuda_runtime", "cudaLaunchKernel", 110, 1, args={"correlation": 8}),
        _slice("cuda_runtime", "cudaLaunchKernel", 210, 1, args={"correlation": 9}),
        *(kernel(110, 7, 1), kernel(120, 7, 2), kernel(102, 8, 3)),
        *(kernel(150, 7, 8), kernel(160, 7, 5), kernel(170, 8, 6), kernel(250, 7, 9)),
    )
    profile = read(path)
    assert profile.ops.select("start_ns", "step").rows() == [
        *((102_000, None), (110_000, None), (120_000, None)),
        *((150_000, 3), (160_000, 3), (170_000, 3), (250_000, 4)),
    ]
    split = step_split(profile).select("step", "start_ns", "end_ns", "computing_ns", "preparing_ns")
    assert split.rows() == [
        # It begins when the device is done with what was left: at 130, after the mark.
        (3, 150_000, 180_000, 30_000, 20_000),
        (4, 250_000, 260_000, 10_000, 70_000),
    ]


@pytest.mark.parametrize(
    ("kernel", "talks"),
    [
        ("ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096ul>)", True),
        ("rcclGenericKernel<1, false>", True),
        ("void (anonymous namespace)::multimem_all_reduce_kernel<c10::BFloat16, 16>(int*)", True),
        ("void vllm::cross_device_reduce_2stage<c10::Half, 8>(vllm::RankData*, int)", True),
        ("void tensorrt_llm::kernels::twoShotAllReduceKernel<float>(int)", True),
        ("reduce_scatter_cross_device_store", True),
        ("void at::native::reduce_kernel<512, 1, allreduce_op>(int)", False),
        ("void softmax_warp_all_reduce<float>(float*)", False),
        ("void blockAllReduceSum<float>(float*)", False),
        ("not_nccl_kernel", False),
    ],
)
def test_collectives_outside_nccl_are_communication(
    tmp_path: Path, kernel: str, talks: bool
) -> None:
    where = {"device": 0, "stream": 7, "correlation": 8}
    found = _content(
        tmp_path / "x.json",
        _slice("cpu_op", "symm_mem::reduce_", 5, 20),
        _slice("cuda_runtime", "cudaLaunchKernel", 10, 1, args={"correlation": 8}),
        _slice("kernel", kernel, 50, 10, pid=0, args=where),
    )
    assert found.ops is not None
    kind = kernel.partition("(")[0] if kernel.startswith("nccl") else "symm_mem::reduce_"
    assert found.ops.select("core", "type").rows() == [("COMMUNICATION" if talks else "CUDA", kind)]


@pytest.mark.parametrize(
    ("kernel", "family"),
    [
        *(("cudnn_x", "conv"), ("WINOGRAD", "conv"), ("cutlass_80", "gemm")),
        ("reduce_x", "reduce"),
        *(("softmax_norm", "softmax"), ("layer_norm", "norm"), ("vectorized_x", "elementwise")),
        *(("triton_x", "triton"), ("Memcpy DtoD", "Memcpy"), ("a Memcpy", "kernel")),
        *(("my_nccl", "nccl"), ("whatever", "kernel")),
    ],
)  # fmt: skip
def test_kernel_without_an_op_has_the_first_family_matching_its_name(
    tmp_path: Path, kernel: str, family: str
) -> None:
    found = _content(tmp_path / "x.json", _slice("kernel", kernel, 1, 1))
    assert found.ops is not None
    assert found.ops["type"].to_list() == [family]


def test_every_column_of_a_cpu_trace_follows_from_its_events(tmp_path: Path) -> None:
    shapes = {"Input Dims": [[2]], "Input type": ["double"]}
    found = _content(
        tmp_path / "x.json",
        _slice("user_annotation", "ProfilerStep#3", 0, 100),
        _slice("cpu_op", "aten::linear", 10, 50, args={"External id": 7, "Module Hierarchy": "n"}),
        _slice("cpu_op", "aten::mm", 20, 20, args={"External id": 8, **shapes}),
        _slice("cpu_op", "aten::mm", 45, 5),
        _slice("cpu_op", "aten::mm", 120, 5, tid=2),
        _slice("user_annotation", "gloo:all_reduce", 20, 30),
        _slice("cuda_driver", "cuLaunchKernel", 25, 5),
        baseTimeNanoseconds=500,
    )
    assert found.device == "cpu"
    assert [(gap.what, gap.needed_for) for gap in found.missing] == [
        (
            "kernels: the trace has calls to the device's runtime, but no work on the device "
            "(recorded without CUDA activities or without permission to use CUPTI)",
            ("op table of the device", "step split"),
        )
    ]
    gloo = "gloo:all_reduce"
    columns = ("step", "stream", "type", "core", "start_ns", "duration_ns")
    more = ("input_shapes", "input_types", "module", "correlation", "name")
    assert found.ops is not None
    assert found.ops.columns == [*columns, *more]
    assert found.ops.rows() == [
        (3, "1", "linear", "CPU", 10_500, 25_000, "", "", "n", 7, "linear_0"),
        (3, "1", "mm", "CPU", 20_500, 20_000, "2", "DOUBLE", None, 8, "mm_0"),
        (3, "1", gloo, "COMMUNICATION", 20_500, 30_000, "", "", None, None, f"{gloo}_0"),
        (3, "1", "mm", "CPU", 45_500, 5_000, "", "", None, None, "mm_1"),
        (None, "2", "mm", "CPU", 120_500, 5_000, "", "", None, None, "mm_0"),
    ]


@pytest.mark.parametrize(
    ("beside", "rank", "chip"),
    [
        ({"distributedInfo": {"rank": 0}}, 0, ""),
        ({"distributedInfo": {"rank": (1 << 20) - 1}}, (1 << 20) - 1, ""),
        ({"distributedInfo": {"rank": 1 << 20}}, None, ""),
        ({"distributedInfo": {"rank": -1}}, None, ""),
        ({"distributedInfo": {"rank": True}}, None, ""),
        ({"distributedInfo": [1]}, None, ""),
        ({"deviceProperties": []}, None, ""),
        ({"deviceProperties": [{"name": 3}]}, None, ""),
        ({"deviceProperties": ["x"]}, None, ""),
        ({"deviceProperties": {"name": "x"}}, None, ""),
        ({"deviceProperties": [{"name": "y" * 81}]}, None, "y" * 80),
    ],
)
def test_rank_and_chip_come_from_the_trace_if_plausible(
    tmp_path: Path, beside: dict[str, Any], rank: int | None, chip: str
) -> None:
    found = _content(tmp_path / "x.json", _slice("kernel", "k", 1, 1), **beside)
    assert (found.rank, found.chip) == (rank, chip)


@pytest.mark.parametrize(("categories", "more"), [(20, ""), (22, " and 2 more")])
def test_at_most_twenty_omitted_categories_are_named(
    tmp_path: Path, categories: int, more: str
) -> None:
    names = [f"c{number:02}" for number in range(categories)]
    events = [_slice(name, "x", 1, 1) for name in names]
    found = _content(tmp_path / "x.json", *events, _slice("c07", "x", 1, 1))
    counts = ["c07 2", *(f"{name} 1" for name in names if name != "c07")]
    assert found.missing == (
        Missing(
            file="shown.json",
            what=f"events of unsupported categories: {', '.join(counts[:20])}{more}",
        ),
    )


def test_truncated_trace_is_reported(tmp_path: Path) -> None:
    path = _written(tmp_path / "x.json", _slice("kernel", "k", 1, 1))
    path.write_text(path.read_text().rpartition("]")[0])
    (gap,) = read(path).missing
    assert gap.what == "the end: truncated"


HOST = ("cpu_op", "aten::mm", 1, 5)
LAUNCH = ("cuda_runtime", "cudaLaunchKernel", 2, 1)


@pytest.mark.parametrize(
    ("calls", "beside", "said"),
    [
        ((HOST,), {"deviceProperties": [{"name": "V100"}]}, "work on the device (V100); "),
        ((HOST, LAUNCH), {}, "work on the device; "),
    ],
)
def test_trace_of_a_gpu_that_ends_before_its_first_kernel_has_no_ops(
    tmp_path: Path, calls: tuple[tuple[Any, ...], ...], beside: dict[str, Any], said: str
) -> None:
    path = _written(tmp_path / "x.json", *(_slice(*call) for call in calls), **beside)
    path.write_text(path.read_text().rpartition("]")[0])
    with pytest.raises(UserError) as told:
        read(path)
    assert f"kernels: the trace ends before its first {said}" in str(told.value)
    whole = _written(tmp_path / "whole.json", _slice("kernel", "k", 1, 1), **beside)
    both = read([whole, path])
    assert both.ops["core"].to_list() == ["CUDA"]
    assert any(said in gap.what for gap in both.missing)


def test_truncated_trace_of_a_cpu_has_its_ops_up_to_there(tmp_path: Path) -> None:
    path = _written(tmp_path / "x.json", _slice(*HOST), deviceProperties=[])
    path.write_text(path.read_text().rpartition("]")[0])
    found = read(path)
    assert (found.kind, found.ops["type"].to_list()) == ("cpu", ["mm"])
    assert [gap.what for gap in found.missing] == ["the end: truncated"]


def test_ops_of_a_cpu_have_no_accelerator_even_if_the_machine_has_one(tmp_path: Path) -> None:
    found = _content(tmp_path / "x.json", _slice(*HOST), deviceProperties=[{"name": "V100"}])
    assert (found.device, found.chip) == ("cpu", "")


def test_device_id_beyond_32_bits_is_none(tmp_path: Path) -> None:
    found = _content(tmp_path / "x.json", _slice("kernel", "k", 1, 1, args={"device": 1 << 31}))
    assert found.ops is not None
    assert found.ops["device"].to_list() == [None]
