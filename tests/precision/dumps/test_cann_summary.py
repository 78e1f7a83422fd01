"""What a result of msaccucmp shows, also where its own tools see nothing."""

import math
from pathlib import Path
from typing import Any

import pytest

from jumar.ground.errors import UserError
from jumar.precision.dumps.cann_results import AscendResult, Overflow, read_results
from jumar.precision.dumps.cann_summary import (
    COSINE,
    ERRORS,
    dump_name,
    dumps_of,
    is_bad,
    is_zero_on_one_side,
    summarised,
)

ZERO = "Cannot compare by Cosine Similarity. All the data is zero in /x/a.npy."


def row(
    npu: str, tensor: str = "output:0", cosine: float | None = None, **fields: Any
) -> AscendResult:
    numbers = {} if cosine is None else {COSINE: cosine}
    plain: dict[str, Any] = {"op_type": "Add", "golden": "g", "overflowed": None, "reason": ""}
    return AscendResult(npu=npu, tensor=tensor, **plain | {"numbers": numbers} | fields)


def test_sample_is_summarised(shared: Path) -> None:
    (path,) = (shared / "data/dumps/cann").rglob("result_*.csv")
    summary = summarised(read_results(path))
    assert (summary.rows, summary.ops, len(summary.compared)) == (9, 4, 5)
    assert dict(summary.reasons) == {
        "There is no ... in the fusion rule file.": 2,
        '[x] There is no dump file for my output operator "x". The type is Data.': 1,
        "[dense_MatMul] There is no the ground truth dump file for dense_MatMul:input:0.": 1,
    }
    assert (summary.checked, summary.overflowed, summary.without_cosine) == (3, [], 0)
    assert summary.first is not None
    assert (summary.first.npu, summary.first.tensor) == ("Softmax", "output:0")
    assert [each.tensor for each in summary.inputs] == ["input:0"]
    assert summary.compared[0] is summary.first


def test_worst_is_first_and_the_order_of_the_file_decides_ties() -> None:
    rows = [
        row("a", cosine=0.999),
        row("b", cosine=0.5),
        row("c", numbers={"MaxAbsoluteError": 9.0}),
        row("d", cosine=math.nan),
        row("e", cosine=-1.0),
        row("f", reason=ZERO, numbers={"MaxAbsoluteError": 9.0}),
        row("g", cosine=0.5),
        row("h", reason="gone"),
    ]
    summary = summarised(rows)
    assert [each.npu for each in summary.compared] == [*"dfebgac"]
    assert (summary.metric, summary.without_cosine) == (COSINE, 2)
    assert summary.first is rows[1]
    assert dict(summary.reasons) == {"gone": 1}


@pytest.mark.parametrize(
    ("each", "bad"),
    [
        (row("a", cosine=0.98), False),
        (row("a", cosine=0.9799), True),
        (row("a", cosine=math.nan), True),
        (row("a", reason=ZERO), True),
        (row("a", cosine=1.0, reason=ZERO), False),
        (row("a", reason="There is no dump file."), False),
        (row("a", numbers={"MaxAbsoluteError": math.inf}), False),
    ],
)
def test_tensor_is_bad_below_the_threshold_or_if_it_cannot_be_right(
    each: AscendResult, bad: bool
) -> None:
    assert is_bad(each, 0.98) is bad
    assert (summarised([each], 0.98).first is each) is bad


def test_reason_of_another_metric_does_not_replace_the_cosine_similarity() -> None:
    assert is_zero_on_one_side(row("a", reason=ZERO))
    assert not is_zero_on_one_side(row("a", cosine=0.5, reason=ZERO))
    assert not is_zero_on_one_side(row("a"))


def test_another_metric_orders_tensors_if_there_is_no_cosine_similarity() -> None:
    values = {"a": 0.1, "b": math.nan, "c": 5.0, "d": math.inf}
    rows = [row(name, numbers={"MaxAbsoluteError": value}) for name, value in values.items()]
    summary = summarised(rows)
    assert (summary.metric, [each.npu for each in summary.compared]) == (
        "MaxAbsoluteError",
        [*"bdca"],
    )
    assert summary.first is None
    both = {"RelativeEuclideanDistance": 1.0, "MaxAbsoluteError": 1.0}
    assert summarised([row("a", numbers=both)]).metric == ERRORS[0]
    other = [row("a", numbers={"Own": 1.0}), row("b", numbers={"Own": 2.0})]
    assert (summarised(other).metric, list(summarised(other).compared)) == ("", other)
    assert summarised([]).metric == ""


def test_inputs_are_those_of_the_first_wrong_output() -> None:
    rows = [
        row("a", "input:0", 1.0),
        row("b", "input:0", 1.0),
        row("b", "input:1", reason="gone"),
        row("b", "output:0", 0.1),
    ]
    assert summarised(rows).inputs == rows[1:3]
    assert summarised([row("b", "input:0", 0.1), *rows]).inputs == []


def test_ops_that_overflowed_are_named_once() -> None:
    rows = [
        row("a", overflowed=False),
        row("b", overflowed=True),
        row("b", "input:0", overflowed=True),
        row("c"),
    ]
    summary = summarised(rows)
    assert (summary.checked, summary.overflowed) == (2, ["b"])


def test_reasons_of_one_kind_are_counted_together() -> None:
    reasons = (
        *(f"[op{n}] The size ({n}) of '/x/{n}' does not match op{n}:input:{n}." for n in range(3)),
        "",
        "y" * 100_000,
    )
    counts = summarised([row("a", reason=reason) for reason in reasons]).reasons
    assert list(counts.items())[:2] == [
        ("The size (...) of ... does not match ....", 3),
        ("no reason given", 1),
    ]
    assert max(map(len, counts)) <= 400


def an_overflow(task: int | None, stream: int | None) -> Overflow:
    return Overflow(unit="AIC", task=task, stream=stream, status=32, meanings=[])


def test_dump_of_an_op_is_found_by_task_and_stream(tmp_path: Path) -> None:
    time = "1767268800001000"
    names = [
        f"MatMulV2.dense_MatMul.3.12.{time}",
        f"Add.old_release.3.{time}.output.0.npy",
        f"MatMulV2.other_stream.3.13.{time}",
        f"MatMulV2.other_task.33.12.{time}",
        f"Opdebug.Node_OpDebug.3.12.{time}",
        "mapping.csv",
    ]
    for name in names:
        (tmp_path / name).write_text("")
    found = dumps_of(an_overflow(3, 12), tmp_path)
    assert [(each["type"], each["name"]) for each in found] == [
        ("Add", "old_release"),
        ("MatMulV2", "dense_MatMul"),
    ]
    assert len(dumps_of(an_overflow(3, None), tmp_path)) == 3
    assert dumps_of(an_overflow(None, 12), tmp_path) == []
    with pytest.raises(UserError):
        dumps_of(an_overflow(3, 12), tmp_path / "none")
    assert dump_name(an_overflow(3, 12)) == "TYPE.NAME.3.12.TIME"
    assert dump_name(an_overflow(3, None)) == "TYPE.NAME.3.TIME"
    assert dump_name(an_overflow(None, 12)) == ""
