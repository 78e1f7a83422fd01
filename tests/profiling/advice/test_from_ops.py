"""Ops as advice: AI CPU, casts, formats, dtypes, clock, and what the chip leaves."""

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from jumar.profiling.advice import from_ops
from jumar.profiling.advice.finding import Case, Claim
from jumar.profiling.advice.from_ops import (
    ai_cpu_ops,
    casts,
    format_changes,
    head_room,
    low_clock,
    wide_types,
)
from jumar.profiling.profile import Profile
from jumar.profiling.views.view import Options
from tests.profiling.generated import profile_of

_US = 1000


def _steps(*told: tuple[str | None, int, dict[str, Any]]) -> list[dict[str, Any]]:
    """The same ops one after the other in two steps."""
    rows: list[dict[str, Any]] = []
    now = 0
    for step in (0, 1):
        for kind, length, more in told:
            row = {"rank": 0, "step": step, "name": "named", "type": kind, "core": "AI_CORE"}
            row |= {"start_ns": now, "duration_ns": length * _US, "input_shapes": "8"}
            row |= {"input_types": "FLOAT16", "output_types": "FLOAT16"}
            rows.append(row | {"input_formats": "ND", "output_formats": "ND"} | more)
            now += length * _US
    return rows


def _case(*told: tuple[str | None, int, dict[str, Any]], **more: Any) -> Case:
    return Case(profile_of(_steps(*told), **more), Options())


def _lines(claim: Claim) -> list[str]:
    return [line.en for line in claim.evidence]


