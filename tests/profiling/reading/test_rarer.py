"""Rarer layouts: databases, MindSpore, collectives of graph mode, tasks, our table of chips."""

import json
import sqlite3
from pathlib import Path

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from jumar.profiling import Profile, read
from jumar.profiling.reading.databases.database_tables import Columns, paired_allocations
from jumar.profiling.views import VIEWS, Options

DATABASE = "torch_npu_level1_db/rank0_ascend_pt/ASCEND_PROFILER_OUTPUT/ascend_pytorch_profiler_0.db"


@pytest.fixture(scope="module")
def samples(shared: Path) -> Path:
    return shared / "data" / "msprof"


@pytest.fixture(scope="module")
def database(samples: Path) -> Profile:
    return read(samples / DATABASE)


@pytest.fixture(scope="module")
def mindspore(samples: Path) -> Profile:
    return read(samples / "mindspore_r1_2021")


@pytest.fixture(scope="module")
def graph_mode(samples: Path) -> Profile:
    return read(samples / "msprof_cann6_2023")


def test_database_memory_has_the_csv_columns(database: Profile, samples: Path) -> None:
    files = read(samples / "torch_npu_level1_2rank" / "rank0_ascend_pt").statistics
    for name in ("operator_memory", "memory_record", "npu_module_mem", "api_statistic"):
        assert dict(database.statistics[name].schema) == dict(files[name].schema), name
    # The same training exported twice: the same number of samples of each component.
    counted = [
        table["memory_record"].group_by("component").len().sort("component").rows()
        for table in (database.statistics, files)
    ]
    assert counted[0] == counted[1] == [("APP", 14), ("GE", 114), ("PTA", 381), ("PTA+GE", 495)]


def test_database_peak_comes_from_its_samples(database: Profile, samples: Path) -> None:
    peaks = VIEWS["memory"].make(database, Options())
    place = f"file:{samples / DATABASE}?mode=ro&immutable=1"
    connection = sqlite3.connect(place, uri=True)
    rows = connection.execute(
        "SELECT value, MAX(totalAllocated), MAX(totalReserved) FROM MEMORY_RECORD "
        "JOIN STRING_IDS ON id = component GROUP BY value"
    ).fetchall()
    for component, allocated, reserved in rows:
        row = peaks.row(by_predicate=pl.col("component") == component, named=True)
        assert row["peak_allocated_mib"] == round(allocated / 2**20, 2)
        assert row["peak_reserved_mib"] == round(reserved / 2**20, 2)
    connection.close()
    assert VIEWS["memory-by-op"].make(database, Options()).height > 3


def test_msprof_allocations_are_paired_as_in_torch_npu(database: Profile, samples: Path) -> None:
    connection = sqlite3.connect(f"file:{samples / DATABASE}?mode=ro&immutable=1", uri=True)

    def table(name: str, columns: Columns) -> pl.DataFrame:
        rows = connection.execute(f"SELECT {', '.join(columns)} FROM {name}").fetchall()
        return pl.DataFrame(rows, schema=dict(columns), orient="row")

    texts = dict(connection.execute("SELECT id, value FROM STRING_IDS").fetchall())
    ours = paired_allocations(table, texts)
    connection.close()
    theirs = database.statistics["operator_memory"]
    same = ["name", "size_bytes", "allocation_time_ns", "release_time_ns", "duration_ns"]
    both = ours.select(same).join(theirs.select(same), on=same, how="inner")
    assert both.height == ours.height == 57


def test_cann_calls_add_up(database: Profile, samples: Path) -> None:
    calls = database.statistics["api_statistic"]
    cann = database.host.filter(pl.col("correlation").is_not_null())
    assert calls["count"].sum() == cann.height == 710
    assert calls["time_ns"].sum() == cann["duration_ns"].sum()
    assert (calls["min_ns"] <= calls["avg_ns"]).all()
    assert (calls["avg_ns"] <= calls["max_ns"]).all()
    # The variance of a file of torch_npu is that of all calls, without a correction for samples.
    folder = samples / "torch_npu_level1_2rank" / "rank0_ascend_pt"
    file = read(folder)
    launches = file.host.filter(pl.col("name").str.contains("Launch_Ffts"))
    theirs = file.statistics["api_statistic"].row(
        by_predicate=pl.col("api_name") == "Launch_Ffts", named=True
    )
    assert launches.height == theirs["count"]
    ours = (launches["duration_ns"] / 1000).var(ddof=0)
    assert ours == pytest.approx(theirs["variance"], abs=1e-3)


