"""The stand-in and the linter interpret the table of the adapter's options alike."""

import importlib
from typing import Any, get_args

import pytest

from jumar.porting.npu.option_table import NPU_OPTIONS, NpuOption
from jumar.porting.npu.options import OptionValue, check_options
from jumar.porting.options import MIXED_PRECISION_MODES, PrecisionMode
from jumar.porting.standin import standin_data, standin_folder


@pytest.fixture(scope="module")
def checks() -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(standin_folder()))
        yield importlib.import_module("npu_bridge_standin.option_checks")


@pytest.fixture(scope="module")
def table(checks: Any) -> Any:
    return importlib.import_module("npu_bridge_standin.option_table")


def test_both_know_the_same_keys(table: Any) -> None:
    read = {key for key, option in NPU_OPTIONS.items() if option.status != "not read"}
    assert set(table.OPTIONS) == read
    assert set(table.NOT_READ) <= set(NPU_OPTIONS) - read


def test_both_know_the_same_fields_defaults_and_values(table: Any) -> None:
    for key, option in NPU_OPTIONS.items():
        if option.status == "not read":
            continue
        ours = table.OPTIONS[key]
        assert ours["field"] == option.field, key
        if option.default is not None and ours["default"] is not None:
            assert ours["default"] == option.default, key
        if option.allowed or option.minimum is None:
            assert [str(value) for value in ours.get("allowed", [])] == list(option.allowed), key
        elif "allowed" in ours:
            assert ours["allowed"][0] == option.minimum, key
            assert ours["allowed"][-1] == option.maximum, key


def test_precision_modes_of_a_port_match_the_table(table: Any) -> None:
    assert list(get_args(PrecisionMode)) == table.OPTIONS["precision_mode"]["allowed"]
    assert list(MIXED_PRECISION_MODES) == table.MIXED_MODES


def test_every_option_has_the_expected_fields() -> None:
    known = {*NpuOption.__dataclass_fields__, "unread"}
    data = standin_data("options")
    for key, option in data["options"].items():
        assert option.keys() <= known - {"key"}, key
        assert option.get("note", "tune") in data["notes"], key
        assert set(option.get("read_with", ())) <= data["options"].keys(), key
        assert set(option.get("mixed", ())) <= set(option.get("allowed", ())), key


def test_linter_finds_every_value_that_the_stand_in_refuses(table: Any, checks: Any) -> None:
    wrong: dict[str, list[Any]] = {"s": ["", "no such value"], "i": [-7, 77], "b": [True, False]}
    seen = 0
    for key, option in table.OPTIONS.items():
        for value in wrong[option["field"]]:
            problems = checks.check_blocks([{key: (option["field"], value)}], {})
            if key == "task_index" or not any(problem.refused for problem in problems):
                continue
            given = value.encode() if isinstance(value, str) else value
            found = check_options({key: OptionValue(field=option["field"], value=given)})
            assert {problem.key for problem in found} == {key}
            assert "blocking" in {problem.severity for problem in found}, key
            seen += 1
    assert seen > 20
