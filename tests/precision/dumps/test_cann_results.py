"""What Ascend's own tools wrote is read as they meant it."""

import json
import math
from pathlib import Path

import pytest

from jumar.ground.errors import UserError
from jumar.precision.dumps.cann_results import (
    AscendResult,
    Overflow,
    is_record,
    read_overflow,
    read_results,
)


def test_rows_distinguish_not_compared_from_nan(shared: Path, tmp_path: Path) -> None:
    (path,) = (shared / "data/dumps/cann").rglob("result_*.csv")
    rows = read_results(path)
    assert len(rows) == 9
    assert [row.npu for row in rows if row.numbers.get("CosineSimilarity", 1) < 0.98] == ["Softmax"]
    assert rows[-1].tensor == "output:0"
    assert rows[0].numbers == {}
    assert "no dump file" in rows[0].reason
    text = path.read_text().replace("0.613453", "nan").replace("NaN,0.9", "YES,0.9")
    (tmp_path / path.name).write_text(text)
    assert math.isnan(read_results(tmp_path / path.name)[-1].numbers["CosineSimilarity"])


def test_overflow_record_names_its_task_and_the_event(shared: Path, tmp_path: Path) -> None:
    (path,) = (shared / "data/dumps/cann").rglob("Opdebug*.json")
    (one,) = read_overflow(path)
    assert (one.unit, one.task, one.stream, one.status) == ("AIC", 3, 12, 32)
    assert one.meanings == ["float overflow"]
    older = [
        {
            "DHA Atomic Add": {"task_id": 1, "stream_id": 2, "status": 0},
            "L2 Atomic Add": {"task_id": 1, "stream_id": 2},
            "AI Core": {"task_id": -1, "stream_id": -1, "status": "0x120"},
        }
    ]
    renamed = tmp_path / "Opdebug.Node_OpDebug.7.12.1767268800001005.output.0.json"
    renamed.write_text(json.dumps(older))
    (one,) = read_overflow(renamed)
    assert (one.unit, one.task, one.stream) == ("AI Core", 7, 12)
    assert len(one.meanings) == 2


def test_other_files_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_text("a,b\n1,2\n")
    with pytest.raises(UserError, match="not a result of msaccucmp"):
        read_results(path)
    path.write_text("[1]")
    with pytest.raises(UserError, match="not an overflow record"):
        read_overflow(path)


HEADS = "Index,OpSequence,OpType,NPUDump,DataType,GroundTruth,TensorIndex,OverFlow,Cosine,Std,Odd"


def result(path: Path, *lines: str) -> Path:
    path.write_text("\n".join([HEADS, *lines]) + "\n")
    return path


def test_every_cell_is_read_by_its_column(tmp_path: Path) -> None:
    path = result(
        tmp_path / "result_1.csv",
        "1,2,MatMul,a,float16,b,a:input:3,YES,0.5,(1;2),inf",
        "",
        "2,3,Add,c,float16,*,NaN,NO,NaN,-0.0,nan",
        "3,4,Sub,d,float16,NaN,d:output:0,NaN,1e-3,x,-inf",
    )
    first, second, third = read_results(path)
    assert first == AscendResult(
        op_type="MatMul",
        npu="a",
        golden="b",
        tensor="input:3",
        overflowed=True,
        numbers={"Cosine": 0.5, "Odd": math.inf},
        reason="",
    )
    assert (second.golden, second.tensor, second.overflowed) == ("", "", False)
    assert str(second.numbers["Std"]) == "0.0"
    assert set(second.numbers) == {"Std", "Odd"}
    assert math.isnan(second.numbers["Odd"])
    assert (third.golden, third.tensor, third.overflowed) == ("", "output:0", None)
    assert third.numbers == {"Cosine": 0.001, "Odd": -math.inf}
    result(path, "1,2", "")
    with pytest.raises(UserError) as error:
        read_results(path)
    assert (error.value.what, error.value.where) == ("has 2 cells instead of 11", f"{path}:2")


@pytest.mark.parametrize("text", ["", "\n", "Index,OpType,NPUDump,GroundTruth\n"])
def test_table_without_result_columns_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "r.csv"
    path.write_text(text)
    with pytest.raises(UserError) as error:
        read_results(path)
    assert str(error.value) == (
        f"{path}: is not a result of msaccucmp\n  Expected: a CSV file with the columns"
        " Index, OpType, NPUDump, GroundTruth, TensorIndex."
    )


def overflows(path: Path, content: object) -> list[Overflow]:
    path.write_text(json.dumps(content))
    return read_overflow(path)


