"""Remapping and memory optimization, which a hand-written block has to switch off itself."""

import ast
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field

from jumar.porting.edits import Finding
from jumar.porting.lint.blocks import NAME, Block
from jumar.porting.lint.values import constant, finding
from jumar.porting.npu.options import OptionProblem
from jumar.porting.script.expressions import last_name
from jumar.porting.script.module import Module

SOURCE = "Ascend/tensorflow npu_bridge/npu_init.py"
_REWRITERS = ("remapping", "memory_optimization")
_OFF = ("OFF", "NO_MEM_OPT", "MANUAL")
"""RewriterConfig.OFF is 2, which memory_optimization reads as MANUAL: nothing is rewritten."""


@dataclass
class _RewriterSettings:
    """The rewriter values set in a function or script; `wrapped` if npu_config_proto is called."""

    values: dict[str, list[ast.expr]] = field(default_factory=lambda: defaultdict(list))
    wrapped: bool = False


def lint_rewriters(module: Module, blocks: list[Block]) -> Iterator[Finding]:
    """Yield the findings about the blocks of a script."""
    settings_of: dict[ast.AST, _RewriterSettings] = {}
    reported: set[ast.expr] = set()
    for block in blocks:
        call = block.added
        if call is None or block.name is None or constant(module, block.name) != NAME:
            continue
        region = _region(module, call)
        if region not in settings_of:
            settings_of[region] = _settings_of(module, region)
        settings = settings_of[region]
        for name in _REWRITERS:
            values = settings.values[name]
            switched_on = [value for value in values if _is_on(module, value)]
            if switched_on and switched_on[0] not in reported:
                reported.add(switched_on[0])
                yield finding(module, switched_on[0], _problem(name, missing=False), SOURCE)
            elif not values and not (name == "remapping" and settings.wrapped):
                yield finding(module, call, _problem(name, missing=True), SOURCE)


def _region(module: Module, call: ast.Call) -> ast.AST:
    """Return the node in which a config is filled: its function, or the script if it is shared."""
    function = module.function(call)
    root: ast.expr = call
    while isinstance(root, ast.Call | ast.Attribute):
        root = root.func if isinstance(root, ast.Call) else root.value
    if function is None or not isinstance(root, ast.Name):
        return module.tree
    scope, bindings = module.scopes.lookup(root)
    local = scope is module.scopes.scope_of(call)
    made_here = local and all(binding.kind == "assignment" for binding in bindings)
    return function if made_here else module.tree


def _settings_of(module: Module, region: ast.AST) -> _RewriterSettings:
    settings = _RewriterSettings()
    for node in ast.walk(region):
        if isinstance(node, ast.keyword) and node.arg in _REWRITERS:
            settings.values[node.arg].append(node.value)
        elif isinstance(node, ast.Attribute) and node.attr in _REWRITERS:
            parent = module.parent(node)
            if isinstance(node.ctx, ast.Store) and isinstance(parent, ast.Assign):
                settings.values[node.attr].append(parent.value)
        elif isinstance(node, ast.Call) and last_name(node.func) == "npu_config_proto":
            # This switches remapping off but leaves the other rewriter on if there is a block.
            settings.wrapped = True
    return settings


def _is_on(module: Module, value: ast.expr) -> bool:
    if isinstance(value, ast.Attribute):
        return value.attr.isupper() and value.attr not in _OFF
    number = constant(module, value)
    return isinstance(number, int) and number not in (1, 2)


def _problem(name: str, *, missing: bool) -> OptionProblem:
    return OptionProblem(
        rule=f"lint-{name.replace('_', '-')}",
        severity="blocking",
        # The example of the first release leaves both on.
        confidence="likely",
        en=f"a hand-written block has to switch {name} off"
        if missing
        else f"{name} is on: TensorFlow rewrites the graph before the adapter sees it",
        zh=f"手写的选项块须显式关闭 {name}"
        if missing
        else f"{name} 处于打开状态：TensorFlow 会先于适配器改写图",
        todo_en=f"Set rewrite_options.{name} to RewriterConfig.OFF.",
        todo_zh=f"请将 rewrite_options.{name} 设为 RewriterConfig.OFF。",
    )
