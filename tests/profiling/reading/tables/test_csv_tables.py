"""Units that the headers of CSV files name."""

from pathlib import Path

import pytest

from jumar.profiling.reading import read
from jumar.profiling.reading.file_content import FileContent
from jumar.profiling.reading.tables.csv_tables import (
    identifier,
    read_statistic,
    read_step_times,
    read_step_trace,
)


@pytest.mark.parametrize(
    ("unit", "size"), [("B", 1), ("KB", 1024), ("MB", 1024**2), ("GB", 1024**3)]
)
def test_sizes_are_powers_of_two(tmp_path: Path, unit: str, size: int) -> None:
    folder = tmp_path / "PROF_000001_20250101_ABC" / "mindstudio_profiler_output"
    folder.mkdir(parents=True)
    (folder / "operator_memory_20250101.csv").write_text(
        f"Name,Size({unit}),Allocation Time(us),Duration(us),Device_id\naten::empty,3,100.5,2.0,0\n"
    )
    table = read(tmp_path).statistics["operator_memory"]
    assert table["size_bytes"].to_list() == [3 * size]


def _written(folder: Path, *lines: str) -> Path:
    path = folder / "x.csv"
    path.write_text("".join(f"{line}\n" for line in lines))
    return path


def test_header_names_become_identifiers() -> None:
    assert [identifier(name) for name in ("op type", "a-b (c)", "_x_", "%", "重")] == [
        *("op_type", "a_b_c", "x", "column", "column"),
    ]


def test_column_unit_and_type_follow_the_header(tmp_path: Path) -> None:
    path = _written(
        tmp_path,
        "Name,Total Time(us),Load(ms),Sum(s),Raw(ns),Size(KB),Room(MB),Ratio(%),Device_id,Index,"
        "Count,Variance,Hit Rate,Rate(GB/s),Time(us),Time(ms),Total Time",
        "a,1.5,2.5,3.5,4,1.5,0.5,12.5,NPU:0,x,7,0.25,0.5,9,1,2,3",
        "b,soon,N/A,,4.4,0.0005,y,z,3,4,1.5,w,v,u,1,2,3",
    )
    content = read_statistic(path, "shown.csv", "some_kind")
    assert (content.file, content.kind, list(content.statistics)) == (
        *("shown.csv", "some_kind", ["some_kind"]),
    )
    assert content.statistics["some_kind"].to_dicts() == [
        {
            **{"name": "a", "total_time_ns": 1500, "load_ns": 2_500_000, "sum_ns": 3_500_000_000},
            **{"raw_ns": 4, "size_bytes": 1536, "room_bytes": 524288, "ratio_percent": 12.5},
            **{"device_id": None, "index": None, "count": 7, "variance": 0.25, "hit_rate": 0.5},
            **{"rate": "9", "time_ns": 1000, "time_ns_": 2_000_000, "total_time": "3"},
        },
        {
            **{"name": "b", "total_time_ns": None, "load_ns": None, "sum_ns": None},
            **{"raw_ns": 4, "size_bytes": 1, "room_bytes": None, "ratio_percent": None},
            **{"device_id": 3, "index": 4, "count": None, "variance": None, "hit_rate": None},
            **{"rate": "u", "time_ns": 1000, "time_ns_": 2_000_000, "total_time": "3"},
        },
    ]
    (gap,) = content.missing
    # Device and index may be words; of the six faults three are named.
    assert gap.what == (
        "6 numbers cannot be read: line 3, column 'Total Time(us)': 'soon'; "
        "line 3, column 'Room(MB)': 'y'; line 3, column 'Ratio(%)': 'z'; and 3 more"
    )


@pytest.mark.parametrize(
    ("kind", "name", "header", "nanoseconds"),
    [
        ("op_statistic", "op_statistic", "Total Time", 1_500),
        ("aicpu", "aicpu", "Compute_time", 1_500_000),
        ("api_statistic", "api_statistic", "Avg", 1_500),
        ("runtime_statistic", "api_statistic", "Avg(ms)", 1_500_000),
        ("task_time_2022", "task_time", "Waiting", 1_500),
        ("step_trace", "step_trace", "FP Start", 1_500),
        ("dp", "dp", "Timestamp", 1_500),
        ("aicpu_mi", "aicpu_mi", "Start", 1_500),
    ],
)
def test_times_without_a_unit_use_the_tables(
    tmp_path: Path, kind: str, name: str, header: str, nanoseconds: int
) -> None:
    content = read_statistic(_written(tmp_path, f"{header},x", "1.5,y"), "shown", kind)
    (table,) = content.statistics.items()
    assert table[0] == name
    assert table[1].to_series().to_list() == [nanoseconds]


