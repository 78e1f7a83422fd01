"""What a tensor costs over all types of ops."""

from typing import Any

import pytest

from jumar.profiling.views.view import LEVEL_1, VIEWS, Impossible, Options
from tests.profiling.generated import profile_of


def _op(kind: str, length: int, inputs: str | None, outputs: str | None = None) -> dict[str, Any]:
    row = {"rank": 0, "step": 1, "name": "a", "type": kind, "duration_ns": length * 1000}
    return row | {"input_shapes": inputs, "output_shapes": outputs}


def _rows(*ops: dict[str, Any]) -> list[tuple[Any, ...]]:
    return VIEWS["by-tensor"].make(profile_of(list(ops)), Options()).rows()


def test_ops_count_for_the_largest_tensor_of_any_shape() -> None:
    ops = [
        _op("LogSoftmax", 300, "8,1000", "8,1000"),
        _op("Cast", 200, "8000", "8000"),
        _op("MatMul", 150, "8,64;64,1000", "8,1000"),
        _op("Add", 50, "64,1;1000", "64,1000"),
        _op("Unknown", 300, None),
    ]
    table = VIEWS["by-tensor"].make(profile_of(ops), Options())
    assert table.columns == [
        *("shapes", "elements", "types", "op_types", "count", "total_ms", "share_%"),
    ]
    assert table.rows() == [
        ("8,1000; 8000", 8000, 2, "LogSoftmax, Cast", 2, 0.5, 50.0),
        ("64,1000", 64000, 2, "MatMul, Add", 2, 0.2, 20.0),
    ]


def test_shapes_and_types_with_the_most_time_are_named() -> None:
    ops = [_op(f"T{n}", 10 + n, f"{2**n},{2 ** (6 - n)}") for n in range(5)]
    assert _rows(*ops) == [("16,4; 8,8; 4,16", 64, 5, "T4, T3, T2", 5, 0.06, 100.0)]


def test_scalars_and_unknown_shapes_are_no_tensors() -> None:
    assert _rows(_op("A", 1, ""), _op("B", 1, "-1,4"), _op("C", 3, "2")) == [
        ("2", 2, 1, "C", 1, 0.003, 60.0)
    ]
    with pytest.raises(Impossible, match="shape") as raised:
        _rows(_op("A", 1, ""))
    assert raised.value.how == LEVEL_1
    with pytest.raises(Impossible, match="input_shapes"):
        _rows(_op("A", 1, None))