def test_mindspore_timeline_gives_op_starts(mindspore: Profile) -> None:
    cores = mindspore.ops.group_by("core").len().sort("core").rows()
    assert cores == [("AI_CORE", 107), ("AI_CPU", 5)]
    assert mindspore.ops["start_ns"].null_count() == 0
    assert mindspore.missing == ()
    # By the device's clock, so that ops are in the step that its own file names.
    (step,) = mindspore.steps.iter_rows(named=True)
    inside = mindspore.ops.filter(pl.col("step") == step["step"])
    assert inside.height == 105
    assert inside["start_ns"].is_between(step["start_ns"], step["end_ns"]).all()


def test_mindspore_timeline_agrees_with_its_tables(mindspore: Profile) -> None:
    ops = mindspore.ops.filter(pl.col("core") == "AI_CORE")
    framework = mindspore.statistics["framework"].unique("name")
    both = ops.join(framework, on="name", suffix="_file")
    assert both.height == ops.height
    for column in ("input_shapes", "output_shapes", "input_types", "stream", "task", "block_num"):
        assert (both[column] == both[f"{column}_file"]).all(), column
    aicpu = mindspore.statistics["aicpu"]
    own = mindspore.ops.filter(pl.col("core") == "AI_CPU").sort("start_ns")
    assert (own["start_ns"] - aicpu["timestamp_ns"]).abs().max() < 1000
    assert own["type"].to_list() == aicpu["node"].to_list()


def test_mindspore_types_and_formats_use_msprofs_terms(mindspore: Profile) -> None:
    words = {
        column: {
            word
            for text in mindspore.ops[column].drop_nulls().to_list()
            for word in text.split(";")
        }
        for column in ("input_types", "output_types", "input_formats", "output_formats")
    }
    # An empty word is a type that the file calls UNKNOWN, or no tensor at all.
    assert words["input_types"] | words["output_types"] == {"", "UINT8", "UINT64"}
    formats = words["input_formats"] | words["output_formats"]
    assert formats == {"", "ND", "NC1HWC0", "FRACTAL_Z"}


def test_mindspore_collectives_are_listed_per_step_with_links(mindspore: Profile) -> None:
    steps = mindspore.collectives["step"].unique().sort()
    # The row of averages is no step.
    assert steps.to_list() == [1, 2, 3, 4, 5, 6]
    first = mindspore.collectives.filter(
        pl.col("step") == 1, pl.col("name") == "stream_41_0_AllReduce-op4582"
    ).row(0, named=True)
    assert (first["transit_ns"], first["wait_ns"], first["elapse_ns"]) == (3220, 10350, 13570)
    link = mindspore.links.filter(
        pl.col("step") == 1, pl.col("name") == "stream_41_0_AllReduce-op4582"
    ).sort("source")
    assert link.select("source", "destination", "transport", "size_bytes", "transit_ns").rows() == [
        (0, 0, "SDMA", 2048, 850),
        (1, 0, "SDMA", 4096, 2370),
    ]
    # Its own figure for the first: 1,728,270 KB a second.
    assert link["bandwidth_gb_s"][1] == pytest.approx(1.728270, abs=1e-5)


def test_graph_mode_collective_is_split_without_remainder(graph_mode: Profile) -> None:
    (row,) = graph_mode.collectives.iter_rows(named=True)
    assert row["name"] == "Default/AllReduce-op534_0"
    assert row["elapse_ns"] == 41_534_300
    assert row["transit_ns"] + row["wait_ns"] + row["idle_ns"] == row["elapse_ns"]
    assert row["transit_ns"] > 5_000_000
    (op,) = graph_mode.ops.filter(pl.col("core") == "COMMUNICATION").iter_rows(named=True)
    assert (op["type"], op["step"], op["duration_ns"]) == ("AllReduce", 1, 41_534_300)


def test_graph_mode_bytes_come_from_its_copies(graph_mode: Profile, samples: Path) -> None:
    (file,) = (samples / "msprof_cann6_2023").rglob("hccl_*.json")
    sent = sum(
        event["args"]["size(Byte)"]
        for event in json.loads(file.read_text())
        # A copy within the device has no other rank.
        if event.get("ph") == "X" and event.get("args", {}).get("dst rank", 1 << 32) < 1 << 31
    )
    links = graph_mode.links.sort("destination").select("source", "destination", "transport")
    assert links.rows() == [(0, 1, "HCCS"), (0, 2, "HCCS"), (0, 3, "HCCS"), (0, 4, "PCIE")]
    assert graph_mode.links["size_bytes"].sum() == sent > 0
    assert graph_mode.links["bandwidth_gb_s"].is_between(10, 20).all()


