"""The script that recomputes captures: equal figures, and a planted difference is named."""

import json
from pathlib import Path
from typing import Any

import pytest

from recompute_capture import main


def _slice(category: str, name: str, start: float, lasted: float, **more: Any) -> dict[str, Any]:
    event = {"ph": "X", "cat": category, "name": name, "ts": start, "dur": lasted, "tid": 1}
    return {**event, "pid": 9, "args": more}


def _trace(path: Path, *, longest: float = 20.0) -> Path:
    """Two steps of a rank, and a kernel that was launched before the recording began."""

    def kernel(name: str, start: float, lasted: float, correlation: int, stream: int = 7) -> Any:
        category = "gpu_memcpy" if name.startswith("Memcpy") else "kernel"
        where = {"device": 3, "stream": stream, "correlation": correlation}
        return _slice(category, name, start, lasted, **where, bytes=64)

    launches = ((11, 1), (15, 2), (21, 3), (111, 4), (121, 5))
    events = [
        _slice("user_annotation", "ProfilerStep#5", 10, 90),
        _slice("user_annotation", "ProfilerStep#6", 100, 90),
        _slice("cpu_op", "aten::linear", 10, 9),
        _slice("cpu_op", "aten::mm", 10.5, 8),
        _slice("cpu_op", "symm_mem::multimem_all_reduce_", 20, 5),
        _slice("cpu_op", "aten::mm", 110, 5),
        _slice("cpu_op", "aten::copy_", 120, 5),
        *(_slice("cuda_runtime", "cudaLaunchKernel", at, 1, correlation=n) for at, n in launches),
        kernel("gemm", 12, 9.5, 77),
        kernel("gemm", 30, longest, 1),
        kernel("gemm", 55.001, 10, 2),
        kernel("void multimem_all_reduce_kernel<8>(int)", 45, 30, 3, stream=8),
        kernel("gemm", 130, 10, 4),
        kernel("Memcpy HtoD (Pinned -> Device)", 140.5, 4.25, 5),
    ]
    path.write_text(json.dumps({"traceEvents": events, "distributedInfo": {"rank": 2}}))
    return path


_KERNELS = """Step Id,Name,Type,Accelerator Core,Start Time(us),Duration(us),Wait Time(us),Stream ID
4,a_1,MatMul,AI_CORE,1736408883704643.212\t,53.741,0,2
4,a_2,MatMul,AI_CORE,1736408883704699.2\t,10,0,2
4,cut,MatMul,AI_CORE,1736408883704650,5
4,hcom_allReduce__1,hcom_allReduce_,COMMUNICATION,1736408883704705\t,20.5,0,3
5,a_3,Cast,AI_VECTOR_CORE,1736408883704800\t,1.001,0,2
"""


def _folder(path: Path) -> Path:
    """A folder of torch_npu of rank 3, with a line that was cut and a wrong time of transfer."""
    tables = path / "worker_ascend_pt" / "ASCEND_PROFILER_OUTPUT"
    tables.mkdir(parents=True)
    (tables.parent / "profiler_info_3.json").write_text(
        json.dumps({"rank_id": 3, "config": {"common_config": {}}})
    )
    (tables / "kernel_details.csv").write_text(_KERNELS)
    header = "Step,Computing,Communication(Not Overlapped),Overlapped,Communication,Free,Preparing"
    (tables / "step_trace_time.csv").write_text(f"{header}\n4,53.7,20.5,0,20.5,3.1,7.25\n")
    spent = {"Elapse Time(ms)": 2.5, "Transit Time(ms)": 0, "Wait Time(ms)": 1, "Idle Time(ms)": 1}
    sent = {"HCCS": {"Transit Size(MB)": 8, "Transit Time(ms)": 1.25}}
    named = {"Communication Time Info": spent, "Communication Bandwidth Info": sent}
    groups = {"collective": {"hcom_allReduce__1@7": named, "Total Op Info": named}, "p2p": {}}
    (tables / "communication.json").write_text(json.dumps({"step4": groups}))
    return path / "worker_ascend_pt"


