"""Finds hand-written NpuOptimizer blocks in scripts and reports their mistakes."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any, cast

from jumar.ground.json_text import parse_json
from jumar.porting.edits import Finding
from jumar.porting.lint.values import bound_once, constant, finding, never_both
from jumar.porting.npu.option_table import NPU_OPTIONS
from jumar.porting.npu.options import (
    OptionProblem,
    OptionValue,
    check_combinations,
    check_options,
    check_profiling_options,
)
from jumar.porting.script.expressions import last_name
from jumar.porting.script.module import Module
from jumar.porting.script.scopes import Scope

ADAPTER = "Ascend/tensorflow tf_adapter/util/npu_attrs.cc"
NAME = "NpuOptimizer"

_MAKES_FOLDERS = ("makedirs", "mkdir", "make_dir", "mkdtemp", "temporarydirectory", "os.system(")
"""Text in scripts that create folders, possibly with `mkdir` in a shell command."""


@dataclass
class Setting:
    """An assignment to an entry of parameter_map."""

    node: ast.stmt
    key: str
    field: str
    value: ast.expr


@dataclass
class Block:
    """The settings of one optimizer in a session config.

    `added` is the call that created the optimizer, `name` the node with its name; `open` is set if
    some keys are only known at run time.
    """

    settings: list[Setting] = field(default_factory=lambda: [])
    added: ast.Call | None = None
    name: ast.expr | None = None
    open: bool = False


def lint_blocks(module: Module, blocks: list[Block]) -> Iterator[Finding]:
    """Yield the findings about the blocks of a script, as returned by `find_blocks`."""
    for block in blocks:
        name = constant(module, block.name) if block.name is not None else None
        if isinstance(name, str) and name != NAME:
            # TensorRTOptimizer is another optimizer; NPUOptimizer and NpuOptimiser are typos.
            near = get_close_matches(name.lower(), [NAME.lower()], cutoff=0.8)
            if near and block.name is not None:
                yield finding(module, block.name, _misspelt(name), ADAPTER)
                yield from _lint_options(module, block)
            continue
        if block.name is None and block.added is not None and _is_npu(block):
            yield finding(module, block.added, _NAMELESS, ADAPTER)
        if block.name is not None or _is_npu(block):
            yield from _lint_options(module, block)


def _is_npu(block: Block) -> bool:
    return any(setting.key in NPU_OPTIONS for setting in block.settings)


def find_blocks(module: Module) -> list[Block]:
    """Return the blocks of a script, in source order."""
    blocks: dict[tuple[object, ...], Block] = {}
    optimizers = _optimizer_variables(module)
    nodes = [node for node in module.scopes.nodes if isinstance(node, ast.Assign | ast.Call)]
    nodes.sort(key=lambda node: (node.lineno, node.col_offset))
    for node in nodes:
        if isinstance(node, ast.Call):
            if _adds_optimizer(node):
                block = blocks.setdefault(_created_by(module, node), Block())
                block.added = node
                for keyword in node.keywords:
                    block.name = keyword.value if keyword.arg == "name" else block.name
            continue
        for target in node.targets:
            _add_assignment(module, blocks, optimizers, node, target)
    return list(blocks.values())


def _add_assignment(
    module: Module,
    blocks: dict[tuple[object, ...], Block],
    optimizers: set[tuple[object, ...]],
    node: ast.Assign,
    target: ast.expr,
) -> None:
    """Add an assignment to its block, if it belongs to one."""
    if not isinstance(target, ast.Attribute):
        return
    if target.attr == "name" and _variable(module, target.value) in optimizers:
        blocks.setdefault(_identity(module, target.value), Block()).name = node.value
        return
    if not isinstance(target.value, ast.Subscript):
        return
    mapping = target.value.value
    if isinstance(mapping, ast.Name):
        mapping = bound_once(module, mapping) or mapping
    if not (isinstance(mapping, ast.Attribute) and mapping.attr == "parameter_map"):
        return
    block = blocks.setdefault(_identity(module, mapping.value), Block())
    key = constant(module, target.value.slice)
    if isinstance(key, str):
        block.settings.append(Setting(node, key, target.attr, node.value))
    else:
        block.open = True


def _adds_optimizer(call: ast.Call) -> bool:
    function = call.func
    return (
        isinstance(function, ast.Attribute)
        and function.attr == "add"
        and last_name(function.value) == "custom_optimizers"
    )


def _optimizer_variables(module: Module) -> set[tuple[object, ...]]:
    """Return the variables and attributes assigned an optimizer of a session config."""
    return {
        _variable(module, target)
        for node in module.scopes.nodes
        if isinstance(node, ast.Assign)
        and isinstance(node.value, ast.Call)
        and _adds_optimizer(node.value)
        for target in node.targets
    }


def _variable(module: Module, node: ast.expr) -> tuple[object, ...]:
    """Identify a variable or attribute, regardless of its value."""
    if isinstance(node, ast.Name):
        scope, _ = module.scopes.lookup(node)
        return ("name", id(scope), node.id)
    owner: Scope | ast.AST = module.class_of(node) or module.scopes.scope_of(node)
    return ("expression", id(owner), ast.unparse(node))


def _created_by(module: Module, call: ast.Call) -> tuple[object, ...]:
    """Identify the block that a call of `add` creates: by its target variable, if any."""
    parent = module.parent(call)
    if isinstance(parent, ast.Assign) and len(parent.targets) == 1:
        return _identity(module, parent.targets[0])
    return ("call", id(call))


def _identity(module: Module, node: ast.expr) -> tuple[object, ...]:
    """Identify a block by its variable and the latest assignment."""
    variable = _variable(module, node)
    if not isinstance(node, ast.Name):
        return variable
    position = (node.lineno, node.col_offset)
    bound_at = sorted(
        (getattr(binding.node, "lineno", 0), getattr(binding.node, "col_offset", 0))
        for binding in module.bindings(node)
    )
    earlier = [start for start in bound_at if start <= position]
    return (*variable, earlier[-1] if earlier else None)


def _lint_options(module: Module, block: Block) -> Iterator[Finding]:
    last: dict[str, Setting] = {}
    for setting in block.settings:
        value = OptionValue(field=setting.field, value=constant(module, setting.value))
        last[setting.key] = setting
        for problem in check_options({setting.key: value}):
            if problem.rule not in _COMBINATION_RULES or problem.excluded == setting.key:
                yield finding(module, setting.node, problem, ADAPTER)
        if setting.key == "profiling_options":
            yield from lint_profiling_options(module, setting.node, setting.value)
        if setting.key == "dump_path":
            yield from lint_folder(module, setting.node, constant(module, setting.value))
    values = {key: _agreed(module, block, key) for key in last}
    for problem in check_combinations(values):
        needs_more = not problem.excluded
        if needs_more and block.open:
            continue
        if problem.excluded and never_both(
            module, last[problem.key].node, last[problem.excluded].node
        ):
            continue
        yield finding(module, last[problem.key].node, problem, ADAPTER)


_COMBINATION_RULES = ("lint-option-conflict", "lint-option-needs", "lint-option-unused")


def _agreed(module: Module, block: Block, key: str) -> OptionValue:
    """Return the value of an option, which is unknown if its assignments disagree."""
    settings = [setting for setting in block.settings if setting.key == key]
    values = [constant(module, setting.value) for setting in settings]
    agree = all(value == values[0] for value in values)
    return OptionValue(field=settings[-1].field, value=values[0] if agree else None)


def lint_profiling_options(module: Module, node: ast.AST, value: ast.expr) -> Iterator[Finding]:
    """Yield the findings about the JSON text of profiling_options."""
    content = constant(module, value)
    text = content.decode("utf-8", "replace") if isinstance(content, bytes) else content
    if not isinstance(text, str):
        return
    try:
        settings = parse_json(text)
    except ValueError:
        settings = None
    if not isinstance(settings, dict):
        yield finding(module, node, _NO_JSON, ADAPTER)
        return
    options = cast(dict[str, Any], settings)
    for problem in check_profiling_options(options):
        yield finding(module, node, problem, ADAPTER)
    yield from lint_folder(module, node, options.get("output"))


def lint_folder(module: Module, node: ast.AST, path: object) -> Iterator[Finding]:
    """Yield a finding about a folder that must exist, if the script creates no folder at all."""
    folder = path.decode("utf-8", "replace") if isinstance(path, bytes) else path
    if not isinstance(folder, str) or folder.strip("./") == "":
        return
    script = module.text.lower()
    if not any(text in script for text in _MAKES_FOLDERS):
        yield finding(module, node, _no_folder(folder), ADAPTER)


def _misspelt(name: str) -> OptionProblem:
    return OptionProblem(
        rule="lint-optimizer-name",
        severity="blocking",
        en=f"the adapter looks for an optimizer called '{NAME}'; '{name}' is ignored",
        zh=f"适配器只识别名为“{NAME}”的优化器，“{name}”不会被识别",
        todo_en=f'Write "{NAME}".',
        todo_zh=f'请改为 "{NAME}"。',
    )


_NAMELESS = OptionProblem(
    rule="lint-optimizer-name",
    severity="blocking",
    en="this optimizer has options but no name, so the adapter does not see it",
    zh="该优化器设置了选项却没有 name，适配器不会识别",
    todo_en=f'Set its name to "{NAME}".',
    todo_zh=f'请将其 name 设为 "{NAME}"。',
)
_NO_JSON = OptionProblem(
    rule="lint-profiling-options",
    severity="blocking",
    en="profiling_options is not a JSON object",
    zh="profiling_options 不是 JSON 对象",
    todo_en='Write \'{"output": "...", "training_trace": "on", "task_trace": "on"}\'.',
    todo_zh='请写成 \'{"output": "...", "training_trace": "on", "task_trace": "on"}\'。',
)


def _no_folder(path: str) -> OptionProblem:
    return OptionProblem(
        rule="lint-missing-folder",
        severity="look",
        confidence="unsure",
        en=f"the session fails if '{path}' does not exist, and this script creates no folder",
        zh=f"目录“{path}”不存在时会话会报错，而本脚本没有创建目录",
        todo_en="Create it before the session: os.makedirs(path, exist_ok=True).",
        todo_zh="请在创建会话前执行 os.makedirs(path, exist_ok=True)。",
    )
