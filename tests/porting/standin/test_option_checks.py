"""The stand-in's checks of session options, without TensorFlow."""

import ast
import importlib
import json
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jumar.porting.standin import RECORD_VARIABLE, standin_folder

FIELDS = {str: "s", bool: "b", int: "i"}


@pytest.fixture(scope="module")
def checks() -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(standin_folder()))
        yield importlib.import_module("npu_bridge_standin.option_checks")


@pytest.fixture(scope="module")
def table(checks: ModuleType) -> dict[str, dict[str, Any]]:
    return importlib.import_module("npu_bridge_standin.option_table").OPTIONS


def block(**options: Any) -> dict[str, tuple[str, Any]]:
    """A block in which every value was set in the field of its own type."""
    return {key: (FIELDS[type(value)], value) for key, value in options.items()}


def refusals(checks: Any, *blocks: dict[str, Any], **environment: str) -> list[str]:
    problems = checks.check_blocks(blocks, environment)
    return [problem.key for problem in problems if problem.refused]


def remarks(checks: Any, *blocks: dict[str, Any]) -> dict[str, str]:
    problems = checks.check_blocks(blocks, {})
    assert not [problem for problem in problems if problem.refused]
    return {problem.key: problem.text for problem in problems}


def test_block_of_a_typical_port_passes(checks: Any, tmp_path: Path) -> None:
    usual = block(
        use_off_line=True,
        precision_mode="allow_mix_precision",
        modify_mixlist="ops_info.json",
        iterations_per_loop=100,
        enable_dump_debug=True,
        dump_path=str(tmp_path),
        dump_debug_mode="all",
        hcom_parallel=True,
        graph_run_mode=1,
    )
    assert checks.check_blocks([usual], {}) == []


def test_misspelt_key_is_ignored_and_the_nearest_one_named(checks: Any) -> None:
    said = remarks(checks, block(precison_mode="allow_mix_precision"))
    assert "did you mean 'precision_mode'?" in said["precison_mode"]


def test_unrecognisable_key_has_no_suggestion(checks: Any) -> None:
    assert "did you mean" not in remarks(checks, block(zzzz=True))["zzzz"]


@pytest.mark.parametrize("key", ["min_group_size", "enable_auto_mix_precision"])
def test_key_of_another_version_is_reported_to_have_no_effect(checks: Any, key: str) -> None:
    assert "has no effect" in remarks(checks, block(**{key: True}))[key]


def test_value_in_the_wrong_field_counts_as_zero(checks: Any) -> None:
    wrong = {"mix_compile_mode": ("i", 1), "enable_data_pre_proc": ("s", "True")}
    said = remarks(checks, wrong)
    assert "counts as False" in said["mix_compile_mode"]
    assert "read from .b" in said["enable_data_pre_proc"]


def test_key_that_is_only_mentioned_is_reported_as_not_set(checks: Any) -> None:
    assert "not set" in remarks(checks, {"use_off_line": (None, None)})["use_off_line"]


def test_wrong_field_whose_zero_is_not_allowed_is_refused(checks: Any) -> None:
    assert refusals(checks, {"precision_mode": ("i", 1)}) == ["precision_mode"]


@pytest.mark.parametrize("field", [("b", True), ("i", 1)])
def test_jit_compile_must_be_a_string(checks: Any, field: tuple[str, Any]) -> None:
    assert refusals(checks, {"jit_compile": field}) == ["jit_compile"]


