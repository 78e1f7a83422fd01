"""Tasks of msprof as ops."""

from pathlib import Path

from jumar.profiling.reading.file_content import FileContent
from jumar.profiling.reading.tables.task_time import read_task_time


def read(folder: Path, text: str, kind: str = "task_time") -> FileContent:
    path = folder / "x.csv"
    path.write_text(text)
    return read_task_time(path, "shown.csv", kind)


def test_tasks_that_compute_or_communicate_are_ops(tmp_path: Path) -> None:
    kinds = ("AI_CORE", "KERNEL_AIVEC", "kernel_mix_aic", "KERNEL_MIX_AIV", "DSA_SQE", "HCCL")
    rows = [f"1,op{place},{kind},7,{place},2.5,10\n" for place, kind in enumerate(kinds)]
    more = ["1,,AI_CORE,7,8,1,1\n", "1,e,EVENT_RECORD,7,8,1,1\n", "1,n,AI_CORE,7,8,N/A,1\n"]
    header = "Device_id,kernel_name,kernel_type,stream_id,task_id,task_time(us),task_start(us)\n"
    content = read(tmp_path, header + "".join(rows + more))
    assert (content.file, content.kind, content.producer, content.device) == (
        *("shown.csv", "task_time", "msprof", "npu"),
    )
    assert content.ops is not None
    names = ["device", "stream", "task", "name", "type", "core", "start_ns", "duration_ns"]
    assert content.ops.columns == names
    cores = ("AI_CORE", "AI_VECTOR_CORE", "MIX_AIC", "MIX_AIV", "DSA_SQE", "COMMUNICATION")
    assert content.ops.rows() == [
        (1, "7", place, f"op{place}", "op", core, 10_000, 2_500) for place, core in enumerate(cores)
    ]
    assert list(content.statistics) == ["task_time"]
    assert content.statistics["task_time"].height == 9
    assert content.missing == ()


def test_pure_queue_tasks_are_not_ops_and_columns_may_be_missing(tmp_path: Path) -> None:
    bare = "kernel_name,kernel_type,task_time(us)\n"
    content = read(tmp_path, f"{bare}e,EVENT_RECORD,1\n")
    assert (content.ops, content.device, content.statistics["task_time"].height) == (None, None, 1)
    content = read(tmp_path, f"{bare}net/conv-op12,AICPU,0.5\nx,AI_CPU,soon\n")
    assert content.ops is not None
    assert content.ops.rows() == [(None, None, "net/conv-op12", "conv", "AI_CPU", None, 500)]
    assert [gap.what for gap in content.missing] == [
        "1 number cannot be read: line 3, column 'task_time(us)': 'soon'"
    ]


def test_device_id_beyond_32_bits_is_none(tmp_path: Path) -> None:
    header = "Device_id,kernel_name,kernel_type,task_id,task_time(us)\n"
    content = read(tmp_path, f"{header}2147483648,a,AI_CORE,4294967296,1\n")
    assert content.ops is not None
    assert content.ops.select("device", "task").rows() == [(None, 4294967296)]
