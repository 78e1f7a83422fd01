"""The options of NpuOptimizer as data, and what is found wrong with a block of them."""

import ast

import pytest

from jumar.porting.npu.option_rules import (
    ALWAYS_WRITTEN,
    COMBINATIONS,
    PART_PARAMETERS,
    RUN_CONFIG_MISSING,
    RUN_CONFIG_PARAMETERS,
)
from jumar.porting.npu.option_table import ADAPTER_OPTIONS, NPU_OPTIONS
from jumar.porting.npu.options import (
    OptionValue,
    check_options,
    check_profiling_options,
    check_run_config,
)
from tests.tensorflow115 import run_tensorflow

Given = dict[str, tuple[str, object]]


def rules_of(block: Given) -> list[str]:
    values = {key: OptionValue(field=field, value=value) for key, (field, value) in block.items()}
    return [f"{problem.key}: {problem.rule}" for problem in check_options(values)]


def run_config_rules(**arguments: object) -> list[str]:
    values = {key: OptionValue(field=None, value=value) for key, value in arguments.items()}
    return [f"{problem.key}: {problem.rule}" for problem in check_run_config(values)]


def test_table_has_every_key_that_the_adapter_reads():
    assert len(ADAPTER_OPTIONS) == 92
    assert {"min_group_size", "master_slave_mode"} <= NPU_OPTIONS.keys() - ADAPTER_OPTIONS.keys()


def test_table_has_every_parameter_of_npurunconfig():
    assert len(RUN_CONFIG_PARAMETERS) == 76
    assert not RUN_CONFIG_MISSING & RUN_CONFIG_PARAMETERS.keys()


@pytest.mark.parametrize("option", ADAPTER_OPTIONS.values(), ids=lambda option: option.key)
def test_defaults_and_examples_are_valid_option_values(option):
    kinds = {"b": bool, "i": int, "s": str}
    given = [option.default] if option.default is not None else []
    given += [*option.allowed] + ([option.example] if option.example else [])

    for value in given:
        assert isinstance(value, kinds[option.field])
        content = value.encode() if isinstance(value, str) else value
        block = {option.key: (option.field, content)}
        assert set(rules_of(block)) <= {
            f"{option.key}: lint-deprecated-option",
            f"{option.key}: lint-option-needs",
            f"{option.key}: lint-option-unused",
        }


def test_combinations_and_parts_name_existing_options():
    for combination in COMBINATIONS:
        conditions = [combination.when, *combination.needs]
        conditions += [combination.excludes] if combination.excludes else []
        for condition in conditions:
            allowed = NPU_OPTIONS[condition.key].allowed
            assert set(condition.values) <= set(allowed or ("True", "1"))
    for parameters in PART_PARAMETERS.values():
        assert set(parameters.values()) <= NPU_OPTIONS.keys()
    assert set(ALWAYS_WRITTEN) <= NPU_OPTIONS.keys()


@pytest.mark.parametrize(
    ("block", "expected"),
    [
        ({"precision_mode": ("s", b"allow_mix_precision")}, []),
        ({"precision_mod": ("s", b"x")}, ["precision_mod: lint-unknown-option"]),
        ({"min_group_size": ("b", 1)}, ["min_group_size: lint-option-not-read"]),
        ({"auto_tune_mode": ("s", b"RL,GA")}, ["auto_tune_mode: lint-deprecated-option"]),
        ({"use_off_line": ("i", 1)}, ["use_off_line: lint-option-field"]),
        ({"precision_mode": ("s", "force_fp16")}, ["precision_mode: lint-option-type"]),
        ({"precision_mode": ("s", b"mix")}, ["precision_mode: lint-option-value"]),
        ({"precision_mode": ("s", None)}, []),
        ({"graph_run_mode": ("i", 2)}, ["graph_run_mode: lint-option-value"]),
        ({"local_rank_id": ("i", 8)}, ["local_rank_id: lint-option-value"]),
        ({"session_device_id": ("i", -1)}, ["session_device_id: lint-option-value"]),
        ({"local_device_list": ("s", b"1,2,")}, ["local_device_list: lint-option-value"]),
        ({"jit_compile": ("b", True)}, ["jit_compile: lint-option-field"]),
        ({"aoe_mode": ("s", b"3")}, ["aoe_mode: lint-option-value"]),
        (
            {"precision_mode": ("s", b"force_fp16"), "precision_mode_v2": ("s", b"fp16")},
            ["precision_mode: lint-option-conflict"],
        ),
        ({"modify_mixlist": ("s", b"a")}, ["modify_mixlist: lint-option-needs"]),
        (
            {"modify_mixlist": ("s", b"a"), "precision_mode": ("s", b"force_fp16")},
            ["modify_mixlist: lint-option-needs"],
        ),
        ({"modify_mixlist": ("s", b"a"), "precision_mode": ("s", None)}, []),
        ({"modify_mixlist": ("s", b"a"), "precision_mode_v2": ("s", b"mixed_float16")}, []),
        ({"enable_dump": ("b", True)}, ["enable_dump: lint-option-needs"]),
        ({"enable_dump": ("b", False)}, []),
        ({"enable_dump_debug": ("b", True), "dump_path": ("s", b"d")}, []),
        (
            {
                "enable_dump": ("b", True),
                "dump_path": ("s", b"d"),
                "dump_step": ("s", b"0|5|10-20"),
            },
            [],
        ),
        (
            {"enable_dump": ("b", True), "dump_path": ("s", b"d"), "dump_step": ("s", b"20-10")},
            ["dump_step: lint-option-value"],
        ),
        (
            {
                "enable_dump": ("b", True),
                "dump_path": ("s", b"d"),
                "dump_step": ("s", b"|".join([b"1"] * 101)),
            },
            ["dump_step: lint-option-value"],
        ),
        (
            {"optypelist_for_implmode": ("s", b"Gelu")},
            ["optypelist_for_implmode: lint-option-needs"],
        ),
        (
            {"input_shape": ("s", b"data:1,-1"), "dynamic_dims": ("s", b"20;40")},
            ["dynamic_dims: lint-option-needs"],
        ),
        (
            {"enable_compress_weight": ("b", True), "compress_weight_conf": ("s", b"f")},
            ["enable_compress_weight: lint-option-conflict"],
        ),
        (
            {"mix_compile_mode": ("b", True), "iterations_per_loop": ("i", 10)},
            ["mix_compile_mode: lint-option-conflict"],
        ),
        ({"mix_compile_mode": ("b", True), "iterations_per_loop": ("i", 1)}, []),
        ({"profiling_options": ("s", b"{}")}, ["profiling_options: lint-option-unused"]),
    ],
)
def test_findings_in_a_block(block, expected):
    assert rules_of(block) == expected


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"precision_mode": "allow_mix_precision", "modify_mixlist": "a.json"}, []),
        ({"modify_mixlist": "a.json"}, ["modify_mixlist: lint-option-needs"]),
        ({"precison_mode": "x"}, ["precison_mode: lint-unknown-run-config"]),
        ({"protocol": "grpc"}, ["protocol: lint-unknown-run-config"]),
        ({"use_off_line": True}, ["use_off_line: lint-unknown-run-config"]),
        (
            {"mix_compile_mode": True, "iterations_per_loop": 10},
            ["mix_compile_mode: lint-option-conflict"],
        ),
        (
            {"save_checkpoints_steps": 10, "save_checkpoints_secs": 60},
            ["save_checkpoints_secs: lint-option-conflict"],
        ),
        ({"enable_data_pre_proc": False}, ["enable_data_pre_proc: lint-deprecated-option"]),
        ({"enable_data_pre_proc": True}, []),
        ({"iterations_per_loop": 0}, ["iterations_per_loop: lint-option-value"]),
    ],
)
def test_findings_in_npurunconfig_arguments(arguments, expected):
    assert run_config_rules(**arguments) == expected