def _mindspore(path: Path) -> Path:
    """Two steps of device 1: a timeline, and the file of steps with a collective."""
    path.mkdir()

    def op(name: str, start: float) -> dict[str, Any]:
        tensor = {"format": "DefaultFormat", "data_type": "NUMBER_TYPE_FLOAT32", "shape": "2"}
        facts = {"type": "Mul", "fullname": f"Default/{name}", "input_0": tensor}
        row = {"ph": "X", "name": name, "pid": 1, "tid": 5, "ts": start, "dur": 4.5}
        return {**row, "args": facts}

    timeline = [op("Mul-op1", 0.5), op("Mul-op2", 90), op("Mul-op3", 120)]
    (path / "ascend_timeline_display_1.json").write_text(json.dumps(timeline))
    reduction = ("stream_36_0_AllReduce-op4_start_point", "stream_36_0_AllReduce-op4_end_point")
    header = "step_num,start_point,end_point,total,fp_point,bp_point,iteration_interval"
    lines = (
        ",".join((header, *reduction)),
        "1,0,10000,10000,0,1,0,1000,3000",
        "2,10000,20000,10000,0,1,70,11000,13000",
        "-,0,0,0,0,0,0,0,0",
    )
    (path / "step_trace_raw_1_detail_time.csv").write_text("\n".join(lines) + "\n")
    return path


@pytest.mark.parametrize(
    ("kind", "figures"), [("kineto", 39), ("ascend", 48), ("mindspore", 42), ("cpu", 28)]
)
def test_figures_recomputed_from_raw_events_are_those_of_jumar(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], kind: str, figures: int
) -> None:
    path = tmp_path / f"{kind}.json"
    if kind == "kineto":
        _trace(path)
    elif kind == "cpu":
        _trace(path)
        kept = [e for e in json.loads(path.read_text())["traceEvents"] if e["cat"][0] in "uc"]
        path.write_text(json.dumps({"traceEvents": [e for e in kept if "cuda" not in e["cat"]]}))
    else:
        path = {"ascend": _folder, "mindspore": _mindspore}[kind](tmp_path / kind)
    assert main([str(path)]) == 0
    printed = capsys.readouterr().out
    first, *lines = printed.strip().splitlines()
    assert first.endswith(" figures, 0 differ")
    assert len(lines) >= figures
    assert all(line.endswith("equal") for line in lines)


def test_planted_difference_is_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    raw = _trace(tmp_path / "raw.json")
    changed = _trace(tmp_path / "changed.json", longest=20.001)
    assert main([str(raw), "--other", str(changed), "--brief"]) == 1
    printed = capsys.readouterr().out
    assert "39 figures, " in printed
    differing = {
        line.rsplit(maxsplit=3)[0].strip(): line.split()[-1] for line in printed.splitlines()[2:]
    }
    assert differing["time of all ops"] == "+1"
    assert differing["rank 2 step 5: computing"] == "+1"
    assert "name gemm, count and" in {name[:20] for name in differing}
    assert not {"longest op", "from launch to start", "communication, time"} & set(differing)


def test_capture_that_cannot_be_read_is_unusable(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    empty = tmp_path / "empty.json"
    empty.write_text('{"traceEvents": []}')
    assert main([str(empty), str(_trace(tmp_path / "x.json")), "--brief"]) == 2
    assert main([str(tmp_path / "missing")]) == 2
    assert main([str(_trace(tmp_path / "x.json")), "--other", str(empty)]) == 2
    captured = capsys.readouterr()
    assert "empty.json: unusable: no op" in captured.err
    assert "missing: unusable: nothing is there" in captured.err
    assert "x.json: unusable: " in captured.err
    assert captured.out.count("0 differ") == 1