@pytest.mark.parametrize(
    ("options", "key"),
    [
        ({"precision_mode": "allow_mixed_precision"}, "precision_mode"),
        ({"precision_mode_v2": "fp32"}, "precision_mode_v2"),
        ({"precision_mode": "force_fp16", "precision_mode_v2": "fp16"}, "precision_mode_v2"),
        ({"modify_mixlist": "m.json"}, "modify_mixlist"),
        ({"modify_mixlist": "m.json", "precision_mode": "force_fp16"}, "modify_mixlist"),
        ({"modify_mixlist": "m.json", "precision_mode_v2": "fp16"}, "modify_mixlist"),
        ({"enable_dump": True}, "enable_dump"),
        ({"enable_dump_debug": True}, "enable_dump_debug"),
        ({"enable_dump": True, "dump_path": "/not/there"}, "dump_path"),
        ({"graph_run_mode": 2}, "graph_run_mode"),
        ({"enable_exception_dump": 3}, "enable_exception_dump"),
        ({"iterations_per_loop": 0}, "iterations_per_loop"),
        ({"session_device_id": -1}, "session_device_id"),
        ({"local_rank_id": 8}, "local_rank_id"),
        ({"local_device_list": "0;1"}, "local_device_list"),
        ({"optypelist_for_implmode": "Pooling"}, "optypelist_for_implmode"),
        ({"op_select_implmode": "fast"}, "op_select_implmode"),
        ({"enable_compress_weight": False, "compress_weight_conf": "c"}, "compress_weight_conf"),
        ({"buffer_optimize": "l1_optimize"}, "buffer_optimize"),
        ({"jit_compile": "True"}, "jit_compile"),
        ({"graph_slice": "both"}, "graph_slice"),
        ({"variable_placement": "Cpu"}, "variable_placement"),
        ({"dump_data": "values"}, "dump_data"),
        ({"aoe_mode": "3"}, "aoe_mode"),
        ({"input_shape": "data:-1,3"}, "input_shape"),
        (
            {"dynamic_input": True, "dynamic_graph_execute_mode": "eager"},
            "dynamic_graph_execute_mode",
        ),
        (
            {
                "dynamic_input": True,
                "dynamic_graph_execute_mode": "lazy_recompile",
                "iterations_per_loop": 10,
            },
            "iterations_per_loop",
        ),
    ],
)
def test_values_refused_by_the_adapter_are_refused(
    checks: Any, options: dict[str, Any], key: str
) -> None:
    assert refusals(checks, block(**options)) == [key]


def test_refusal_names_key_value_and_allowed_values(checks: Any) -> None:
    (problem,) = checks.check_blocks([block(precision_mode="allow_mix_precison")], {})
    assert problem.text.startswith("precision_mode = 'allow_mix_precison':")
    assert "did you mean 'allow_mix_precision'?" in problem.text
    assert "force_fp32" in problem.text


@pytest.mark.parametrize("text", ["0", "0|5|10-20", "7-8", ""])
def test_dump_steps_are_numbers_and_ascending_ranges(
    checks: Any, text: str, tmp_path: Path
) -> None:
    options = block(enable_dump=True, dump_path=str(tmp_path), dump_step=text)
    assert refusals(checks, options) == []


@pytest.mark.parametrize("text", ["a", "5-5", "9-3", "1-2-3", "1, 2", "|".join("1" * 101)])
def test_other_dump_steps_are_refused(checks: Any, text: str, tmp_path: Path) -> None:
    options = block(enable_dump=True, dump_path=str(tmp_path), dump_step=text)
    assert refusals(checks, options) == ["dump_step"]


def test_dump_options_are_not_read_while_nothing_is_dumped(checks: Any) -> None:
    said = remarks(checks, block(dump_step="x", dump_mode="x", dump_debug_mode="x"))
    assert set(said) == {"dump_step", "dump_mode", "dump_debug_mode"}
    assert "only read if enable_dump is true" in said["dump_mode"]


def test_enabled_and_default_options_are_silent(checks: Any) -> None:
    assert remarks(checks, block(dump_mode="output", dump_debug_mode="all")) == {}
    assert remarks(checks, block(profiling_mode=True, profiling_options="{}")) == {}
    assert set(remarks(checks, block(profiling_options="{}"))) == {"profiling_options"}


def test_dump_enabled_in_one_block_needs_a_path_in_the_next(checks: Any, tmp_path: Path) -> None:
    first = block(enable_dump=True, dump_path=str(tmp_path))
    assert refusals(checks, first, block(use_off_line=True)) == ["enable_dump"]
    assert refusals(checks, first, block(enable_dump=False)) == []


def test_mixlist_needs_its_mode_in_the_same_block(checks: Any) -> None:
    mode, mixlist = block(precision_mode="allow_mix_precision"), block(modify_mixlist="m.json")
    assert refusals(checks, mode, mixlist) == ["modify_mixlist"]
    assert refusals(checks, {**mode, **mixlist}) == []


def test_auto_tuning_is_also_switched_on_by_the_environment(checks: Any) -> None:
    assert refusals(checks, block(use_off_line=True), AOE_MODE="9") == ["aoe_mode"]
    assert refusals(checks, block(aoe_mode="2", work_path="/not/there")) == ["work_path"]


