"""A module as a rule sees it."""

import ast
from pathlib import Path

import pytest

from jumar.porting.edits import Remark, Text
from jumar.porting.options import PortOptions
from jumar.porting.rewriting.changes import Notice, Replacement, Rewrite
from jumar.porting.rewriting.prelude import RUN_CONFIG, SESSION_CONFIG, prelude
from jumar.porting.rewriting.view import View
from jumar.porting.script.module import Module
from jumar.porting.script.project import Project

TEXT = Text(en="a", zh="b")
MIXED = PortOptions(precision="allow_mix_precision")


def view(text: str, options: PortOptions | None = None) -> View:
    return View(Module(text, "script.py", Project(Path("nowhere"))), options or PortOptions())


@pytest.mark.parametrize(
    ("text", "local", "has"),
    [
        ("", "npu_config_proto", False),
        ("from npu_bridge.npu_init import *", "npu_config_proto", True),
        ("from npu_bridge.npu_init import npu_config_proto", "npu_config_proto", True),
        ("from npu_bridge.npu_init import npu_config_proto as n", "n", True),
        ("from npu_bridge import npu_config_proto as n", "n", True),
        ("from elsewhere import npu_config_proto as n", "npu_config_proto", False),
        ("from npu_bridge.npu_init import NPUEstimator as n", "npu_config_proto", False),
        ("npu_config_proto = 1", "npu_config_proto_of_npu", False),
        ("def f(npu_config_proto): 1", "npu_config_proto_of_npu", False),
        ("npu_config_proto = 1\nfrom npu_bridge.npu_init import *", "npu_config_proto", True),
        ("def f():\n    from npu_bridge.npu_init import *", "npu_config_proto", False),
    ],
)
def test_npu_names_are_written_as_the_script_imports_them(text: str, local: str, has: bool) -> None:
    seen = view(text)
    assert seen.npu("npu_config_proto") == local
    assert seen.npu("npu_config_proto") == local
    assert seen.has("npu_config_proto") is has


def test_session_function_depends_on_the_options() -> None:
    plain = view("from npu_bridge.npu_init import npu_config_proto as n")
    assert plain.session_config() == ("n", ("npu_config_proto",), ())
    assert view("", MIXED).session_config() == (
        *("npu_session_config", ("npu_config_proto",), ("npu_session_config",)),
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("import npu_bridge.npu_init as n\nn.NPUEstimator()", True),
        ("import npu_bridge.npu_init as n\nn.NPUEstimator", False),
        ("def npu_session_config(): 1\nnpu_session_config()", True),
        ("def other(): 1\nother()", False),
        ("f()", False),
    ],
)
def test_npu_calls_are_recognised(text: str, expected: bool) -> None:
    seen = view(text)
    last = seen.module.tree.body[-1]
    assert isinstance(last, ast.Expr)
    assert seen.is_npu(last.value) is expected


def test_rewrites_and_notices_keep_their_arguments() -> None:
    seen = view("x")
    node = seen.module.tree.body[0]
    change = Replacement(start=0, end=1, text="y")
    assert seen.rewrite(node, change, reason=TEXT) == Rewrite(
        node=node, replacements=(change,), reason=TEXT, confidence="certain"
    )
    more = seen.rewrite(
        node, change, change, reason=TEXT, confidence="likely", imports=("a",), functions=("b",)
    )
    assert (more.confidence, more.imports, more.functions) == ("likely", ("a",), ("b",))
    assert len(more.replacements) == 2
    remark = Remark(en="{what}", zh="{what}", todo_en="{what}", todo_zh="{what}", severity="speed")
    filled = remark.filled(what=TEXT)
    assert seen.notice(node, filled) == Notice(node=node, remark=filled)
    assert (filled.reason, filled.todo, filled.confidence) == (TEXT, TEXT, "certain")
    other = Text(en="c", zh="d")
    notice = seen.notice(node, filled, todo=other, severity="blocking", confidence="unsure")
    blocking = notice.remark
    assert blocking.todo == other
    assert (blocking.severity, blocking.confidence) == ("blocking", "unsure")
    assert seen.originally_empty == frozenset()


def test_port_adds_only_functions_that_the_script_lacks() -> None:
    options = PortOptions(precision="allow_mix_precision", profiling=True)
    assert prelude(view("", options), set()) == ([], set())
    functions, needs = prelude(view("if a:\n  b\n", MIXED), {SESSION_CONFIG})
    assert needs == {"npu_config_proto"}
    assert functions == [
        "def npu_session_config(config=None):\n"
        '  """Session options for the NPU."""\n'
        "  config = npu_config_proto(config_proto=config)\n"
        "  for optimizer in config.graph_options.rewrite_options.custom_optimizers:\n"
        '    if optimizer.name == "NpuOptimizer":\n'
        '      optimizer.parameter_map["precision_mode"].s = b"allow_mix_precision"\n'
        "  return config"
    ]
    assert prelude(view("def npu_session_config(): 1", MIXED), {SESSION_CONFIG}) == ([], set())
    both, needs = prelude(view("", options), {SESSION_CONFIG, RUN_CONFIG})
    names = [function.partition("(")[0].removeprefix("def ") for function in both]
    assert names[-1] == "npu_session_config"
    # Both call the function that names a folder, which is there once.
    assert len(names) == len(set(names)) == 2
    alone, needs = prelude(view("", options), {RUN_CONFIG})
    assert (alone, needs) == (both[:1], set())
    called = prelude(view(f"def {names[0]}(): 1", options), {SESSION_CONFIG})[0]
    assert [function.partition("(")[0] for function in called] == ["def npu_session_config"]
