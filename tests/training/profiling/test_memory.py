"""Memory of a capture: who allocated how much, and that the files of it read back."""

import json
from pathlib import Path

import polars as pl
import pytest
import torch
from polars.testing import assert_frame_equal

from jumar.profiling import Profile, read
from jumar.profiling.profile import OPS_SCHEMA, empty
from jumar.profiling.views import VIEWS, Options
from jumar.profiling.views.chips import chip_of, read_chips
from jumar.profiling.writing import write_csv
from jumar.training.profiling.files import CHIP, CaptureSummary
from jumar.training.profiling.memory import base_of, memory_tables
from jumar.training.profiling.rates import cpu_rates
from tests.training.profiling.test_capture import capture_for, trainer_with
from tests.training.small_tasks import point_task, small_plan

MB = 1 << 20


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> dict[str, pl.DataFrame]:
    """Of a recording in which 4 MB live for a while and 8 MB to the end."""
    kept = []
    activities = [torch.profiler.ProfilerActivity.CPU]
    with torch.profiler.profile(activities=activities, profile_memory=True) as profiler:
        short = torch.ones(MB)
        kept.append(torch.zeros(2 * MB))
        del short
    file = tmp_path_factory.mktemp("memory") / "trace.json"
    profiler.export_chrome_trace(str(file))
    return memory_tables(json.loads(file.read_text())["traceEvents"], 0)


def profile_of(tables: dict[str, pl.DataFrame]) -> Profile:
    return Profile(
        source="x", producer="jumar", kind="cpu", ops=empty(OPS_SCHEMA), statistics=tables
    )


def test_each_allocation_has_op_size_and_release(
    tables: dict[str, pl.DataFrame],
) -> None:
    large = tables["operator_memory"].filter(pl.col("size_bytes") >= MB)
    # Not `empty`, which asks the allocator, but the op that wanted the memory.
    assert large["name"].to_list() == ["aten::ones", "aten::zeros"]
    assert large["size_bytes"].to_list() == [4 * MB, 8 * MB]
    assert large["release_time_ns"].is_null().to_list() == [False, True]
    assert large["duration_ns"][0] > 0


def test_peak_is_the_memory_alive_at_once(tables: dict[str, pl.DataFrame]) -> None:
    profile = profile_of(tables)
    (peak,) = VIEWS["memory"].make(profile, Options()).iter_rows(named=True)
    assert peak["component"] == "PyTorch"
    assert peak["peak_allocated_mib"] == pytest.approx(12, abs=0.01)
    # A CPU reserves nothing, which is not the same as reserving 0 bytes.
    assert peak["peak_reserved_mib"] is None
    held = VIEWS["memory-by-op"].make(profile, Options())
    assert held.select("name", "held_mib").head(2).rows() == [("aten::zeros", 8), ("aten::ones", 4)]


def test_memory_tables_round_trip(tables: dict[str, pl.DataFrame], tmp_path: Path) -> None:
    names = {path.name for path in write_csv(profile_of(tables), tmp_path)}
    assert names == {"operator_memory.csv", "memory_record.csv"}
    back = read(tmp_path).statistics
    for name, table in tables.items():
        assert_frame_equal(back[name].select(table.columns), table, check_exact=True)


def test_torch_npu_tables_round_trip_exactly(shared: Path, tmp_path: Path) -> None:
    folder = shared / "data" / "msprof" / "torch_npu_level1_2rank" / "rank0_ascend_pt"
    profile = read(folder)
    write_csv(profile, tmp_path)
    back = read(tmp_path).statistics
    for name in ("operator_memory", "memory_record"):
        table = profile.statistics[name]
        assert table.height > 100
        assert_frame_equal(back[name].select(table.columns), table, check_exact=True)


def test_without_memory_events_there_are_no_tables() -> None:
    assert memory_tables([{"ph": "X", "name": "aten::add", "ts": 1, "dur": 1}], 0) == {}


def recorded(folder: Path, *, memory: bool = False, shapes: bool = True) -> Profile:
    """A capture of one step, read back."""
    task = point_task()
    capture = capture_for(task, folder, steps=1, memory=memory, shapes=shapes)
    trainer = trainer_with(task, small_plan(), folder, capture)
    trainer.observe(None)
    trainer.policy.close()
    return read(folder / "profile")


def test_cpu_capture_has_memory_work_and_a_roofline(tmp_path: Path) -> None:
    profile = recorded(tmp_path, memory=True)
    assert profile.producer == "jumar"
    assert VIEWS["memory"].make(profile, Options()).height == 1
    assert VIEWS["memory-by-op"].make(profile, Options())["module"].is_not_null().any()
    products = profile.ops.filter(pl.col("flops") > 0)
    assert products.height
    assert products["output_shapes"].is_not_null().all()
    roofline = VIEWS["roofline"].make(profile, Options())
    assert set(products["type"]) <= set(roofline["type"])
    chip = chip_of(profile)
    assert chip is not None
    assert not chip.assumed
    assert chip.source.startswith("measured")


def test_capture_has_no_memory_by_default(tmp_path: Path) -> None:
    recorded(tmp_path, memory=False)
    assert not (tmp_path / "profile" / "memory_record.csv").exists()
    assert (tmp_path / "profile" / CHIP).exists()


