"""Op rows of op_summary and kernel_details."""

from pathlib import Path

import pytest

from jumar.profiling.profile import Missing
from jumar.profiling.reading.file_content import FileContent
from jumar.profiling.reading.tables.op_tables import read_ops


def read(folder: Path, *lines: str, kind: str = "op_summary") -> FileContent:
    path = folder / "x.csv"
    path.write_text("".join(f"{line}\n" for line in lines))
    return read_ops(path, "shown.csv", kind)


HEADER = "Op Name,OP Type,Task Type,Task Start Time(us),Task Duration(us),Input Shapes"
HEADER += ",Input Data Types"


def test_torch_npu_kernel_has_every_op_table_column(tmp_path: Path) -> None:
    found = read(
        tmp_path,
        "Step Id,Device_id,Model ID,Task ID,Stream ID,Infer ID,Name,Type,OP State,Accelerator Core,"
        "Start Time(us),Duration(us),Wait Time(us),Block Num,Mix Block Num,HF32 Eligible,"
        "Input Shapes,Input Data Types,Input Formats,Output Shapes,Output Data Types,"
        "Output Formats,Context ID,aic_mac_ratio, aiv_time(us) ",
        '4,0,9,3,2,77,"\'=mm",MatMul,static,AIV,"1736408883704643.212\t",1.5,0.25,20,0,NO,'
        '"""2,3;4""",DT_FLOAT;DT_BF16,FORMAT_ND;NCHW,"""""",FLOAT,N/A,0,0.5,N/A',
        kind="kernel_details",
    )
    assert (found.file, found.kind, found.producer, found.device, found.missing) == (
        *("shown.csv", "kernel_details", "torch_npu", "npu", ()),
    )
    assert found.ops is not None
    assert found.ops.to_dicts() == [
        {
            **{"step": 4, "device": 0, "task": 3, "stream": "2", "name": "=mm", "type": "MatMul"},
            **{"state": "static", "core": "AI_VECTOR_CORE", "start_ns": 1736408883704643212},
            **{"duration_ns": 1500, "wait_ns": 250, "block_num": 20, "input_shapes": "2,3;4"},
            **{"input_types": "FLOAT;BF16", "input_formats": "ND;NCHW", "output_shapes": ""},
            **{"output_types": "FLOAT", "output_formats": None},
            **{"aic_mac_ratio": 0.5, "aiv_time(us)": None},
        }
    ]


@pytest.mark.parametrize(
    ("core", "name", "expected"),
    [
        *(("AICPU", "a", "AI_CPU"), ("HCCL", "a", "COMMUNICATION"), ("MIX_AIC", "a", "MIX_AIC")),
        *(("N/A", "hcom_allReduce_", "COMMUNICATION"), ("N/A", "hcom_1", None), ("N/A", "a", None)),
        *(("AI_CORE", "hcom_allReduce_", "AI_CORE"), ("N/A", "x_hcom_all", None)),
    ],
)
def test_cores_use_current_terms_and_collectives_are_recognised_by_name(
    tmp_path: Path, core: str, name: str, expected: str | None
) -> None:
    found = read(tmp_path, HEADER, f"{name},b,{core},1,2,7,FLOAT", "z,b,AI_CORE,1,2,7,FLOAT")
    assert found.ops is not None
    assert found.ops["core"].to_list() == [expected, "AI_CORE"]
    bare = read(tmp_path, "Name,Duration(us),Accelerator Core X", f"{name},2,x")
    assert bare.ops is not None
    expected = "COMMUNICATION" if name == "hcom_allReduce_" else None
    assert bare.ops["core"].to_list() == [expected]


