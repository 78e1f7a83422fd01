"""Finds npu_bridge names that scripts use but the package lacks."""

import ast
from collections.abc import Iterator

from jumar.ground.errors import nearest
from jumar.porting.edits import Finding, Text
from jumar.porting.lint.values import finding
from jumar.porting.npu.names import NPU_NAMES, OPERATOR_HANDLES, is_npu_name
from jumar.porting.npu.options import OptionProblem, did_you_mean
from jumar.porting.script.module import Module

SOURCE = "Ascend/tensorflow tf_adapter/python/npu_bridge"
_ROOTS = ("npu_bridge", "hccl")
_MODULES = frozenset(name.rpartition(".")[2] for name in (*NPU_NAMES, *OPERATOR_HANDLES))
"""Allowed prefixes of a name: `npu_ops` in `npu_ops.dropout`, but no class or instance."""

_COMPILED = frozenset({"npu_bridge.tf_adapter", "npu_bridge.helper"})
"""C++ parts, whose names are not recorded."""

_ALL_NAMES = frozenset().union(*NPU_NAMES.values())


def lint_names(module: Module) -> Iterator[Finding]:
    """Yield imports and attributes that the real package, as far as recorded, lacks."""
    for node in module.scopes.nodes:
        if isinstance(node, ast.ImportFrom) and not node.level and node.module:
            if node.module.split(".")[0] in _ROOTS:
                yield from _imported(module, node, node.module)
        elif isinstance(node, ast.Attribute):
            name = module.name_of(node) or ""
            before, _, last = name.rpartition(".")
            if name.split(".")[0] not in _ROOTS or before.rpartition(".")[2] not in _MODULES:
                continue
            # Names that moved between modules are not distinguished here.
            if not is_npu_name(name) and last not in _ALL_NAMES:
                yield finding(module, node, _unknown(before, last), SOURCE)


def _imported(module: Module, node: ast.ImportFrom, source: str) -> Iterator[Finding]:
    for alias in node.names:
        name = f"{source}.{alias.name}"
        is_compiled = any(f"{name}.".startswith(f"{part}.") for part in _COMPILED)
        if alias.name != "*" and not is_compiled and not is_npu_name(name):
            yield finding(module, alias, _unknown(source, alias.name), SOURCE)


def _unknown(module_name: str, name: str) -> OptionProblem:
    known_names = NPU_NAMES.get(module_name, frozenset())
    nearest_name = nearest(name, known_names)
    elsewhere = sorted(module for module, names in NPU_NAMES.items() if name in names)
    if elsewhere:
        todo = Text(en=f"It is defined in {elsewhere[0]}.", zh=f"它位于 {elsewhere[0]}。")
    elif nearest_name:
        todo = did_you_mean(nearest_name)
    else:
        todo = Text(en="Check its name in your release.", zh="请在所用版本中核对名称。")
    return OptionProblem(
        rule="lint-unknown-name",
        severity="blocking",
        # Releases differ; the list describes the latest one.
        confidence="likely",
        en=f"{module_name} has no '{name}'",
        zh=f"{module_name} 中没有“{name}”",
        todo_en=todo.en,
        todo_zh=todo.zh,
    )
