"""Every header since CANN 5 is known by its names, and its units are believed."""

from pathlib import Path

import polars as pl
import pytest

from jumar.ground.errors import UserError
from jumar.profiling import read

_CANN5 = (
    "Model Name,Model ID,Task ID,Stream ID,Infer ID,Op Name,OP Type,Task Type,Task Start Time,"
    "Task Duration(us),Task Wait Time(us),Block Dim,Input Shapes,Input Data Types,Input Formats,"
    "Output Shapes,Output Data Types,Output Formats,aicore_time(us),mac_ratio\n"
    'resnet,1,3,4,2,conv1,Conv2D,AI_CORE,"56635864664.91\t",23.1,0,8,"""1,2;3""",'
    "DT_FLOAT16;DT_FLOAT,FORMAT_NC1HWC0;ND,N/A,N/A,N/A,21.0,0.5\n"
)
_NEWEST = (
    "Device_id,Model ID,Task ID,Stream ID,Op Name,OP Type,OP State,Task Type,Task Start Time(us),"
    "Task Duration(us),Task Wait Time(us),Block Num,Mix Block Num,HF32 Eligible,Input Shapes,"
    "Input Data Types,Input Formats,Output Shapes,Output Data Types,Output Formats,Context ID\n"
    '0,4294967295,3,4,op,Cast,dynamic,AI_VECTOR_CORE,"1736408883704643.212\t",0.5,N/A,40,0,NO,'
    '"""""",FLOAT,ND,"""2""",DT_BF16,ND,N/A\n'
)


def _read(tmp_path: Path, content: str, name: str = "x.csv") -> pl.DataFrame:
    (tmp_path / name).write_text(content)
    return read(tmp_path / name).ops


def test_op_summary_of_cann_5_is_read(tmp_path: Path) -> None:
    row = _read(tmp_path, _CANN5).row(0, named=True)
    assert row["start_ns"] == 56635864664910
    assert (row["duration_ns"], row["step"], row["block_num"]) == (23100, 2, 8)
    assert (row["input_shapes"], row["input_types"]) == ("1,2;3", "FLOAT16;FLOAT")
    assert (row["input_formats"], row["output_shapes"]) == ("NC1HWC0;ND", None)
    assert row["mac_ratio"] == 0.5


def test_current_op_summary_is_read(tmp_path: Path) -> None:
    row = _read(tmp_path, _NEWEST, "a_name_that_says_nothing.csv").row(0, named=True)
    assert row["start_ns"] == 1736408883704643212
    assert (row["block_num"], row["wait_ns"], row["state"]) == (40, None, "dynamic")
    assert row["input_shapes"] == ""
    assert row["output_types"] == "BF16"


@pytest.mark.parametrize(
    ("header", "nanoseconds"),
    [
        ("Node,Compute_time,Memcpy_time,Task_time,Dispatch_time,Total_time", 1_500_000),
        (
            "Timestamp(us),Node,Compute_time(ms),Memcpy_time(ms),Task_time(ms),"
            "Dispatch_time(ms),Total_time(ms)",
            1_500_000,
        ),
        (
            "Timestamp(us),Node,Compute_time(us),Memcpy_time(us),Task_time(us),"
            "Dispatch_time(us),Total_time(us),Stream ID,Task ID",
            1_500,
        ),
    ],
    ids=["CANN 5", "CANN 6", "CANN 8"],
)
def test_unit_of_ai_cpu_times_comes_from_the_header(
    tmp_path: Path, header: str, nanoseconds: int
) -> None:
    fields = {"Node": "Unique", "Timestamp(us)": "12.5", "Stream ID": "3", "Task ID": "4"}
    row = ",".join(fields.get(name, "1.5") for name in header.split(","))
    (tmp_path / "t.csv").write_text(f"{header}\n{row}\n")
    table = read(tmp_path / "t.csv").statistics["aicpu"]
    assert table["compute_time_ns"].to_list() == [nanoseconds]
    assert table["node"].to_list() == ["Unique"]


