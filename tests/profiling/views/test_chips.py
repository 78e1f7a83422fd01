"""The chip of a profile, and the required fields of a chip table."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from jumar.ground.errors import UserError
from jumar.profiling.profile import Profile
from jumar.profiling.views.chips import Chip, chip_of, peak_rates, read_chips
from jumar.profiling.views.view import Options
from tests.profiling.generated import profile_of

_ROW: dict[str, Any] = {
    "name": "Test 1",
    "matches": ["Test One", "T1"],
    "cube_tflops": {"FLOAT": 2, "BF16": 8.5},
    "vector_tflops": 3,
    "hbm_gb_s": 4,
    "cube_cores": 5,
    "vector_cores": 6,
    "launch_us": 7,
}
_CHIP = Chip(
    name="Test 1",
    matches=("test one", "t1"),
    cube_tflops={"FLOAT": 2.0, "BF16": 8.5},
    vector_tflops=3.0,
    hbm_gb_s=4.0,
    cube_cores=5,
    vector_cores=6,
    launch_us=7.0,
    estimate=False,
    source="the user's file",
)
_FORM = (
    'It has the form {"chips": [{"name": ..., "matches": [...], "cube_tflops": {"FLOAT16": ...}, '
    '"vector_tflops": ..., "hbm_gb_s": ..., "cube_cores": ..., "vector_cores": ..., '
    '"launch_us": ..., "source": ...}]}.'
)


def _file(tmp_path: Path, *rows: dict[str, Any]) -> Path:
    file = tmp_path / "chips.json"
    file.write_text(json.dumps({"chips": rows}))
    return file


def test_chip_has_the_numbers_of_its_row(tmp_path: Path) -> None:
    more = {"estimate": True, "source": "a sheet", "unverified": ["hbm_gb_s", "launch_us"]}
    found = read_chips(_file(tmp_path, _ROW, {**_ROW, **more}))
    unverified = ("hbm_gb_s", "launch_us")
    told = replace(_CHIP, estimate=True, source="a sheet", unverified=unverified)
    assert found == (_CHIP, told)
    assert (_CHIP.label, _CHIP.summary) == ("Test 1", "Test 1: the user's file")
    assert told.label == "Test 1, estimate, unverified hbm_gb_s, launch_us"
    assumed = replace(told, assumed=True)
    assert assumed.summary == (
        "Test 1 (assumed from the cores that ops used), estimate, unverified hbm_gb_s, launch_us: "
        "a sheet"
    )


def test_unknown_dtype_has_the_float_or_highest_peak() -> None:
    assert _CHIP.cube_peak("BF16") == 8.5e12
    assert _CHIP.cube_peak("FLOAT") == _CHIP.cube_peak("INT8") == 2e12
    halves = replace(_CHIP, cube_tflops={"BF16": 8.0, "FLOAT16": 9.0, "INT8": 7.0})
    assert (halves.cube_peak("INT8"), halves.cube_peak("FLOAT")) == (7e12, 9e12)


@pytest.mark.parametrize("field", ["vector_tflops", "hbm_gb_s", "FLOAT"])
def test_rates_must_be_positive_and_below_a_billion(field: str, tmp_path: Path) -> None:
    def row(rate: float) -> dict[str, Any]:
        return (
            {**_ROW, "cube_tflops": {"FLOAT": rate}} if field == "FLOAT" else _ROW | {field: rate}
        )

    file = _file(tmp_path, row(0.001), row(999_999_999))
    assert len(read_chips(file)) == 2
    for rate in (0, -1, 1e9):
        with pytest.raises(UserError) as told:
            read_chips(_file(tmp_path, _ROW, row(rate)))
        assert str(told.value) == (
            f"{file}: not a chip table: ValueError Test 1: rates must be numbers above 0\n  {_FORM}"
        )


def test_chip_without_rates_or_with_odd_remarks_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="ValueError Test 1: rates must be numbers above 0"):
        read_chips(_file(tmp_path, {**_ROW, "cube_tflops": {}}))
    with pytest.raises(UserError, match="TypeError unverified: 3 is neither true nor a list"):
        read_chips(_file(tmp_path, {**_ROW, "unverified": 3}))
    with pytest.raises(UserError, match="KeyError 'launch_us'"):
        read_chips(_file(tmp_path, {name: _ROW[name] for name in _ROW if name != "launch_us"}))


def test_table_is_read_up_to_a_mebibyte(tmp_path: Path) -> None:
    file = tmp_path / "chips.json"
    text = json.dumps({"chips": [_ROW]})
    file.write_text(text[:-1] + " " * (2**20 - len(text)) + "}")
    assert file.stat().st_size == 2**20
    assert read_chips(file) == (_CHIP,)
    file.write_text(text[:-1] + " " * (2**20 + 1 - len(text)) + "}")
    with pytest.raises(UserError, match="not a chip table"):
        read_chips(file)


def _named(chip: str = "", **more: Any) -> Profile:
    row = {"core": "AI_CPU", "duration_ns": 3}
    return profile_of([row], chip=chip, **more)


def test_single_chip_file_needs_no_name_and_several_do(tmp_path: Path) -> None:
    assert chip_of(_named("anything"), _file(tmp_path, _ROW)) == _CHIP
    other = {**_ROW, "name": "Test 2", "matches": ["t2"]}
    file = _file(tmp_path, _ROW, other)
    for name, told in (("TEST  ONE-7", "Test 1"), ("my t2", "Test 2"), ("A100", "NVIDIA A100")):
        found = chip_of(_named(name), file)
        assert found is not None
        assert (found.name, found.assumed) == (told, False)
    for name, told in (("odd", "odd"), ("", "unknown")):
        with pytest.raises(UserError) as refused:
            chip_of(_named(name), file)
        assert str(refused.value) == (
            f"{file}: the profile's chip '{told}' matches none of: Test 1, Test 2\n"
            "  Keep a single chip in the file, or add its name to `matches`."
        )


def _with(*ops: tuple[str, int | None], kind: str = "npu") -> Profile:
    rows = [{"core": core, "block_num": blocks, "duration_ns": 1} for core, blocks in ops]
    return profile_of(rows, kind=kind)  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize(
    ("ops", "name"),
    [
        ([("AI_CORE", 32)], "Ascend 910A"),
        ([("AI_CORE", 20), ("AI_VECTOR_CORE", 40)], "Ascend 910B3"),
        ([("AI_CORE", 21), ("AI_VECTOR_CORE", 40)], "Ascend 910B2"),
        ([("AI_CORE", 20), ("AI_VECTOR_CORE", 41)], "Ascend 910B2"),
        ([("AI_VECTOR_CORE", 1)], "Ascend 910B3"),
        ([("AI_VECTOR_CORE", 0)], "Ascend 910A"),
        ([("AI_VECTOR_CORE", None)], "Ascend 910A"),
        ([("AI_CORE", 20), ("AI_VECTOR_CORE", 48)], "Ascend 910B2"),
        # More blocks than any part has cores say nothing.
        ([("AI_CORE", 20), ("AI_VECTOR_CORE", 40), ("AI_VECTOR_CORE", 49)], "Ascend 910B3"),
        ([("AI_CORE", 20), ("MIX_AIC", None)], "Ascend 910B3"),
        ([("AI_CORE", 24), ("MIX_AIV", 1)], "Ascend 910B2"),
        ([("MIX_AIV", 300)], "Ascend 910B3"),
        ([("AI_CPU", 4), ("COMMUNICATION", 1)], None),
    ],
)
def test_unnamed_chip_is_guessed_from_the_cores_used(
    ops: list[tuple[str, int | None]], name: str | None
) -> None:
    found = chip_of(_with(*ops))
    assert (found.name if found else None) == name
    assert found is None or found.assumed
    assert chip_of(_with(*ops, kind="cuda")) is None


def test_rates_measured_in_a_cpu_capture_are_used() -> None:
    table = pl.DataFrame({"json": [json.dumps({"chips": [_ROW, {**_ROW, "name": "Test 2"}]})]})
    for kind, told in (("cpu", _CHIP), ("cuda", None)):
        assert chip_of(_named(statistics={"chips": table}, kind=kind)) == told
    assert chip_of(_named(statistics={"chips": table.clear()}, kind="cpu")) is None
    assert chip_of(_named(kind="cpu")) is None


def test_rates_are_shown_for_views_that_use_them(tmp_path: Path) -> None:
    options = Options(chip=_file(tmp_path, _ROW))
    profile = _named()
    assert peak_rates(profile, ["ops", "roofline"], options) == "Test 1: the user's file"
    assert peak_rates(profile, ["ops", "types"], options) == ""
    assert peak_rates(profile, [], options) == ""
    assert peak_rates(_named(kind="cuda"), ["roofline"], Options()) == ""