TASKS = """\
kernel_name,kernel_type,stream_id,task_id,task_time(us),task_start(us),task_stop(us)
Conv2D_12,KERNEL_AICORE,2,5,12.5,"1693920000000000.100\t","1693920000000012.600\t"
TopK,KERNEL_AICPU,3,6,100,"1693920000000020.000\t","1693920000000120.000\t"
,EVENT_RECORD,3,7,0.02,"1693920000000121.000\t","1693920000000121.020\t"
"""


def test_tasks_are_ops_without_an_op_summary(tmp_path: Path) -> None:
    file = tmp_path / "task_time_20230905213000.csv"
    file.write_text(TASKS)
    told = ["name", "type", "core", "stream", "task", "start_ns", "duration_ns"]
    profile = read(tmp_path)
    assert profile.ops.select(told).rows() == [
        ("Conv2D_12", "Conv2D", "AI_CORE", "2", 5, 1693920000000000100, 12500),
        ("TopK", "TopK", "AI_CPU", "3", 6, 1693920000000020000, 100_000),
    ]
    assert profile.statistics["task_time"].height == 3
    summary = "Op Name,OP Type,Task Type,Task Start Time(us),Task Duration(us)\nA,B,AI_CORE,1,2\n"
    (tmp_path / "op_summary_1.csv").write_text(summary)
    assert read(tmp_path).ops["name"].to_list() == ["A"]


def test_oversized_chip_table_is_refused_and_named(tmp_path: Path) -> None:
    (tmp_path / "op_summary.csv").write_text(
        "Op Name,OP Type,Task Type,Task Start Time(us),Task Duration(us)\nA,B,CPU,1,2\n"
    )
    (tmp_path / "chip.json").write_text('{"chips": [{"cube_tflops": {}}]}' + " " * (1 << 20))
    profile = read(tmp_path)
    assert ["chip.json" in gap.file for gap in profile.missing if "1 MiB" in gap.what] == [True]


@pytest.mark.parametrize(
    "text",
    [
        '[{"ph": "X", "fullname": 1, "data_type": 2, "args": {"fullname": [], "input_0": 3}}]',
        '[{"ph": "X", "ts": 1, "dur": 1, "args": {"fullname": "a", "input_0": {"data_type": {}}}}]',
        '[{"ph": "X", "name": "HCCL"}, {"name": "Communication Kernel"}',
        '[{"ph": "X", "ts": "1", "dur": -1, "name": "HCCL", "args": "Communication Kernel"}]',
    ],
)
def test_odd_traces_are_read_or_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "op_summary.csv").write_text(
        "Op Name,OP Type,Task Type,Task Start Time(us),Task Duration(us)\nA,B,AI_CORE,1,2\n"
    )
    (tmp_path / "odd.json").write_text(text)
    assert read(tmp_path).ops.height


def test_thread_given_as_an_object_is_a_lane(tmp_path: Path) -> None:
    lane = {"pid": {}, "tid": []}
    events = [
        {"name": "process_name", "ph": "M", "pid": 1, "tid": 0, "args": {"name": "HCCL"}},
        {"name": "thread_name", "ph": "M", **lane, "args": {"name": "Communication Kernel"}},
        {"name": "allreduce", "ph": "X", "ts": 5, "dur": 2, **lane, "args": {}},
    ]
    (tmp_path / "hccl_0_2_1.json").write_text(json.dumps(events))
    assert read(tmp_path).collectives["name"].to_list() == ["allreduce"]


def test_odd_collective_costs_are_omitted(tmp_path: Path) -> None:
    costs = ['""', '"{"', '"[1]"', '"{""a"": [1]}"', '"{""a"": [""1"", ""x"", 1, 3]}"']
    costs.append('"{""b"": [""1"", 0.5, 0.25, {""1-0"": {""SDMA"": [1]}, ""x"": 3}]}"')
    rows = "\n".join(f"{number},1,1,x,{cost}" for number, cost in enumerate(costs, 1))
    (tmp_path / "hccl_raw_0.csv").write_text(
        f"step_num,communication_cost,wait_cost,link_info,communication_operator_cost\n{rows}\n"
    )
    found = read(tmp_path).collectives.select("step", "name", "transit_ns", "wait_ns")
    assert_frame_equal(
        found,
        pl.DataFrame(
            {"step": [6], "name": ["b"], "transit_ns": [500_000], "wait_ns": [250_000]},
            schema=found.schema,
        ),
    )
