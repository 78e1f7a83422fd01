"""What is written under msprof's names reads back as the same tables."""

import csv
from pathlib import Path
from tempfile import TemporaryDirectory

import polars as pl
from hypothesis import given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

from jumar.profiling import Profile, read
from jumar.profiling.profile import OPS_SCHEMA, STEPS_SCHEMA
from jumar.profiling.writing import ops_csv, without_formulas, write_csv

_NAMES = st.text(st.characters(codec="utf-8", categories=("L", "N", "P", "S")), min_size=1)
_SAFE = _NAMES.filter(
    lambda text: (
        text.strip(" \t\r\n\"'") == text and text not in ("N/A", "NA", "n/a", "-", "null", "None")
    )
)
_NUMBER = st.integers(0, 2**40)
_MAYBE = st.none() | _NUMBER
_OP = st.fixed_dictionaries(
    {
        "rank": st.integers(0, 3),
        "step": _MAYBE,
        "device": st.just(0),
        "stream": st.none() | st.integers(0, 99).map(str),
        "task": _MAYBE,
        "name": _SAFE,
        "type": st.sampled_from(["Conv2D", "Cast", "MatMul"]),
        "core": st.sampled_from(["AI_CORE", "AI_CPU", "MIX_AIC", "COMMUNICATION"]),
        "start_ns": st.integers(0, 2**61),
        "duration_ns": _NUMBER,
        "wait_ns": _MAYBE,
        "block_num": _MAYBE,
        "input_shapes": st.sampled_from([None, "", "2,3", "2,3;;4", ";"]),
        "input_types": st.sampled_from([None, "FLOAT", "FLOAT16;BF16"]),
        "module": st.none() | st.sampled_from(["features.0", "a,b", 'c"d']),
        "flops": _MAYBE,
        "bytes": _MAYBE,
        "launch_ns": st.none() | st.integers(0, 2**61),
        "aic_mac_ratio": st.none() | st.floats(0, 1),
    }
)


@settings(max_examples=25)
@given(st.lists(_OP, min_size=1, max_size=6))
def test_ops_round_trip(rows: list[dict[str, object]]) -> None:
    schema = {**OPS_SCHEMA, "aic_mac_ratio": pl.Float64()}
    ops = pl.DataFrame(rows, schema=schema)
    profile = Profile(source="made", producer="jumar", kind="npu", ops=ops)
    with TemporaryDirectory() as folder:
        assert write_csv(profile, folder)
        back = read(Path(folder))
    assert_frame_equal(back.ops, ops, check_exact=True)


def test_steps_round_trip_to_the_nanosecond(tmp_path: Path) -> None:
    row = {name: 1736408883704643212 + place for place, name in enumerate(STEPS_SCHEMA)}
    row |= {"rank": 2, "step": 50}
    steps = pl.DataFrame([row], schema=dict(STEPS_SCHEMA))
    ops = pl.DataFrame(schema=dict(OPS_SCHEMA))
    write_csv(Profile(source="made", producer="jumar", kind="npu", ops=ops, steps=steps), tmp_path)
    assert_frame_equal(read(tmp_path).steps, steps)


def test_samples_read_back_from_our_own_files(shared: Path, tmp_path: Path) -> None:
    profile = read(shared / "data" / "msprof" / "torch_npu_level1_2rank")
    write_csv(profile, tmp_path)
    assert not [name for name in tmp_path.iterdir() if name.name.startswith(".")]
    back = read(tmp_path)
    assert back.producer == "jumar"
    assert_frame_equal(back.ops, profile.ops, check_exact=True)
    assert_frame_equal(back.steps, profile.steps)


