"""`jumar precision results` says what Ascend's tools found, for both kinds of files."""

import json
from pathlib import Path

import pytest

from jumar.precision.dumps.cann_summary import THRESHOLD
from tests.cli.in_process import Done, here

HEAD = "Index,OpType,NPUDump,DataType,GroundTruth,TensorIndex"


@pytest.fixture
def comparison(shared: Path) -> Path:
    (path,) = (shared / "data/dumps/cann").rglob("result_*.csv")
    return path


@pytest.fixture
def record(shared: Path) -> Path:
    (path,) = (shared / "data/dumps/cann").rglob("Opdebug*.json")
    return path


def shown(folder: Path, text: str, *options: str, code: int = 0) -> Done:
    (folder / "result_1.csv").write_text(text)
    return here("precision", "results", "result_1.csv", *options, cwd=folder, code=code)


def table(done: Done) -> list[list[str]]:
    """The cells of the table, which follows an empty line."""
    lines = done.out.splitlines()
    return [line.split() for line in lines[lines.index("") + 1 :]]


def test_comparison_names_the_first_wrong_op(comparison: Path, tmp_path: Path) -> None:
    done = here("precision", "results", comparison, cwd=tmp_path, code=1)
    lines = done.out.splitlines()
    assert lines[:3] == [f"{comparison}: 9 rows of 4 ops", "compared: 5", "not compared: 4"]
    assert "  2  There is no ... in the fusion rule file." in lines
    assert "overflow: 0 of 3 checked ops" in lines
    where = lines.index(
        "first wrong tensor: output:0 of Softmax (SoftmaxV2), cosine similarity 0.613453, below"
        " 0.99"
    )
    assert lines[where + 1] == (
        "  its inputs are not wrong, so the error seems to arise in this op"
    )
    rows = table(done)
    assert rows[1][:5] == ["SoftmaxV2", "Softmax", "output:0", "0.613453", "2.0267"]
    assert len(rows) == 6


def test_threshold_and_number_of_rows_are_chosen(comparison: Path, tmp_path: Path) -> None:
    assert THRESHOLD == 0.99  # ACCURACY_THRESHOLD of msaccucmp's advisor_const.py
    options = ("--below", "0.6", "--top", "2")
    done = here("precision", "results", comparison, *options, cwd=tmp_path)
    assert "no tensor is wrong: no cosine similarity is below 0.6" in done.out
    assert len(table(done)) == 4
    assert done.out.endswith("3 further tensors not shown\n")
    done = here("precision", "results", comparison, "--below", "0.6", "--top", "0", cwd=tmp_path)
    assert len(table(done)) == 6
    for wrong in (("--below", "1.1"), ("--below", "-1"), ("--top", "-1")):
        here("precision", "results", comparison, *wrong, cwd=tmp_path, code=2)


def test_columns_that_are_missing_are_absent(tmp_path: Path) -> None:
    text = (
        f"{HEAD},MaxAbsoluteError,Odd\n1,Add,a,x,b,a:output:0,0.5,7\n2,Add,b,x,b,b:output:0,2,1\n"
    )
    done = shown(tmp_path, text, code=1)
    assert (
        "no CosineSimilarity, so no tensor can be judged; ordered by MaxAbsoluteError" in done.out
    )
    assert "overflow: not checked" in done.out
    assert table(done) == [
        ["op", "type", "op", "tensor", "largest", "error"],
        ["Add", "b", "output:0", "2"],
        ["Add", "a", "output:0", "0.5"],
    ]
    done = shown(tmp_path, f"{HEAD},Odd\n1,Add,a,x,b,a:output:0,0.5\n", code=1)
    assert table(done)[1] == ["Add", "a", "output:0", "0.5"]
    done = shown(tmp_path, f"{HEAD},CosineSimilarity\n1,Add,a,x,*,NaN,NaN\n", code=1)
    assert "no tensor can be judged, because none was compared" in done.out
    assert "  1  no reason given" in done.out


