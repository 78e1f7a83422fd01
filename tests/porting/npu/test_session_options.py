"""The options of a port as text: it compiles, names only what is there, and sets what was asked."""

import ast
import builtins
import itertools
import json
import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jumar.porting.npu.session_options import (
    literal,
    run_config_arguments,
    run_config_functions,
    run_config_imports,
    session_config_function,
    session_options,
)
from jumar.porting.options import PortOptions
from jumar.porting.standin import standin_folder
from tests.tensorflow115 import run_tensorflow

EVERYTHING = PortOptions(
    precision="allow_mix_precision",
    mixlist="lists/ops info.json",
    devices=8,
    profiling=True,
    overflow_dump=True,
    auto_tune=True,
    iterations_per_loop=10,
)


def all_options() -> list[PortOptions]:
    switches = itertools.product([False, True], repeat=3)
    rest = [
        {"precision": None, "mixlist": "", "devices": 1, "iterations_per_loop": 1},
        {"precision": "force_fp16", "mixlist": "", "devices": 8, "iterations_per_loop": 1},
        {
            "precision": "allow_mix_precision",
            "mixlist": "a/混合.json",
            "devices": 2,
            "iterations_per_loop": 50,
        },
    ]
    return [
        PortOptions(profiling=profiling, overflow_dump=dump, auto_tune=tune, **values)
        for (profiling, dump, tune), values in itertools.product(switches, rest)
    ]


def free_names(code: str) -> set[str]:
    """The names that code reads and neither binds nor finds among Python's own."""
    tree = ast.parse(code)
    nodes = list(ast.walk(tree))
    read = {node.id for node in nodes if isinstance(node, ast.Name)}
    bound = {node.arg for node in nodes if isinstance(node, ast.arg)}
    bound |= {
        node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    }
    bound |= {node.name for node in nodes if isinstance(node, ast.FunctionDef)}
    bound |= {
        (alias.asname or alias.name).split(".")[0]
        for node in nodes
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in node.names
    }
    return read - bound - set(dir(builtins)) - {"__file__"}


@pytest.mark.parametrize("options", all_options())
def test_function_is_ascii_python_37_and_uses_only_given_names(options):
    text = session_config_function(
        options, name="npu_session_config", config_proto_name="wrap", indent="\t", newline="\r\n"
    )

    ast.parse(text, feature_version=(3, 7))
    assert text.isascii()
    assert text.count("\n") == text.count("\r\n")
    assert free_names(text) == {"wrap"}


@pytest.mark.parametrize("options", all_options())
def test_arguments_need_only_their_imports_and_functions(options):
    arguments = ", ".join(f"{key}={value}" for key, value in run_config_arguments(options))
    text = f"{run_config_functions(options)}\nNPURunConfig({arguments})\n"

    ast.parse(text, feature_version=(3, 7))
    assert free_names(text) == {"NPURunConfig", *run_config_imports(options)}


def test_without_options_a_session_gets_the_adapters_defaults():
    assert session_options(PortOptions()) == []
    assert run_config_arguments(PortOptions()) == []
    assert session_config_function(PortOptions(), name="f", config_proto_name="g").splitlines() == [
        "def f(config=None):",
        '    """Session options for the NPU."""',
        "    config = g(config_proto=config)",
        "    return config",
    ]


def test_sessions_and_estimators_get_the_same_options():
    keys = {key for key, _, _ in session_options(EVERYTHING)}
    arguments = dict(run_config_arguments(EVERYTHING))

    both = {"precision_mode", "modify_mixlist", "iterations_per_loop", "hcom_parallel"}
    assert both | {"aoe_mode", "work_path"} <= keys & arguments.keys()
    assert keys - arguments.keys() == {
        "profiling_mode",
        "profiling_options",
        "enable_dump_debug",
        "dump_path",
        "dump_debug_mode",
    }
    assert "enable_dump_debug=True" in arguments["dump_config"]
    assert "enable_profiling=True" in arguments["profiling_config"]


def test_op_list_above_the_script_is_named_relative_to_the_scripts_folder():
    values = {
        key: value for key, _, value in session_options(EVERYTHING, mixlist_path="../ops info.json")
    }
    assert '"../ops info.json"' in values["modify_mixlist"]


@given(st.text(alphabet=st.characters(exclude_categories=["Cs"])))
def test_literals_round_trip_in_ascii(text):
    assert ast.literal_eval(literal(text)) == text
    assert literal(text).isascii()


# As the real npu_config_proto: the block is added unless it is there.
_SCRIPT = """
def npu_config_proto(config_proto=None):
    config = config_proto if config_proto is not None else tf.ConfigProto()
    optimizers = config.graph_options.rewrite_options.custom_optimizers
    if not any(optimizer.name == "NpuOptimizer" for optimizer in optimizers):
        optimizers.add().name = "NpuOptimizer"
    return config

import os
from pathlib import Path
os.chdir(sys.argv[2])
__file__ = os.path.join(sys.argv[2], "train.py")
exec(sys.argv[1])
config = npu_session_config(npu_session_config(tf.ConfigProto(allow_soft_placement=True)))
block, = config.graph_options.rewrite_options.custom_optimizers
with tf.Session(config=config) as session:
    three = session.run(tf.constant(1) + 2)
answer({
    "soft": config.allow_soft_placement,
    "three": int(three),
    "values": {
        key: [value.WhichOneof("value"), value.s.decode() or value.i or value.b]
        for key, value in block.parameter_map.items()
    },
})
"""


def test_tensorflow_accepts_every_option_in_its_field(tmp_path):
    text = session_config_function(
        EVERYTHING, name="npu_session_config", config_proto_name="npu_config_proto"
    )
    answer = run_tensorflow(_SCRIPT, text, str(tmp_path))

    values = answer["values"]
    profiling = json.loads(values.pop("profiling_options")[1])
    assert answer["soft"]
    assert answer["three"] == 3
    assert values == {
        "precision_mode": ["s", "allow_mix_precision"],
        "modify_mixlist": ["s", os.fspath(tmp_path / "ops info.json")],
        "iterations_per_loop": ["i", 10],
        "hcom_parallel": ["b", True],
        "profiling_mode": ["b", True],
        "enable_dump_debug": ["b", True],
        "dump_path": ["s", os.fspath(tmp_path / "npu_overflow")],
        "dump_debug_mode": ["s", "all"],
        "aoe_mode": ["s", "2"],
        "work_path": ["s", os.fspath(tmp_path / "npu_tuning")],
    }
    assert profiling["output"] == os.fspath(tmp_path / "npu_profiling")
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "npu_overflow",
        "npu_profiling",
        "npu_tuning",
    ]


def test_validating_stand_in_accepts_every_option(tmp_path):
    arguments = ", ".join(f"{key}={value}" for key, value in run_config_arguments(EVERYTHING))
    text = session_config_function(
        EVERYTHING, name="npu_session_config", config_proto_name="npu_config_proto"
    )
    (tmp_path / "ops info.json").write_text('{"black-list": {"to-add": ["SoftmaxV2"]}}')
    program = f"""
import os
from pathlib import Path
sys.path.insert(0, sys.argv[3])
os.chdir(sys.argv[2])
__file__ = os.path.join(sys.argv[2], "train.py")
from npu_bridge.npu_init import *
exec(sys.argv[1])
with tf.Session(config=npu_session_config()) as session:
    three = session.run(tf.constant(1) + 2)
NPURunConfig(model_dir="run", {arguments})
answer(int(three))
"""
    assert run_tensorflow(program, text, str(tmp_path), str(standin_folder())) == 3
