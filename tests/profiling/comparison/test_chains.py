"""Casts and format changes that cancel out are found, and no others."""

from pathlib import Path
from typing import Any

import pytest

from jumar.profiling.comparison import cancelling_chains, chains_per_step, prepare
from jumar.profiling.comparison.chains import Tensor, input_and_output, tensors
from jumar.profiling.comparison.own_times import Op
from jumar.profiling.profile import OPS_SCHEMA, Profile
from tests.profiling.generated import frame


def _op(kind: str, taken: tuple[str, str, str], given: tuple[str, str, str]) -> dict[str, Any]:
    names = ("shapes", "types", "formats")
    return (
        {"type": kind}
        | {f"input_{name}": value for name, value in zip(names, taken, strict=True)}
        | {f"output_{name}": value for name, value in zip(names, given, strict=True)}
    )


def _chains(*ops: dict[str, Any]) -> list[dict[str, Any]]:
    rows = [
        op
        | {
            "rank": 0,
            "step": 1,
            "name": f"{op['type']}{place}",
            "core": "AI_VECTOR_CORE",
            "start_ns": 1000 * place,
            "duration_ns": 100 + place,
        }
        for place, op in enumerate(ops)
    ]
    profile = Profile(source="x", producer="x", kind="npu", ops=frame(rows, OPS_SCHEMA))
    return cancelling_chains(prepare(profile)).to_dicts()


_WIDE = ("8,8", "FLOAT", "ND")
_LOW = ("8,8", "FLOAT16", "ND")


def test_cast_and_cast_back_cancel() -> None:
    (found,) = _chains(_op("Cast", _WIDE, _LOW), _op("Cast", _LOW, _WIDE))
    assert (found["what"], found["saved_ns"], found["count"]) == ("Cast + Cast", 201, 1)
    assert (found["of"], found["by_way_of"]) == ("FLOAT ND", "FLOAT16 ND")


def test_round_trip_of_three_changes_is_one_chain() -> None:
    blocked = ("1,1,8,8,16", "FLOAT16", "NC1HWC0")
    (found,) = _chains(
        _op("Cast", _WIDE, _LOW), _op("TransData", _LOW, blocked), _op("TransData", blocked, _WIDE)
    )
    assert found["what"] == "Cast + TransData + TransData"


def test_only_the_cast_back_is_saved_if_an_op_uses_the_lower_tensor() -> None:
    other = ("4,4", "FLOAT16", "ND")
    (found,) = _chains(
        _op("Cast", _WIDE, _LOW), _op("MatMulV2", _LOW, other), _op("Cast", _LOW, _WIDE)
    )
    assert found["saved_ns"] == 102


def test_result_that_only_resembles_the_tensor_ends_no_chain() -> None:
    assert not _chains(_op("Cast", _WIDE, _LOW), _op("Relu", _LOW, _LOW), _op("Cast", _LOW, _WIDE))


def test_real_level_1_sample_has_transposes_and_transdata_that_cancel(shared: Path) -> None:
    from jumar.profiling import read

    profile = read(shared / "data/msprof/torch_npu_level1_2rank/rank0_ascend_pt")
    found = cancelling_chains(prepare(profile))
    assert "TransData + TransData" in found["what"].to_list()
    assert (found["saved_ns"] > 0).any()


def _relu(shape: str = "3") -> dict[str, Any]:
    return _op("Relu", (shape, "FLOAT", "ND"), (shape, "FLOAT", "ND"))


@pytest.mark.parametrize(("between", "found"), [(399, 1), (400, 0)])
def test_tensors_are_not_matched_beyond_four_hundred_ops(between: int, found: int) -> None:
    ops = [_op("Cast", _WIDE, _LOW), *[_relu()] * between, _op("Cast", _LOW, _WIDE)]
    assert len(_chains(*ops)) == found
    # An op that is no longer linked may begin another chain.
    again = [*ops, _op("Cast", _WIDE, _LOW)]
    assert [row["of"] for row in _chains(*again)] == (["FLOAT ND"] if found else ["FLOAT16 ND"])