def test_not_a_number_and_one_sided_zeros_are_worst(tmp_path: Path) -> None:
    head = f"{HEAD},OverFlow,CosineSimilarity,CompareFailReason"
    zero = "Cannot compare by Cosine Similarity. All the data is zero in a.npy."
    lines = [
        "0,Add,x,x,b,x:output:0,NO,0.995,",
        "1,Add,a,x,b,a:input:0,NO,NaN,gone",
        "1,Add,a,x,b,a:input:1,NO,1,",
        f"1,Add,a,x,b,a:output:0,NO,NaN,{zero}",
        "2,Add,c,x,b,c:input:0,YES,nan,",
        "3,Add,d,x,b,d:output:0,YES,0.1,",
    ]
    done = shown(tmp_path, "\n".join([head, *lines]) + "\n", code=1)
    assert "output:0 of a (Add), all elements of one side are zero" in done.out
    assert "  its compared inputs (1 of 2) are not wrong" in done.out
    assert "overflow: 2 of 4 checked ops: c, d" in done.out
    assert "compared: 5 (1 without a cosine similarity)" in done.out
    assert [row[1] for row in table(done)[1:]] == [*"acdxa"]
    done = shown(tmp_path, "\n".join([head, *lines[4:]]) + "\n", code=1)
    assert "input:0 of c (Add), cosine similarity nan" in done.out
    assert "  it is an input, so the error arises in an op before it" in done.out
    done = shown(tmp_path, "\n".join([head, lines[5]]) + "\n", code=1)
    assert "  none of its inputs was compared, so the error may arise in an op before" in done.out
    done = shown(tmp_path, "\n".join([head, *lines[:1]]) + "\n")
    assert "no tensor is wrong" in done.out


def test_record_names_the_op_by_the_files_beside_it(record: Path, tmp_path: Path) -> None:
    done = here("precision", "results", record, cwd=tmp_path, code=1)
    files = [
        f"MatMulV2.dense_MatMul.3.12.1767268800001000.{tensor}.npy"
        for tensor in ("input.0", "input.1", "output.0")
    ]
    assert done.out.splitlines() == [
        f"{record}: 1 overflow",
        "  AIC, task 3, stream 12: float overflow (status 0x20)",
        "    op: dense_MatMul (MatMulV2)",
        *(f"    its dump: {name}" for name in files),
    ]
    copy = tmp_path / record.name
    copy.write_text(record.read_text())
    done = here("precision", "results", copy, cwd=tmp_path, code=1)
    assert done.out.splitlines()[2:] == [
        "    its dump: TYPE.NAME.3.12.TIME, next to the record that was decoded"
    ]
    copy.write_text('{"AI Core": {"status": 2, "task_id": -1}}')
    done = here("precision", "results", copy, cwd=tmp_path, code=1)
    assert "task 7, stream 12: unknown cause (status 0x2)" in done.out
    assert "the record has no task; that of the file's name may be another one" in done.out
    copy.rename(tmp_path / "x.json")
    done = here("precision", "results", "x.json", cwd=tmp_path, code=1)
    assert "its dump cannot be named, because the task is unknown" in done.out
    (tmp_path / "x.json").write_text('{"AI Core": {"status": 0, "task_id": 1}}')
    assert here("precision", "results", "x.json", cwd=tmp_path).out == "x.json: 0 overflows\n"


def test_several_files_are_read_before_anything_is_printed(
    comparison: Path, record: Path, tmp_path: Path
) -> None:
    done = here("precision", "results", comparison, record, cwd=tmp_path, code=1)
    assert f"\n\n{record}: 1 overflow\n" in done.out
    (tmp_path / "raw").write_bytes(b"6\0\0\0")
    done = here("precision", "results", comparison, "raw", cwd=tmp_path, code=2)
    assert done.out == ""
    assert "Decode an Opdebug file first" in done.message


def test_json_has_every_number(comparison: Path, record: Path, tmp_path: Path) -> None:
    text = comparison.read_text().replace("0.613453", "nan")
    (tmp_path / "r.csv").write_text(text)
    files = ("r.csv", record)
    done = here("precision", "results", *files, "--json", "--top", "1", cwd=tmp_path, code=1)
    table, overflow = json.loads(done.out)
    assert (table["kind"], table["rows"], table["compared"], len(table["tensors"])) == (
        *("comparison", 9, 5, 5),
    )
    assert table["first"] == table["tensors"][0]
    assert table["first"]["numbers"]["CosineSimilarity"] == "nan"
    assert table["first"]["numbers"]["MeanRelativeError"] == 2454.540527
    assert sum(table["not_compared"].values()) == 4
    (one,) = overflow["overflows"]
    assert (one["unit"], one["task"], one["stream"], one["status"]) == ("AIC", 3, 12, 32)
    assert (one["meanings"], len(one["dumps"])) == (["float overflow"], 3)
    text = comparison.read_text().replace("0.613453", "0.999")
    (tmp_path / "r.csv").write_text(text)
    (table,) = json.loads(here("precision", "results", "r.csv", "--json", cwd=tmp_path).out)
    assert (table["first"], table["below"]) == (None, 0.99)