def _lengths(claim: Claim) -> list[tuple[int, int]]:
    return [(start // _US, (end - start) // _US) for _, start, end in claim.spans.rows()]


def test_ai_cpu_types_are_ranked_by_time_with_their_kinds() -> None:
    cpu = {"core": "AI_CPU"}
    case = _case(
        ("Add", 100, {}),
        ("TopK", 20, cpu | {"input_types": "DOUBLE"}),
        ("TopK", 30, cpu | {"input_shapes": None}),
        ("TopK", 4, cpu),
        ("TopK", 2, cpu | {"input_shapes": "9"}),
        ("TopK", 2, cpu | {"input_shapes": "9"}),
        ("Sort", 70, cpu),
        ("Odd", 9, cpu),
    )
    sort, top, odd = ai_cpu_ops(case)
    kernel = "no AI Core kernel for this op with these dtypes and shapes"
    assert sort.values == {
        "type": "Sort",
        "reason": kernel,
        "instead": "Use FLOAT16 or FLOAT input",
    }
    assert _lines(sort) == ["1 x Sort FLOAT16 8: 0.070 ms per step"]
    assert _lengths(sort) == [(158, 70), (395, 70)]
    # The reason is that of the dtypes that take longest.
    assert top.values["reason"] == kernel
    assert _lines(top) == [
        "1 x TopK FLOAT16 -: 0.030 ms per step",
        "1 x TopK DOUBLE 8: 0.020 ms per step",
        "1 x TopK FLOAT16 8: 0.004 ms per step",
    ]
    assert top.evidence[0].zh == "1 x TopK FLOAT16 -：每迭代 0.030 ms"
    assert str(odd.values["instead"]).startswith("Use equivalent AI Core ops")


def test_at_most_five_ai_cpu_types_are_listed() -> None:
    case = _case(*((kind, 10, {"core": "AI_CPU"}) for kind in "GFEDCBA"))
    assert [claim.values["type"] for claim in ai_cpu_ops(case)] == [*"ABCDE"]
    assert list(ai_cpu_ops(_case(("Add", 1, {})))) == []
    on_cuda = _case(("Add", 1, {"core": "AI_CPU"}), kind="cuda")
    assert list(ai_cpu_ops(on_cuda)) == []


_OPS = (
    ("TransData", 40, {"output_formats": "NZ"}),
    ("MatMul", 200, {}),
    ("TransData", 10, {"output_formats": "5HD"}),
    ("TransData", 9, {"output_formats": "5HD", "input_shapes": "9"}),
    ("Transpose", 61, {}),
    ("TransData", 3, {"output_formats": "FZ"}),
    ("Cast", 30, {"output_types": "FLOAT"}),
    ("Cast", 20, {"output_types": "BF16"}),
    ("Cast", 20, {"output_types": "BF16"}),
    ("Cast", 7, {"output_types": "INT8"}),
)


def test_format_changes_are_one_line_with_their_share() -> None:
    (claim,) = format_changes(_case(*_OPS))
    assert claim.values == {"types": "TransData + Transpose", "take": "take", "share": "30.8"}
    assert _lines(claim) == [
        "1 x Transpose ND ND: 0.061 ms per step",
        "1 x TransData ND NZ: 0.040 ms per step",
        "2 x TransData ND 5HD: 0.019 ms per step",
    ]
    assert _lengths(claim)[:3] == [(0, 40), (240, 10), (250, 9)]
    assert len(_lengths(claim)) == 10
    (alone,) = format_changes(_case(_OPS[0]))
    assert alone.values == {"types": "TransData", "take": "takes", "share": "100.0"}
    assert list(format_changes(_case(_OPS[1]))) == []


def test_casts_are_one_line_with_their_number_and_share() -> None:
    (claim,) = casts(_case(*_OPS))
    assert claim.values["share"] == "19.2"
    told = claim.values["casts"]
    assert (told.en, told.zh) == ("4 casts", "4 次类型转换")  # pyright: ignore
    assert _lines(claim) == [
        "2 x FLOAT16 BF16 8: 0.040 ms per step",
        "1 x FLOAT16 FLOAT 8: 0.030 ms per step",
        "1 x FLOAT16 INT8 8: 0.007 ms per step",
    ]
    assert _lengths(claim)[:2] == [(323, 30), (353, 20)]
    rows = _steps(("Cast", 5, {}), ("Add", 5, {}))
    (one,) = casts(Case(profile_of([rows[0], *rows[1::2]]), Options()))
    assert one.values["casts"].en == "0.5 casts"  # pyright: ignore
    assert list(casts(_case(_OPS[1]))) == []


def test_float_products_are_assumed_twice_as_fast_in_16_bits() -> None:
    single = {"input_types": "FLOAT;FLOAT"}
    told = (
        ("MatMulV2", 100, single),
        ("Conv2D", 40, single),
        ("MatMulV2", 30, {"input_types": "FLOAT;BF16"}),
        ("MatMulV2", 30, {"input_types": "FLOAT16"}),
        ("MatMulV2", 30, {"input_types": "INT8"}),
        ("MatMulV2", 30, {"input_types": None}),
        ("MatMulV2", 30, single | {"core": "AI_CPU"}),
        ("Add", 60, single),
        (None, 50, single),
    )
    (claim,) = wide_types(_case(*told))
    assert claim.values == {"share": "35.0"}
    assert _lengths(claim) == [(0, 50), (100, 20), (400, 50), (500, 20)]
    assert _lines(claim) == [
        "1 x MatMulV2 FLOAT;FLOAT 8: 0.100 ms per step",
        "1 x Conv2D FLOAT;FLOAT 8: 0.040 ms per step",
    ]
    assert list(wide_types(_case(*told, kind="cpu"))) == []
    assert list(wide_types(_case(*told[2:]))) == []


def _clocked(*readings: tuple[int, int, float]) -> Case:
    table = pl.DataFrame(readings, schema=["rank", "time_ns", "mhz"], orient="row")
    counter = table.with_columns(pl.col("time_ns") * _US)
    return _case(("Add", 100, {}), ("Mul", 60, {}), statistics={"frequency": counter})


def test_saving_is_proportional_to_the_clock_deficit() -> None:
    # Of the four ops, which begin at 0, 100, 160 and 260, the second and third.
    readings = [(0, 50, 1000.0), (0, 100, 800.0), (0, 160, 949.0), (0, 250, 950.0)]
    more = [(0, 400 + place, 1000.0) for place in range(20)]
    (claim,) = low_clock(_clocked(*readings, *more, (1, 0, 10.0)))
    assert claim.values == {"full": "1000", "lowest": "800"}
    assert claim.spans["start_ns"].to_list() == [100_000, 160_000]
    # Rounded down to a nanosecond.
    assert claim.spans["end_ns"].to_list() == pytest.approx([112_000, 165_100], abs=1)
    assert _lines(claim) == ["1 op per step ran below 95% of it"]
    assert claim.evidence[0].zh == "每迭代有 1 个算子在低于满频 95% 的频率下执行"
    assert list(low_clock(_clocked(*more))) == []
    assert list(low_clock(_clocked((1, 0, 1000.0), (1, 100, 10.0)))) == []
    assert list(low_clock(_case(("Add", 5, {})))) == []


_CHIP = {
    "name": "Test",
    "matches": ["test"],
    "cube_tflops": {"FLOAT16": 100},
    "vector_tflops": 10,
    "hbm_gb_s": 1000,
    "cube_cores": 1,
    "vector_cores": 1,
    "launch_us": 7,
}


def _limited(tmp_path: Path, *told: tuple[str | None, int, dict[str, Any]], **more: Any) -> Case:
    file = tmp_path / "chip.json"
    file.write_text(json.dumps({"chips": [_CHIP]}))
    profile: Profile = profile_of(_steps(*told), **more)
    return Case(profile, Options(chip=file))


def _shapes(first: str, second: str, result: str, **more: Any) -> dict[str, Any]:
    return {"input_shapes": f"{first};{second}", "output_shapes": result} | more


def test_types_far_from_the_limit_are_ranked_by_saving_at_seventy_percent(
    tmp_path: Path,
) -> None:
    # 7e9 operations at 100e12 a second take 70 us, which is 100 at 70 %; starting takes 7, or 10.
    square = _shapes("1750,2000", "2000,1000", "1750,1000")
    case = _limited(
        tmp_path,
        ("MatMulV2", 250, square),
        ("MatMulV2", 120, square),
        ("MatMulV2", 90, square),
        ("Relu", 19, {}),
        ("Relu", 10, {"input_shapes": "7"}),
        ("Relu", 15, {"core": "DSA_SQE"}),
        ("Relu", 15, {"core": None}),
        ("Cast", 99, {}),
        ("Transpose", 99, {}),
        ("Odd", 99, {"input_shapes": None}),
    )
    product, relu = head_room(case)
    assert product.values == {
        "type": "MatMulV2",
        "lasts": "0.370 ms",
        "times": "1.9",
        "change": from_ops._FILLING,  # pyright: ignore[reportPrivateUsage]
    }
    assert _lengths(product) == [(0, 150), (250, 20), (816, 150), (1_066, 20)]
    assert _lines(product) == [
        "2 x 1750,2000;2000,1000 FLOAT16 cube: 0.370 ms per step",
        "peak rates: Test",
    ]
    assert product.evidence[1].zh == "峰值性能：Test"
    assert (relu.values["lasts"], relu.values["times"]) == ("0.019 ms", "1.9")
    assert _lengths(relu) == [(460, 9), (1_276, 9)]
    assert "too small for its launch overhead" in relu.values["change"].en  # pyright: ignore


def test_five_types_are_listed_with_ties_by_name(tmp_path: Path) -> None:
    case = _limited(tmp_path, *((kind, 20, {}) for kind in ("F", "E", "D", "C", "B", "A")))
    assert [claim.values["type"] for claim in head_room(case)] == [*"ABCDE"]
    unknown = Case(profile_of(_steps(("Relu", 50, {})), kind="cuda"), Options())
    assert list(head_room(unknown)) == []
    assert list(head_room(_limited(tmp_path, ("Relu", 50, {"input_shapes": None})))) == []


@pytest.mark.parametrize(
    ("kind", "more", "change"),
    [
        ("MatMulV2", _shapes("1600,1600", "1600,1600", "1600,1600"), "more work at once"),
        ("MatMulV2", _shapes("2,1600,1600", "2,1600,1600", "2,1600,1600"), "more work at once"),
        (
            "MatMulV2",
            _shapes("1600,1592", "1592,1600", "1600,1600"),
            "sizes that fill the matrix unit",
        ),
        (
            "MatMulV2",
            _shapes("1600,1600", "1600,1592", "1600,1592"),
            "sizes that fill the matrix unit",
        ),
        # Only the two matrices count, not what is added to them.
        (
            "MatMulV2",
            {"input_shapes": "1600,1600;1600,1600;1600,7", "output_shapes": "1600,1600"},
            "more work at once",
        ),
        ("Relu", {"input_shapes": "9000000", "output_shapes": "9000000"}, "to read and write less"),
        (
            "Relu",
            {"input_shapes": "9000000", "output_shapes": "9000000", "input_types": "FLOAT16"},
            "to read and write less",
        ),
        (
            "Relu",
            {"input_shapes": "9000000", "output_shapes": "9000000", "input_types": "FLOAT"},
            "or use 16-bit dtypes",
        ),
        (
            "Relu",
            {"input_shapes": "9000000", "output_shapes": "9000000", "input_types": "DOUBLE"},
            "or use 16-bit dtypes",
        ),
        ("Relu", {"flops": 10**9, "bytes": 8}, "fused form of the op"),
        (
            "FlashAttentionScore",
            {"input_shapes": ";".join(["2,512,512"] * 3), "output_shapes": None},
            "a causal mask as a flag",
        ),
    ],
)
def test_advice_follows_from_the_bottleneck(
    kind: str, more: dict[str, Any], change: str, tmp_path: Path
) -> None:
    (claim,) = head_room(_limited(tmp_path, (kind, 100_000, more), ("Add", 10, {})))
    assert change in claim.values["change"].en  # pyright: ignore[reportAttributeAccessIssue]
    assert (len(claim.evidence) == 3) == (kind == "FlashAttentionScore")


def test_longest_kind_gives_the_change_and_largest_headroom_the_bound(
    tmp_path: Path,
) -> None:
    large = {"input_shapes": "9000000", "output_shapes": "9000000"}
    case = _limited(tmp_path, ("Relu", 90, {}), ("Relu", 120, large | {"input_types": "FLOAT"}))
    (claim,) = head_room(case)
    # 54 MB take 54 us, or 77 at 70 %: 43 are left, and 80 of what is only started.
    assert "too small for its launch overhead" in claim.values["change"].en  # pyright: ignore
    assert _lines(claim)[:2] == [
        "1 x 9000000 FLOAT memory: 0.120 ms per step",
        "1 x 8 FLOAT16 launch: 0.090 ms per step",
    ]


def test_row_count_that_leaves_the_matrix_unit_partly_empty_is_reported(
    tmp_path: Path,
) -> None:
    product = _shapes("1592,1600", "1600,1600", "1592,1600")
    (claim,) = head_room(_limited(tmp_path, ("MatMulV2", 100_000, product), ("Add", 10, {})))
    assert "sizes that fill the matrix unit" in claim.values["change"].en  # pyright: ignore