def test_chains_are_listed_completely_largest_saving_first() -> None:
    other = ("4,4", "FLOAT", "ND")
    low = ("4,4", "BF16", "ND")
    chains = _chains(
        _op("Cast", other, low),
        _op("Cast", low, other),
        _relu(),
        _op("Cast", _WIDE, _LOW) | {"module": "a"},
        _op("TransData", _LOW, _WIDE) | {"module": "b"},
        _op("Cast", _WIDE, _LOW) | {"module": "a"},
        _op("TransData", _LOW, _WIDE) | {"module": "b"},
        # It ends where it began, and changes nothing.
        _op("Cast", _LOW, _LOW),
    )
    assert chains == [
        {
            "what": "Cast + TransData",
            "shape": "8,8",
            "of": "FLOAT ND",
            "by_way_of": "FLOAT16 ND",
            "module": "a",
            "count": 2,
            "saved_ns": 103 + 104 + 105 + 106,
        },
        {
            "what": "Cast + Cast",
            "shape": "4,4",
            "of": "FLOAT ND",
            "by_way_of": "BF16 ND",
            "module": "",
            "count": 1,
            "saved_ns": 201,
        },
    ]


def test_two_casts_back_from_one_tensor_form_one_chain() -> None:
    (found,) = _chains(_op("Cast", _WIDE, _LOW), _op("Cast", _LOW, _WIDE), _op("Cast", _LOW, _WIDE))
    assert (found["count"], found["saved_ns"]) == (1, 201)


def test_with_unknown_outputs_an_op_consuming_the_tensor_ends_the_chain() -> None:
    unknown = _op("Mul", _LOW, _LOW) | {"output_types": None, "output_shapes": None}
    casts = (_op("Cast", _WIDE, _LOW), _op("Cast", _LOW, _WIDE))
    assert _chains(casts[0], unknown, casts[1]) == []
    beside = _op("Mul", ("9", "FLOAT16", "ND"), ("9", "FLOAT16", "ND"))
    assert len(_chains(casts[0], beside, casts[1])) == 1
    # A way around whose middle is used saves only its last change.
    blocked = ("1,1,8,8,16", "FLOAT16", "NC1HWC0")
    (found,) = _chains(
        casts[0],
        _op("MatMulV2", _LOW, ("4", "FLOAT16", "ND")),
        _op("TransData", _LOW, blocked),
        _op("TransData", blocked, _WIDE),
    )
    assert (found["what"], found["saved_ns"]) == ("Cast + TransData + TransData", 103)


def _named(**more: str) -> Op:
    names = ("input_shapes", "input_types", "output_shapes", "output_types")
    empty = dict.fromkeys((*names, "module", "input_formats", "output_formats"), "")
    return Op(kind="cast", type="Cast", **(empty | more))


def test_change_has_the_tensors_from_the_file() -> None:
    told = _named(
        input_shapes="8;9",
        input_types="FLOAT;INT8",
        output_shapes="7;6",
        output_types="BF16;BOOL",
        input_formats="ND;NZ",
        output_formats="5HD;FZ",
    )
    assert input_and_output(told) == (Tensor("8", "FLOAT", "ND"), Tensor("7", "BF16", "5HD"))
    bare = told._replace(output_shapes="", input_formats="", output_formats="")
    assert input_and_output(bare) == (Tensor("8", "FLOAT", ""), Tensor("8", "BF16", ""))
    assert input_and_output(told._replace(input_types="")) is None
    assert input_and_output(told._replace(output_types="")) is None
    assert str(Tensor("8", "FLOAT", "ND")) == "FLOAT ND"
    assert str(Tensor("8", "FLOAT", "")) == "FLOAT"
    assert tensors("8;9;7", "FLOAT;BF16", "ND") == [
        Tensor("8", "FLOAT", "ND"),
        Tensor("9", "BF16", ""),
    ]


def test_chains_over_several_steps_are_averaged_per_step() -> None:
    rows = [
        _op("Cast", *ends)
        | {"rank": 0, "step": step, "name": "a", "core": "AI_CORE"}
        | {"start_ns": 10_000_000 * step + 5_000_000 * place, "duration_ns": 1_234_567 * (1 + step)}
        for step in range(2)
        for place, ends in enumerate(((_WIDE, _LOW), (_LOW, _WIDE)))
    ]
    found = chains_per_step(
        prepare(Profile(source="x", producer="x", kind="npu", ops=frame(rows, OPS_SCHEMA)))
    )
    assert found.select("count", "saved_ns", "saved_ms").rows() == [(1.0, 7_407_402, 3.704)]
