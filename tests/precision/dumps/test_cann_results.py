"""What Ascend's own tools wrote is read as they meant it."""

import json
import math
from pathlib import Path

import pytest

from jumar.ground.errors import UserError
from jumar.precision.dumps.cann_results import read_overflow, read_results


def test_rows_keep_apart_what_was_not_compared_and_what_is_not_a_number(
    shared: Path, tmp_path: Path
) -> None:
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


def test_an_overflow_names_its_task_and_what_happened(shared: Path, tmp_path: Path) -> None:
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