def test_dynamic_shapes_are_read_only_for_dynamic_input(checks: Any) -> None:
    said = remarks(checks, block(dynamic_inputs_shape_range="data:[1,20~800]"))
    assert "only read if dynamic_input is true" in said["dynamic_inputs_shape_range"]
    dynamic = block(dynamic_input=True, dynamic_inputs_shape_range="data:[1,20~800]")
    assert remarks(checks, dynamic) == {}


def test_shapes_of_several_sizes_are_given_together_in_their_format(checks: Any) -> None:
    right = block(input_shape="a:1,-1;b:-1", dynamic_dims="20,20;40,40", dynamic_node_type=1)
    assert refusals(checks, right) == []
    assert refusals(checks, {**right, **block(dynamic_dims="x")}) == ["dynamic_dims"]
    assert refusals(checks, {**right, **block(dynamic_node_type=2)}) == ["dynamic_node_type"]
    assert refusals(checks, {**right, **block(mix_compile_mode=True)}) == ["input_shape"]


def test_every_default_and_allowed_value_has_its_fields_type(
    table: dict[str, dict[str, Any]],
) -> None:
    kinds = {"s": str, "b": bool, "i": int}
    assert len(table) == 92
    for key, option in table.items():
        values = [*option.get("allowed", []), option["default"]]
        for value in values:
            assert value is None or type(value) is kinds[option["field"]], key


@given(
    st.dictionaries(
        st.text(max_size=12),
        st.one_of(
            st.tuples(st.just("s"), st.text(max_size=12)),
            st.tuples(st.just("i"), st.integers(-9, 9)),
            st.tuples(st.just("b"), st.booleans()),
            st.just((None, None)),
        ),
        max_size=6,
    )
)
def test_unknown_keys_are_never_refused(
    checks: Any, table: dict[str, Any], options: dict[str, Any]
) -> None:
    unknown = {key: value for key, value in options.items() if key not in table}
    problems = checks.check_blocks([unknown], {})
    assert {problem.key for problem in problems} == set(unknown)
    assert not any(problem.refused for problem in problems)


def test_record_is_json_lines_and_never_stops_a_script(
    checks: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    record = importlib.import_module("npu_bridge_standin.record").record
    path = tmp_path / "events.jsonl"
    monkeypatch.setenv(RECORD_VARIABLE, str(path))
    record("dropout", keep_prob=0.5)
    record("hccl", odd=object())
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    assert [line["kind"] for line in lines] == ["dropout", "hccl"]
    monkeypatch.setenv(RECORD_VARIABLE, str(tmp_path))
    record("session")
    monkeypatch.delenv(RECORD_VARIABLE)
    record("session")


def test_groups_follow_the_environment(checks: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    api = importlib.import_module("hccl.manage.api")
    monkeypatch.setenv("RANK_SIZE", "16")
    monkeypatch.setenv("RANK_ID", "9")
    assert (api.get_rank_size(), api.get_rank_id()) == (16, 9)
    assert (api.get_local_rank_size(), api.get_local_rank_id()) == (8, 1)
    api.create_group("odd", 3, [1, 9, 15])
    assert (api.get_rank_size("odd"), api.get_rank_id("odd")) == (3, 1)
    assert api.get_world_rank_from_group_rank("odd", 2) == 15
    assert api.get_group_rank_from_world_rank(15, "odd") == 2
    with pytest.raises(ValueError, match="already exists"):
        api.create_group("odd", 3, [1, 9, 15])
    api.destroy_group("odd")
    with pytest.raises(ValueError, match="group 'odd' does not exist"):
        api.get_rank_size("odd")


def test_rank_size_and_worker_size_exclude_each_other(
    checks: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    ranks = importlib.import_module("npu_bridge_standin.ranks")
    monkeypatch.delenv("RANK_SIZE", raising=False)
    assert ranks.rank_size_text() == "1"
    monkeypatch.setenv("CM_WORKER_SIZE", "4")
    assert ranks.rank_size_text() == "4"
    monkeypatch.setenv("RANK_SIZE", "4")
    with pytest.raises(ValueError, match="both set"):
        ranks.rank_size_text()


def test_stand_in_is_python_3_7_and_independent_of_jumar() -> None:
    files = [path for path in standin_folder().rglob("*.py") if path.parent != standin_folder()]
    assert len(files) > 30
    for path in files:
        tree = ast.parse(path.read_text(encoding="utf-8"), feature_version=(3, 7))
        for node in ast.walk(tree):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            assert not [name for name in names if name.split(".")[0] == "jumar"], path
