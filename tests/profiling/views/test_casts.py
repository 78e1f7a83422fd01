"""Which ops only change dtype or layout."""

import polars as pl
import pytest

from jumar.profiling.views.casts import is_cast, is_format_change


def ops(kind: str, input_types: str | None) -> pl.DataFrame:
    return pl.DataFrame(
        {"type": [kind], "input_types": [input_types]},
        schema={"type": pl.String(), "input_types": pl.String()},
    )


@pytest.mark.parametrize(
    ("kind", "types", "cast"),
    [
        ("Cast", "FLOAT", True),
        ("aten::_to_copy", "BF16", True),
        ("copy_", "FLOAT;BF16", True),
        ("aten::copy_", "BF16;FLOAT;", True),
        ("copy_", "FLOAT;FLOAT", False),
        ("copy_", "FLOAT", False),
        ("copy_", None, False),
        ("MatMul", "FLOAT;BF16", False),
    ],
)
def test_a_copy_is_a_cast_where_its_two_tensors_have_different_types(
    kind: str, types: str | None, cast: bool
) -> None:
    table = ops(kind, types)
    assert table.filter(is_cast(table)).height == int(cast)


def test_a_format_change_is_no_cast() -> None:
    table = ops("TransData", "FLOAT16")
    assert table.filter(is_cast(table)).is_empty()
    assert table.filter(is_format_change(table)).height == 1
