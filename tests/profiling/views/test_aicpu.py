"""Why ops are on the AI CPU, and what each could be replaced by."""

from typing import Any

import pytest

from jumar.profiling.views.aicpu import INSTEAD, ai_cpu
from jumar.profiling.views.view import VIEWS, Impossible, Options
from tests.profiling.generated import profile_of

_WIDE = "dtype: the AI Core does not support double precision or complex numbers"
_LONG = "dtype: few AI Core kernels support 64-bit or unsigned integers"
_MASK = "use a mask and torch.where / tf.where with a fixed shape"
_ELSEWHERE = "use equivalent AI Core ops, or move it to the host"


def _op(kind: str, length: int, taken: str | None, given: str | None, **more: Any) -> dict:
    row = {"type": kind, "core": "AI_CPU", "duration_ns": length}
    return row | {"input_types": taken, "output_types": given} | more


_OPS = (
    _op("TopK", 100_000, "DOUBLE", "INT64"),
    _op("TopK", 300_000, "DOUBLE", "INT64"),
    _op("TopK", 2_000, "FLOAT", "FLOAT"),
    _op("Cast", 50_000, "INT64", "FLOAT"),
    _op("Frob", 60_000, "FLOAT", "UINT32"),
    _op("Frob", 70_000, None, None),
    _op("NonZeroV2", 70_000, "FLOAT", "FLOAT"),
    _op("Mul", 10_000, "BF16;COMPLEX64", "BF16"),
    _op("Odd", 1_000, "XDOUBLE", "INT648"),
    _op("MatMul", 900_000, "DOUBLE", "DOUBLE", core="AI_CORE"),
    _op("Add", 900_000, "DOUBLE", "DOUBLE", core=None),
)


def test_each_kind_of_op_has_its_reason_and_its_replacement() -> None:
    table = VIEWS["aicpu"].make(profile_of(_OPS), Options())
    assert table.columns == [
        *("type", "input_types", "output_types", "count", "total_ms", "max_ms"),
        *("reason", "use_instead"),
    ]
    kernel = "no AI Core kernel for this op with these dtypes and shapes"
    unknown = "unknown: the profile has no dtypes"
    smaller = "use FLOAT16 or FLOAT input and a smaller k"
    wanted = "create the tensor with the required dtype, so that no cast is needed"
    assert table.rows() == [
        ("TopK", "DOUBLE", "INT64", 2, 0.4, 0.3, _WIDE, "use FLOAT or FLOAT16"),
        ("Frob", None, None, 1, 0.07, 0.07, unknown, _ELSEWHERE),
        ("NonZeroV2", "FLOAT", "FLOAT", 1, 0.07, 0.07, kernel, _MASK),
        ("Frob", "FLOAT", "UINT32", 1, 0.06, 0.06, _LONG, "use INT32"),
        ("Cast", "INT64", "FLOAT", 1, 0.05, 0.05, _LONG, wanted),
        ("Mul", "BF16;COMPLEX64", "BF16", 1, 0.01, 0.01, _WIDE, "use FLOAT or FLOAT16"),
        ("TopK", "FLOAT", "FLOAT", 1, 0.002, 0.002, kernel, smaller),
        ("Odd", "XDOUBLE", "INT648", 1, 0.001, 0.001, kernel, _ELSEWHERE),
    ]


def test_reasons_and_replacements_are_in_the_requested_language() -> None:
    table = ai_cpu(profile_of(_OPS[:3]), Options(language="zh"))
    assert table["reason"].to_list() == [
        "数据类型：AI Core 不支持双精度和复数计算",
        "该算子在此数据类型和形状下没有 AI Core 实现",
    ]
    assert table["use_instead"].to_list() == ["改用 FLOAT 或 FLOAT16", INSTEAD["TopK"].zh]


def test_equal_times_are_sorted_by_type_and_dtypes() -> None:
    rows = [("B", "FLOAT", "INT8"), ("A", "INT8", "BOOL"), ("A", "FLOAT", "INT8")]
    rows.append(("A", "FLOAT", "BOOL"))
    table = ai_cpu(profile_of([_op(kind, 5, *types) for kind, *types in rows]), Options())
    assert table.select("type", "input_types", "output_types").rows() == sorted(rows)


def test_profile_without_cores_or_npu_has_no_ai_cpu() -> None:
    with pytest.raises(Impossible) as told:
        ai_cpu(profile_of([_op("A", 5, None, None, core=None)] * 2), Options())
    recorded = "record with profiler_level=Level1 and record_shapes=True"
    assert str(told.value) == f"needs the core of each op; {recorded}"
    with pytest.raises(Impossible) as told:
        ai_cpu(profile_of(_OPS, kind="cuda"), Options())
    assert str(told.value) == ("needs a profile of an NPU, the only device with an AI CPU")
