"""MindSpore's tables of 2020 to 2022."""

from pathlib import Path

import pytest

from jumar.profiling.profile import Missing
from jumar.profiling.reading.mindspore import tables


def written(folder: Path, *lines: str) -> Path:
    path = folder / "x.csv"
    path.write_text("".join(f"{line}\n" for line in lines))
    return path


def test_ai_cpu_ops_have_milliseconds_with_starts_in_microseconds(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        "serial_number,kernel_type,total_time,dispatch_time,execution_time,run_start,run_end",
        "1,TopK,2.5,0.5,1.25,10.5,20",
        "2,Sort,x,0.5,1.25,11.5,20",
    )
    content = tables.read_aicpu(path, "shown.csv", "mindspore_aicpu")
    assert (content.file, content.kind, content.producer, list(content.statistics)) == (
        *("shown.csv", "mindspore_aicpu", "mindspore", ["aicpu"]),
    )
    row = {
        **{"timestamp_ns": 10_500, "node": "TopK", "compute_time_ns": 1_250_000},
        **{"dispatch_time_ns": 500_000, "total_time_ns": 2_500_000},
    }
    assert content.statistics["aicpu"].to_dicts() == [
        row,
        row | {"timestamp_ns": 11_500, "node": "Sort", "total_time_ns": None},
    ]
    assert [gap.what for gap in content.missing] == [
        "1 number cannot be read: line 3, column 'total_time': 'x'"
    ]


def test_types_of_ops_have_totals_and_averages(tmp_path: Path) -> None:
    path = written(tmp_path, "op_type,execution_time,execution_frequency,percent", "Mul,2.5,4,12.5")
    content = tables.read_op_types(path, "shown.csv", "mindspore_op_type")
    assert content.statistics["op_statistic"].to_dicts() == [
        {
            **{"op_type": "Mul", "core_type": "AI_CORE", "count": 4, "total_time_ns": 2_500_000},
            **{"avg_time_ns": 625_000, "ratio_percent": 12.5},
        }
    ]


def test_op_details_have_no_start_and_say_so(tmp_path: Path) -> None:
    path = written(
        tmp_path, "full_op_name,execution_time", "net/Conv2D-op12,0.5", "Add,1", ",1", "x,N/A"
    )
    content = tables.read_op_details(path, "shown.csv", "mindspore_op_detail")
    assert (content.device, content.kind) == ("npu", "mindspore_op_detail")
    assert content.ops is not None
    assert content.ops.columns == ["name", "type", "core", "duration_ns"]
    assert content.ops.rows() == [
        ("net/Conv2D-op12", "Conv2D", "AI_CORE", 500_000),
        ("Add", "Add", "AI_CORE", 1_000_000),
    ]
    assert content.missing == (
        Missing(file="shown.csv", what="start times", needed_for=("step split", "timeline")),
    )


def test_op_facts_use_msprofs_terms(tmp_path: Path) -> None:
    info = (
        '"{""input_0"": {""format"": ""DefaultFormat"", ""data_type"": ""NUMBER_TYPE_FLOAT64"", '
        '""shape"": ""2,3""}, ""input_1"": {""format"": ""FracZ"", ""data_type"": ""UNKNOWN""}, '
        '""output_0"": 3}"'
    )
    path = written(
        tmp_path,
        "task_id,stream_id,block_dim,full_op_name,op_info",
        f"5,6,7,a,{info}",
        '8,9,x,b,"{"',
        "8,9,1,c,[1]",
    )
    content = tables.read_framework(path, "shown.csv", "mindspore_framework")
    row = {
        **{"name": "a", "stream": "6", "task": 5, "block_num": 7, "input_shapes": "2,3;"},
        **{"input_types": "DOUBLE;", "input_formats": "ND;FRACTAL_Z", "output_shapes": ""},
        **{"output_types": "", "output_formats": ""},
    }
    empty = dict.fromkeys(("input_shapes", "input_types", "input_formats"), "")
    assert content.statistics["framework"].to_dicts() == [
        row,
        row | empty | {"name": "b", "stream": "9", "task": 8, "block_num": None},
        row | empty | {"name": "c", "stream": "9", "task": 8, "block_num": 1},
    ]
    bare = written(tmp_path, "full_op_name,op_info", "a,{}")
    found = tables.read_framework(bare, "shown.csv", "k").statistics["framework"]
    assert found.select("name", "stream", "task").rows() == [("a", None, None)]


@pytest.mark.parametrize("collectives", [True, False])
def test_steps_and_collectives_are_in_ticks_of_ten_nanoseconds(
    tmp_path: Path, collectives: bool
) -> None:
    name = "stream_3_AllReduce-op2"
    more = f",{name},{name}_start_point,{name}_end_point,other_start_point,other_end_point"
    more += ",stream_4_start_point"
    values = (
        ",9,130,150,1,2,3",
        ",9,0,150,1,2,3",
        ",9,230,230,1,2,3",
        ",9,-,-,1,2,3",
        ",9,5,9,1,2,3",
    )
    lines = ("1,100,200,5", "2,200,300,6", "3,300,400,7", "-,1,2,3", "0,1,2,3")
    path = written(
        tmp_path,
        "step_num,start_point,end_point,iteration_interval" + (more if collectives else ""),
        *(line + (value if collectives else "") for line, value in zip(lines, values, strict=True)),
    )
    content = tables.read_steps(path, "shown.csv", "mindspore_step_trace")
    assert content.steps is not None
    assert content.steps.columns == ["step", "start_ns", "end_ns", "data_ns"]
    assert content.steps.rows() == [(1, 1000, 2000, 50), (2, 2000, 3000, 60), (3, 3000, 4000, 70)]
    assert content.statistics["step_trace"].height == 5
    if collectives:
        assert content.collectives is not None
        assert content.collectives.to_dicts() == [
            {"step": 1, "name": name, "start_ns": 1300, "elapse_ns": 200}
        ]
    else:
        assert content.collectives is None