_STEPS = "Step,Computing,Communication(Not Overlapped),Overlapped,Communication,Free,Preparing"


def test_step_times_are_in_microseconds(tmp_path: Path) -> None:
    path = _written(
        tmp_path,
        f"Device_id,{_STEPS},Data,Start Time(us),End Time(us),Stage",
        "0,7,1.5,2.5,3.5,4.5,5.5,6.5,7.5,10,20,8",
        ",8,soon,N/A,3,4,5,6,7,11,21,9",
    )
    content = read_step_times(path, "shown.csv", "step_trace_time")
    assert (content.file, content.kind, content.producer) == (
        "shown.csv",
        "step_trace_time",
        "torch_npu",
    )
    names = ["step", "computing_ns", "communication_not_overlapped_ns", "overlapped_ns"]
    names += ["communication_ns", "free_ns", "preparing_ns", "data_ns", "start_ns", "end_ns"]
    assert content.steps is not None
    assert content.steps.columns == names
    assert content.steps.rows() == [
        (7, 1500, 2500, 3500, 4500, 5500, 6500, 7500, 10_000, 20_000),
        (8, None, None, 3000, 4000, 5000, 6000, 7000, 11_000, 21_000),
    ]
    assert [gap.what for gap in content.missing] == [
        "1 number cannot be read: line 3, column 'Computing': 'soon'"
    ]
    assert content.statistics["step_trace_time"].height == 2


def test_our_own_table_of_steps_has_ranks(tmp_path: Path) -> None:
    path = _written(tmp_path, f"Rank,{_STEPS}", "3,7,1,2,3,4,5,6", "x,8,1,2,3,4,5,6")
    content = read_step_times(path, "shown.csv", "step_trace_time")
    assert content.producer == "jumar"
    assert content.steps is not None
    assert content.steps.select("rank", "step").rows() == [(3, 7), (None, 8)]


def test_rank_rows_of_a_cluster_table_are_steps(tmp_path: Path) -> None:
    path = _written(
        tmp_path,
        f"Step,Type,Index,{_STEPS.removeprefix('Step,')}",
        "7,rank,1,1.5,2,3,4,5,6",
        '7,stage,"(0, 1)",9,9,9,9,9,9',
        "8,rank,0,2.5,2,3,4,5,6",
    )
    content = read_step_times(path, "shown.csv", "cluster_step_trace_time")
    assert content.steps is not None
    assert content.steps.select("rank", "step", "computing_ns").rows() == [
        (1, 7, 1500),
        (0, 8, 2500),
    ]
    assert content.statistics["step_trace_time"].height == 3
    assert content.missing == ()


def test_graph_mode_iterations_have_end_and_duration(tmp_path: Path) -> None:
    def read_lines(*lines: str) -> FileContent:
        return read_step_trace(_written(tmp_path, *lines), "shown.csv", "step_trace")

    content = read_lines(
        "Iteration ID,FP Start,BP End,Iteration End,Iteration Time(us),Data Aug Bound(us)",
        "3,1,2,100.5,40.25,0.5",
    )
    assert (content.file, content.kind, content.producer) == ("shown.csv", "step_trace", "msprof")
    assert content.steps is not None
    assert content.steps.to_dicts() == [
        {"step": 3, "start_ns": 60_250, "end_ns": 100_500, "data_ns": 500}
    ]
    assert list(content.statistics) == ["step_trace"]
    bare = read_lines("Iteration ID,FP Start,BP End", "3,1,x")
    assert bare.steps is not None
    assert bare.steps.rows() == [(3, None, None, None)]
    assert len(bare.missing) == 1


def test_non_numeric_steps_and_sizes_are_null_and_named(tmp_path: Path) -> None:
    path = _written(tmp_path, f"Rank,{_STEPS}", "3,x,1,2,3,4,5,6")
    content = read_step_times(path, "shown.csv", "step_trace_time")
    assert content.steps is not None
    assert content.steps["step"].to_list() == [None]
    assert "line 2, column 'Step': 'x'" in content.missing[0].what
    sizes = read_statistic(_written(tmp_path, "a,Size(KB)", "b,1e30"), "shown.csv", "k")
    assert sizes.statistics["k"]["size_bytes"].to_list() == [None]
    assert "line 2, column 'Size(KB)': '1e30'" in sizes.missing[0].what