@pytest.mark.parametrize(("lost", "noun"), [(1, "1 row"), (2, "2 rows")])
def test_rows_without_name_or_duration_are_omitted_and_counted(
    tmp_path: Path, lost: int, noun: str
) -> None:
    bad = ["N/A,b,AI_CORE,1,2,7,FLOAT", "a,b,AI_CORE,1,N/A,7,FLOAT"][:lost]
    found = read(tmp_path, HEADER, "ok,b,AI_CORE,N/A,0,7,FLOAT", *bad, "k,b,AI_CORE,1,2,7,FLOAT")
    assert found.ops is not None
    assert found.ops.select("name", "duration_ns").rows() == [("ok", 0), ("k", 2_000)]
    assert found.missing == (
        Missing(file="shown.csv", what=f"{noun} without a name or a duration"),
    )


def test_negative_duration_is_invalid(tmp_path: Path) -> None:
    found = read(tmp_path, HEADER, "a,b,AI_CORE,1,-2,7,FLOAT", "k,b,AI_CORE,1,0,7,FLOAT")
    assert found.ops is not None
    assert found.ops["name"].to_list() == ["k"]
    assert [gap.what for gap in found.missing] == [
        "1 row without a name or a duration",
        "1 number cannot be read: line 2, column 'Task Duration(us)': '-2'",
    ]


def test_missing_columns_are_named_with_the_views_that_need_them(tmp_path: Path) -> None:
    def gap(what: str, *needed_for: str) -> Missing:
        return Missing(file="shown.csv", what=what, needed_for=needed_for)

    found = read(tmp_path, "Op Name,Task Duration(us),aic_x", "a,2,1")
    assert found.missing == (
        gap("types of ops (profiler level 0)", "casts", "AI CPU", "compare by type"),
        gap("cores of ops (profiler level 0)", "AI CPU", "low core use"),
        gap("types of inputs", "casts", "precision"),
        gap("shapes of inputs", "roofline", "casts"),
        gap("start times", "step split", "timeline"),
    )
    # Where one op has it, it is not missing; collectives alone are not asked.
    partly = read(tmp_path, HEADER, "a,N/A,N/A,N/A,2,N/A,N/A", "b,c,AI_CORE,1,2,7,FLOAT")
    assert partly.missing == ()
    collectives = read(tmp_path, HEADER, "hcom_all,N/A,HCCL,N/A,2,N/A,N/A")
    assert collectives.missing == ()
    beside = read(tmp_path, HEADER, "hcom_all,t,HCCL,1,2,7,FLOAT", "a,N/A,AI_CORE,1,2,7,FLOAT")
    assert [one.what for one in beside.missing] == ["types of ops (profiler level 0)"]


@pytest.mark.parametrize(
    ("cores", "kind"),
    [
        (("AI_CORE", "CPU"), "cpu"),
        (("CPU", "CUDA_MEMCPY"), "cuda"),
        (("AI_CORE", "N/A"), "npu"),
        (("MY_CUDA", "AI_CPU"), "npu"),
    ],
)
def test_op_location_follows_from_its_core(
    tmp_path: Path, cores: tuple[str, str], kind: str
) -> None:
    assert read(tmp_path, HEADER, *(f"a,b,{core},1,2,7,FLOAT" for core in cores)).device == kind


def test_our_columns_identify_our_files(tmp_path: Path) -> None:
    found = read(tmp_path, f"{HEADER},Module,Size(B),Rank", "a,b,CPU,1,2,7,FLOAT,net.1,12,x")
    assert found.producer == "jumar"
    assert found.ops is not None
    assert found.ops.select("module", "bytes", "rank").rows() == [("net.1", 12, None)]
    assert [gap.what for gap in found.missing] == [
        "1 number cannot be read: line 2, column 'Rank': 'x'"
    ]


def test_first_of_two_equivalent_columns_counts(tmp_path: Path) -> None:
    found = read(tmp_path, f"{HEADER},Infer ID,Iteration ID,name", "a,b,CPU,1,2,7,FLOAT,5,6,c")
    assert found.ops is not None
    assert found.ops.select("name", "step").rows() == [("a", 5)]
    other = read(tmp_path, f"{HEADER},Infer ID,Step Id", "a,b,CPU,1,2,7,FLOAT,5,6")
    assert other.ops is not None
    assert other.ops["step"].to_list() == [6]