def test_units_with_a_status_are_overflows_and_minus_1_means_the_files_name(
    tmp_path: Path,
) -> None:
    path = tmp_path / "Opdebug.Node_OpDebug.7.1767268800001005.output.0.json"
    record = {"task_id": 0, "stream_id": -1, "status": ["0x8", 16, [32]]}
    (one,) = overflows(path, {"AI Core": record, "L2": {"status": "0"}, "DHA": {}})
    meanings = ["sign inversion", "integer overflow", "float overflow"]
    assert one == Overflow(unit="AI Core", task=0, stream=None, status=56, meanings=meanings)
    bits = {
        0x80: "negative number to unsigned",
        0x100: "overflow of a cast to fp16 or integer",
        0x400: "overflow of an accumulation in a matrix product",
    }
    for bit, meaning in bits.items():
        (one,) = overflows(path, [{"AI Core": {"status": bit}}])
        assert (one.meanings, one.task, one.stream, one.status) == ([meaning], 7, None, bit)
        assert one.is_task_from_name
    (one,) = overflows(path, {"AI Core": {"status": 2}})
    assert one.meanings == []
    nameless = tmp_path / "x.json"
    (one,) = overflows(nameless, {"AI Core": {"status": 8, "task_id": -1}})
    assert (one.task, one.stream, one.is_task_from_name) == (None, None, False)


def test_record_with_a_list_of_units_names_the_valid_ones(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    valid = {"valid": 1, "acc_type": "AIC", "data": {"status": 32, "task_id": 3, "stream_id": 4}}
    other = valid | {"valid": "0", "acc_type": "AIV"}
    for listed in ([other, valid], valid):
        (one,) = overflows(path, {"acc_list": listed})
        assert (one.unit, one.task, one.stream) == ("AIC", 3, 4)
    with pytest.raises(UserError) as error:
        overflows(path, {"acc_list": [{"acc_type": "AIC"}]})
    assert error.value.what == "is not an overflow record: KeyError 'valid'"
    assert (error.value.where, error.value.todo) == (
        str(path),
        "Expected: a decoded Opdebug file, with 'acc_list' or one status per unit.",
    )


@pytest.mark.parametrize(
    ("unit", "status", "meaning"),
    [
        ("DHA Atomic Add", 0x900, "overflow of an atomic addition"),
        ("DHA Atomic Add", 0xA00, "underflow of an atomic addition"),
        ("DHA Atomic Add", 0xD01, "atomic addition of NaN to NaN"),
        ("DHA Atomic Add", 0x20, "overflow of an atomic addition"),
        ("L2 Atomic Add", 1 << 16, "overflow of an atomic addition"),
        ("L2 Atomic Add", 3 << 16, "atomic addition of NaN"),
        ("L2 Atomic Add", 4 << 16, "atomic addition to NaN"),
        ("L2 Atomic Add", 7 << 16, "overflow of an atomic addition"),
        ("AIV", 0x20, "float overflow"),
        ("SDMA", 0x20, None),
        ("AICPU", 0x20, None),
    ],
)
def test_status_has_the_meaning_of_its_unit(
    tmp_path: Path, unit: str, status: int, meaning: str | None
) -> None:
    (one,) = overflows(tmp_path / "x.json", {unit: {"status": status}})
    assert list(one.meanings) == ([] if meaning is None else [meaning])


@pytest.mark.parametrize(
    "status", [-1, 1 << 64, "0x" + "f" * 5000, math.inf, "x", {}, json.loads("[" * 900 + "]" * 900)]
)
def test_impossible_status_is_refused(tmp_path: Path, status: object) -> None:
    with pytest.raises(UserError, match="is not an overflow record"):
        overflows(tmp_path / "x.json", {"AIC": {"status": status}})


def test_mark_of_a_spreadsheet_is_no_part_of_the_header(tmp_path: Path) -> None:
    path = result(tmp_path / "result_1.csv", "1,2,MatMul,a,float16,b,a:input:3,YES,0.5,1,2")
    path.write_text("\ufeff" + path.read_text())
    (row,) = read_results(path)
    assert row.npu == "a"


def test_kind_of_a_file_is_that_of_its_content(tmp_path: Path) -> None:
    path = tmp_path / "x"
    for text, expected in ((" \n{", True), ("[", True), ("Index,OpType", False), ("", False)):
        path.write_text(text)
        assert is_record(path) is expected
    path.write_bytes(b"6\0\0\0")
    with pytest.raises(UserError) as error:
        is_record(path)
    assert "msaccucmp.py convert" in error.value.todo
    path.write_text("{")
    with pytest.raises(UserError, match="truncated or not JSON"):
        read_overflow(path)
