"""Casts and format changes that undo each other are found, and no others."""

from pathlib import Path
from typing import Any

from jumar.profiling.comparison import cancelling_chains, side_of
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
    return cancelling_chains(side_of(profile)).to_dicts()


_WIDE = ("8,8", "FLOAT", "ND")
_LOW = ("8,8", "FLOAT16", "ND")


def test_a_cast_and_the_cast_back_cancel() -> None:
    (found,) = _chains(_op("Cast", _WIDE, _LOW), _op("Cast", _LOW, _WIDE))
    assert (found["what"], found["saved_ns"], found["count"]) == ("Cast + Cast", 201, 1)
    assert (found["of"], found["by_way_of"]) == ("FLOAT ND", "FLOAT16 ND")


def test_a_way_around_of_three_changes_is_one_chain() -> None:
    blocked = ("1,1,8,8,16", "FLOAT16", "NC1HWC0")
    (found,) = _chains(
        _op("Cast", _WIDE, _LOW), _op("TransData", _LOW, blocked), _op("TransData", blocked, _WIDE)
    )
    assert found["what"] == "Cast + TransData + TransData"


def test_where_an_op_computes_with_the_lower_tensor_only_the_way_back_is_saved() -> None:
    other = ("4,4", "FLOAT16", "ND")
    (found,) = _chains(
        _op("Cast", _WIDE, _LOW), _op("MatMulV2", _LOW, other), _op("Cast", _LOW, _WIDE)
    )
    assert found["saved_ns"] == 102


def test_a_result_that_only_looks_like_the_tensor_ends_no_chain() -> None:
    assert not _chains(_op("Cast", _WIDE, _LOW), _op("Relu", _LOW, _LOW), _op("Cast", _LOW, _WIDE))


def test_the_real_level_1_sample_has_transposes_and_transdata_that_cancel(shared: Path) -> None:
    from jumar.profiling import read

    profile = read(shared / "data/msprof/torch_npu_level1_2rank/rank0_ascend_pt")
    found = cancelling_chains(side_of(profile))
    assert "TransData + TransData" in found["what"].to_list()
    assert (found["saved_ns"] > 0).any()