def test_without_shapes_ops_still_have_their_layers_and_times(tmp_path: Path) -> None:
    with_shapes = recorded(tmp_path / "with").ops
    profile = recorded(tmp_path / "without", shapes=False)
    assert profile.ops["type"].to_list() == with_shapes["type"].to_list()
    assert profile.ops["module"].to_list() == with_shapes["module"].to_list()
    assert (with_shapes["input_shapes"] != "").any()
    assert not (profile.ops["input_shapes"] != "").any()
    assert VIEWS["ops"].make(profile, Options()).height


@pytest.mark.parametrize(
    ("step_ms", "with_shapes", "pointed_out"),
    [(149.0, True, True), (110.0, True, False), (149.0, False, False)],
)
def test_steps_slowed_down_by_recording_shapes_are_reported(
    step_ms: float, with_shapes: bool, pointed_out: bool
) -> None:
    kept = CaptureSummary(
        folder=Path("profile"),
        ops=1,
        in_layers=1.0,
        step_ms=step_ms,
        plain_step_ms=100.0,
        with_shapes=with_shapes,
    )
    assert ("steps 49 % longer; --no-shapes" in kept.report()) == pointed_out


def test_measured_rates_form_a_chip_table(tmp_path: Path) -> None:
    file = tmp_path / CHIP
    file.write_text(json.dumps({"chips": [cpu_rates()]}))
    (chip,) = read_chips(file)
    assert chip.cube_peak("FLOAT") > 1e9
    assert chip.hbm_gb_s > 0.1
    assert 0 < chip.launch_us < 1000
    assert chip.name in chip.summary


def test_allocations_are_paired_by_device_and_address_and_belong_to_their_op() -> None:
    def op(name: str, start: float, length: float, **arguments: str) -> dict[str, object]:
        event = {"ph": "X", "cat": "cpu_op", "name": name, "ts": start, "dur": length}
        return {**event, "pid": 1, "tid": 1, "args": arguments}

    def moment(at: float, size: object, address: int, total: int, **more: int) -> dict[str, object]:
        facts = {"Bytes": size, "Addr": address, "Device Type": 0, "Device Id": -1}
        facts |= {"Total Allocated": total, "Total Reserved": 0}
        facts |= {name.replace("_", " "): value for name, value in more.items()}
        return {"ph": "i", "name": "[memory]", "ts": at, "pid": 1, "tid": 1, "args": facts}

    events = [
        moment(50.5, -400, 1, 0),
        op("aten::ones", 0, 20, **{"Module Hierarchy": "first"}),
        op("aten::empty", 5, 5),
        moment(6, 400, 1, 400),
        op("aten::empty_like", 30, 5),
        moment(31, 80, 2, 480, Device_Type=1, Device_Id=0, Total_Reserved=4096),
        moment(60, 8, 3, 8, Device_Type=9),
        moment(61, "8", 4, 8),
        moment(62, -8, 5, 0),
        moment(63, -80, 2, 0, Device_Type=1, Device_Id=1),
        moment(70, 400, 1, 400),
        {"ph": "i", "name": "[memory]", "ts": 99},
    ]
    tables = memory_tables(events, 1000)
    nothing = dict.fromkeys(
        (
            *("release_time_ns", "duration_ns", "release_total_allocated_bytes"),
            *("release_total_reserved_bytes", "module"),
        )
    )
    expected = [
        {
            "name": "aten::ones",
            "size_bytes": 400,
            "allocation_time_ns": 7000,
            "release_time_ns": 51500,
            "duration_ns": 44500,
            "allocation_total_allocated_bytes": 400,
            "allocation_total_reserved_bytes": None,
            "release_total_allocated_bytes": 0,
            "release_total_reserved_bytes": None,
            "device_type": "CPU",
            "module": "first",
        },
        {
            **nothing,
            "name": "aten::empty_like",
            "size_bytes": 80,
            "allocation_time_ns": 32000,
            "allocation_total_allocated_bytes": 480,
            "allocation_total_reserved_bytes": 4096,
            "device_type": "CUDA:0",
        },
        {
            **nothing,
            "name": "",
            "size_bytes": 8,
            "allocation_time_ns": 61000,
            "allocation_total_allocated_bytes": 8,
            "allocation_total_reserved_bytes": 0,
            "device_type": "other",
        },
        {
            **nothing,
            "name": "",
            "size_bytes": 400,
            "allocation_time_ns": 71000,
            "allocation_total_allocated_bytes": 400,
            "allocation_total_reserved_bytes": None,
            "device_type": "CPU",
        },
    ]
    assert tables["operator_memory"].rows(named=True) == expected
    record = tables["memory_record"]
    assert set(record["component"]) == {"PyTorch"}
    assert record["timestamp_ns"].to_list() == [
        *(7000, 32000, 51500, 61000, 62000, 63000, 64000, 71000)
    ]
    assert record["total_allocated_bytes"].to_list() == [400, 480, 0, 8, 8, 0, 0, 400]
    assert record["total_reserved_bytes"].to_list() == [None, 4096, None, 0, None, None, 0, None]
    assert record["total_active_bytes"].is_null().all()
    assert record["device_type"].to_list() == [
        *("CPU", "CUDA:0", "CPU", "other", "CPU", "CPU", "CUDA:1", "CPU")
    ]


def test_trace_clock_starts_at_its_stated_origin() -> None:
    assert base_of({"baseTimeNanoseconds": 1736408883704643212}) == 1736408883704643212
    assert base_of({"baseTimeNanoseconds": "12"}) == 12
    assert base_of({}) == 0
