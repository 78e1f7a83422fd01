"""Which ops only change dtype or layout."""

from typing import Any

import polars as pl
import pytest

from jumar.profiling.views.casts import cast_share, is_cast, is_format_change
from jumar.profiling.views.view import VIEWS, Options
from tests.profiling.generated import profile_of


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
def test_copy_between_different_dtypes_is_a_cast(kind: str, types: str | None, cast: bool) -> None:
    table = ops(kind, types)
    assert table.filter(is_cast(table)).height == int(cast)


def test_format_change_is_not_a_cast() -> None:
    table = ops("TransData", "FLOAT16")
    assert table.filter(is_cast(table)).is_empty()
    assert table.filter(is_format_change(table)).height == 1


def test_casts_and_format_changes_have_their_share_of_compute_time() -> None:
    def op(kind: str | None, length: int, taken: str, given: str, **more: Any) -> dict[str, Any]:
        row = {"type": kind, "core": "AI_VECTOR_CORE", "duration_ns": length}
        row |= {"input_types": taken, "output_types": given}
        return row | {"input_formats": "ND", "output_formats": "ND"} | more

    nz = {"output_formats": "FRACTAL_NZ"}
    profile = profile_of(
        [
            op("Cast", 150_000, "FLOAT", "FLOAT16"),
            op("TransData", 300_000, "FLOAT", "FLOAT", **nz),
            op("Cast", 250_000, "FLOAT", "FLOAT16"),
            op("Transpose", 100_000, "FLOAT", "FLOAT"),
            op("aten::copy_", 100_000, "BF16;FLOAT", "BF16"),
            op("copy_", 50_000, "FLOAT;FLOAT", "FLOAT"),
            op("MatMul", 1_000_000, "FLOAT", "FLOAT"),
            op(None, 50_000, "FLOAT", "FLOAT"),
            # Neither what is sent nor what is copied from the host is computed.
            op("Cast", 700_000, "FLOAT", "FLOAT16", core="COMMUNICATION"),
            op("copy_", 700_000, "BF16;FLOAT", "BF16", core="CUDA_MEMCPY"),
        ]
    )
    table = VIEWS["casts"].make(profile, Options())
    assert table.columns == [
        *("what", "type", "input_types", "output_types", "input_formats", "output_formats"),
        *("count", "total_ms", "share_%"),
    ]
    assert table.rows() == [
        ("cast", "Cast", "FLOAT", "FLOAT16", "ND", "ND", 2, 0.4, 20.0),
        ("format change", "TransData", "FLOAT", "FLOAT", "ND", "FRACTAL_NZ", 1, 0.3, 15.0),
        ("cast", "aten::copy_", "BF16;FLOAT", "BF16", "ND", "ND", 1, 0.1, 5.0),
        ("format change", "Transpose", "FLOAT", "FLOAT", "ND", "ND", 1, 0.1, 5.0),
    ]


def test_shares_have_two_decimals_and_casts_without_time_have_none() -> None:
    row = {"type": "Cast", "core": "AI_CORE", "input_types": "FLOAT", "output_types": "BF16"}
    rows = [row | {"duration_ns": 1}, row | {"type": "Add", "duration_ns": 5}]
    assert cast_share(profile_of(rows), Options())["share_%"].to_list() == [16.67]
    assert cast_share(profile_of([row]), Options())["share_%"].to_list() == [0.0]
    assert cast_share(profile_of([row | {"duration_ns": 1}]), Options())["share_%"][0] == 100.0


def test_equal_times_are_sorted_by_key() -> None:
    rows = [
        {"type": kind, "core": "AI_CORE", "duration_ns": 3, "input_types": taken}
        | {"output_types": given, "input_formats": one, "output_formats": other}
        for kind in ("Cast", "_to_copy", "Transpose")
        for taken in ("BF16", "FLOAT")
        for given in ("BF16", "FLOAT")
        for one in ("ND", "NZ")
        for other in ("ND", "NZ")
    ]
    table = cast_share(profile_of(rows[::-1]), Options())
    keys = ("what", "type", "input_types", "output_types", "input_formats", "output_formats")
    found = table.select(keys).rows()
    assert len(found) == len(rows)
    assert found == sorted(found)


def test_layout_change_types_match_regardless_of_case_and_prefix() -> None:
    for kind in ("TRANSDATA", "aten::contiguous", "Transpose", "npu_format_cast", "AsStrided"):
        table = ops(kind, "FLOAT")
        assert table.filter(is_format_change(table)).height == 1
    for kind in ("TransDataX", "aten::transposes", "copy_"):
        table = ops(kind, "FLOAT")
        assert table.filter(is_format_change(table)).is_empty()