@pytest.mark.parametrize(
    ("header", "kind"),
    [
        ("Model Name,OP Type,Core Type,Count,Total Time,Min,Avg,Max,Ratio", "op_statistic"),
        ("OP Type,Core Type,Count,Total Time(us),Min Time(us),Ratio(%)", "op_statistic"),
        ("OP Type,Count,Total Time(us),Min Time(us),Ratio(%)", "communication_statistic"),
        ("kernel_name,kernel_type,stream_id,task_id,task_time(us),task_start(us)", "task_time"),
        ("Time(%),Time(us),Count,Avg,Min,Max,Waiting,Running,Pending,Op Name", "task_time"),
        ("Device_id,Level,API Name,Time(us),Count,Variance", "api_statistic"),
        ("Model Name,Fusion Op,Original Ops,Memory Input(Bytes)", "fusion_op"),
        ("Timestamp(us),Action,Source,Cached Buffer Size", "dp"),
        ("Node Name,Start(us),End(us),Queue Size", "aicpu_mi"),
        ("Stream Id,Task Id,Hit Rate,Victim Rate,Op Name", "l2_cache"),
    ],
)
def test_table_is_recognised_by_its_header(tmp_path: Path, header: str, kind: str) -> None:
    row = ",".join("1" for _ in header.split(","))
    (tmp_path / "x.csv").write_text(f"{header}\n{row}\n")
    assert list(read(tmp_path / "x.csv").statistics) == [kind]


def test_column_order_does_not_matter(tmp_path: Path) -> None:
    header, row = (line.split(",") for line in _NEWEST.replace('"""""",', "7,").splitlines())
    order = sorted(range(len(header)), key=lambda place: header[place][::-1])
    shuffled = "\n".join(",".join(fields[place] for place in order) for fields in (header, row))
    straight = ",".join(header) + "\n" + ",".join(row) + "\n"
    assert _read(tmp_path, shuffled + "\n").equals(_read(tmp_path, straight))


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-le", "gb18030"])
def test_other_encodings_are_read(tmp_path: Path, encoding: str) -> None:
    (tmp_path / "x.csv").write_bytes(_NEWEST.replace(",op,", ",卷积,").encode(encoding))
    assert read(tmp_path / "x.csv").ops["name"].to_list() == ["卷积"]


def test_slices_and_repeated_files_form_one_table(tmp_path: Path) -> None:
    other = _NEWEST.replace(",op,", ",op2,")
    (tmp_path / "op_summary_slice_0_2024.csv").write_text(_NEWEST)
    (tmp_path / "op_summary_slice_1_2024.csv").write_text(other)
    (tmp_path / "op_summary_0_1_2.csv").write_text(_NEWEST)
    assert sorted(read(tmp_path).ops["name"]) == ["op", "op2"]


def test_devices_in_one_msprof_folder_are_ranks(tmp_path: Path) -> None:
    for device in (0, 1):
        folder = tmp_path / "PROF_000001_20230818_ABC" / f"device_{device}" / "summary"
        folder.mkdir(parents=True)
        (folder / "op_summary_0_1.csv").write_text(_CANN5)
    assert read(tmp_path).ranks == (0, 1)


def test_unknown_table_is_named(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("a,b\n1,2\n")
    with pytest.raises(UserError, match="header"):
        read(tmp_path / "x.csv")
    (tmp_path / "y.csv").write_text(_NEWEST)
    assert [gap.file for gap in read(tmp_path).missing] == [f"{tmp_path}/x.csv"]


def test_level_0_is_reported_with_the_impossible_views(tmp_path: Path) -> None:
    header = "Step Id,Name,Type,Accelerator Core,Start Time(us),Duration(us),Wait Time(us)"
    rows = f"{header}\n1,a,N/A,N/A,1.5,2,0\n1,hcom_allReduce__1_0_1,N/A,HCCL,4,5,0\n"
    (tmp_path / "k.csv").write_text(rows)
    profile = read(tmp_path / "k.csv")
    assert profile.ops["core"].to_list() == [None, "COMMUNICATION"]
    assert any("casts" in gap.needed_for for gap in profile.missing)
