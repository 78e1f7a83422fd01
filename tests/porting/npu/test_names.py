"""Ported code uses names of npu_bridge that the real package has."""

import ast
from pathlib import Path

import pytest
from scripts.write_rules_page import Example, read_examples

from jumar.porting import rules
from jumar.porting.npu.exports import NPU_INIT_NAMES
from jumar.porting.npu.names import is_npu_name
from jumar.porting.npu.session_options import run_config_imports
from jumar.porting.options import PortOptions
from jumar.porting.rewriting.registry import all_rules
from jumar.porting.script.module import Module
from jumar.porting.script.project import Project

EXAMPLES = [
    pytest.param(example, id=f"{rule.id}-{example.name}")
    for rule in all_rules()
    for example in read_examples(rule).examples
]
RULE_FILES = sorted(Path(rules.__path__[0]).rglob("*.py"))


@pytest.mark.parametrize("example", EXAMPLES)
def test_every_npu_bridge_name_of_an_example_is_in_the_recorded_list(example: Example) -> None:
    module = Module(example.after, "script.py", Project(Path("nowhere")))
    for node in module.scopes.nodes:
        if isinstance(node, ast.Attribute | ast.Name):
            name = module.name_of(node) or ""
            parent = module.parent(node)
            whole = not (isinstance(parent, ast.Attribute) and parent.value is node)
            if name.startswith("npu_bridge.") and whole:
                assert is_npu_name(name), name


@pytest.mark.parametrize("path", RULE_FILES, ids=lambda path: path.stem)
def test_every_name_imported_by_a_rule_is_in_npu_init(path: Path) -> None:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr == "npu"
            and node.args
            and isinstance(node.args[0], ast.Constant)
        ):
            assert node.args[0].value in NPU_INIT_NAMES


def test_npu_run_config_arguments_use_names_of_npu_init() -> None:
    everything = PortOptions(
        precision="allow_mix_precision", profiling=True, overflow_dump=True, auto_tune=True
    )
    assert set(run_config_imports(everything)) <= NPU_INIT_NAMES
    for name in NPU_INIT_NAMES:
        assert is_npu_name(f"npu_bridge.npu_init.{name}"), name