def test_op_names_are_not_formulas_in_our_files_and_round_trip(tmp_path: Path) -> None:
    names = ["=cmd|' /C calc'!A0", "+1+1", "-2+3", "@SUM(A1)", "mul"]
    columns = ("name", "type", "module")
    rows = [
        {**dict.fromkeys(columns, name), "start_ns": -5 * place, "duration_ns": 7}
        for place, name in enumerate(names)
    ]
    ops = pl.DataFrame(rows, schema=dict(OPS_SCHEMA)).with_columns(
        pl.lit(0, pl.Int32).alias("rank"), pl.lit("CPU").alias("core")
    )
    write_csv(Profile(source="made", producer="jumar", kind="cpu", ops=ops), tmp_path)
    with (tmp_path / "op_summary.csv").open(newline="") as file:
        header, *lines = csv.reader(file)
    cells = [cell for line in lines for cell in line if cell.startswith(("=", "+", "-", "@"))]
    assert cells == ["-0.005", "-0.010", "-0.015", "-0.020"]
    assert [line[header.index("Op Name")] for line in lines][:2] == ["'=cmd|' /C calc'!A0", "'+1+1"]
    assert read(tmp_path).ops["name"].to_list() == names


def test_sizes_and_times_are_written_in_the_units_of_their_headers(tmp_path: Path) -> None:
    memory = {
        **{"component": "PTA", "timestamp_ns": 1_500, "total_allocated_bytes": 3 << 19},
        **{"total_reserved_bytes": None, "total_active_bytes": 1 << 20, "stream_ptr": "5"},
        "device_type": "NPU:0",
    }
    allocation = {
        **{"name": "=a", "size_bytes": 1536, "allocation_time_ns": -2_005, "unknown": 7},
        **{"release_total_active_bytes": 5 << 18, "module": "net"},
    }
    aicpu = {"node": "TopK", "compute_time_ns": 10, "stream_id": 3}
    statistics = {
        "memory_record": pl.DataFrame([memory]),
        "operator_memory": pl.DataFrame([allocation]),
        "aicpu": pl.DataFrame([aicpu]),
    }
    ops = pl.DataFrame(schema=dict(OPS_SCHEMA))
    profile = Profile(source="m", producer="jumar", kind="npu", ops=ops, statistics=statistics)
    folder = tmp_path / "a" / "b"
    written = write_csv(profile, folder)
    assert written == [folder / f"{name}.csv" for name in ("aicpu", *sorted(statistics)[:0:-1])]
    assert sorted(folder.iterdir()) == sorted(written)
    texts = {path.stem: path.read_text().splitlines() for path in written}
    assert texts == {
        "aicpu": ["Node,Compute_time(us),Stream ID", "TopK,0.010,3"],
        "operator_memory": [
            "Name,Size(KB),Allocation Time(us),Release Total Active(MB),Module",
            "'=a,1.5,-2.005,1.25,net",
        ],
        "memory_record": [
            "Component,Timestamp(us),Total Allocated(MB),Total Reserved(MB),Total Active(MB),"
            "Stream Ptr,Device Type",
            "PTA,1.500,1.5,N/A,1.0,5,NPU:0",
        ],
    }


def test_op_table_has_msprofs_headers_followed_by_counters() -> None:
    rows = {
        "name": ["a", "b"],
        "start_ns": [1, None],
        "input_shapes": ["", None],
        "mac": [0.5, None],
    }
    table = ops_csv(pl.DataFrame(rows))
    assert table.columns == ["Op Name", "Task Start Time(us)", "Input Shapes", "mac"]
    assert table.rows() == [("a", "0.001", '""', 0.5), ("b", "N/A", "N/A", None)]
    assert ops_csv(pl.DataFrame({"rank": [3]})).to_dicts() == [{"Rank": "3"}]


def test_numbers_are_not_formulas() -> None:
    table = pl.DataFrame(
        {"a": ["-1.5", "+2e-5", "-x", "=1", "@a", "\ta", "a=1", None], "b": [-1] * 8}
    )
    assert without_formulas(table)["a"].to_list() == [
        *("-1.5", "+2e-5", "'-x", "'=1", "'@a", "'\ta", "a=1", None),
    ]
    assert without_formulas(table)["b"].to_list() == [-1] * 8