@pytest.mark.parametrize(
    ("settings", "found"),
    [
        ({"output": "/x", "training_trace": "on", "aic_metrics": "PipeUtilization"}, 0),
        ({"output": "/x", "task_trac": "on"}, 1),
        ({"output": "/x", "aicpu": True}, 1),
        ({"output": "/x", "aicpu": "yes"}, 1),
        ({"training_trace": "on"}, 1),
    ],
)
def test_findings_in_profiling_options(settings, found):
    assert len(check_profiling_options(settings)) == found


def test_tensorflow_refuses_exactly_the_values_found_to_have_the_wrong_type():
    values = [True, 1, -1, 1.5, "text", b"text"]
    answer = run_tensorflow(
        """
optimizer = tf.ConfigProto().graph_options.rewrite_options.custom_optimizers.add()
taken = []
for field in "bis":
    for value in [True, 1, -1, 1.5, "text", b"text"]:
        try:
            setattr(optimizer.parameter_map["key"], field, value)
            taken.append(field + repr(value))
        except TypeError:
            pass
answer(taken)
"""
    )
    keys = {"b": "use_off_line", "i": "op_wait_timeout", "s": "job"}
    found = [
        field + repr(value)
        for field, key in keys.items()
        for value in values
        if not rules_of({key: (field, value)})
    ]
    assert found == answer


def test_reasons_and_advice_are_written_in_both_languages():
    for option in NPU_OPTIONS.values():
        if option.status != "current":
            assert option.note is not None, option.key
            assert any("\u4e00" <= letter <= "\u9fff" for letter in option.note.zh)
    for combination in COMBINATIONS:
        assert combination.reason.en
        assert combination.todo.en
        assert any("\u4e00" <= letter <= "\u9fff" for letter in combination.reason.zh)
    assert ast.literal_eval(str(NPU_OPTIONS["profiling_options"].default))["output"] == "./"


@pytest.mark.parametrize(
    ("arguments", "says", "says_zh"),
    [
        ({"iterations_per_loop": 0}, "Allowed: at least 1.", "可取值：不小于 1。"),
        ({"local_rank_id": 8}, "Allowed: 0 to 7.", "可取值：0～7。"),
        ({"enable_dump": True, "dump_step": "5-"}, "Allowed: text such as 0|5|10-20.", "如 0|5"),
        ({"precision_mode": "force_fp61"}, "Did you mean 'force_fp16'? Allowed: ", "force_fp16"),
    ],
)
def test_wrong_value_is_answered_with_what_is_allowed(arguments, says, says_zh):
    values = {
        key: OptionValue(
            field="s" if isinstance(value, str) else "i",
            value=value.encode() if isinstance(value, str) else value,
        )
        for key, value in arguments.items()
    }
    (problem,) = [each for each in check_options(values) if each.rule == "lint-option-value"]
    assert says in problem.todo_en
    assert says_zh in problem.todo_zh
