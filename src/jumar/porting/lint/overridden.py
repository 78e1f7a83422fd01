"""Finds options of a session block that NPUEstimator overwrites.

NPUEstimator appends another block to the session config of NPURunConfig; if both contain a key, the
later block wins.
"""

import ast
from collections.abc import Iterator, Mapping

from jumar.porting.edits import Finding
from jumar.porting.lint.blocks import Block
from jumar.porting.lint.calls import arguments_of
from jumar.porting.lint.values import constant, finding, is_npu
from jumar.porting.npu.option_rules import (
    ALWAYS_WRITTEN,
    RUN_CONFIG_PARAMETERS,
    RUN_CONFIG_POSITIONAL,
)
from jumar.porting.npu.options import OptionProblem, Plain
from jumar.porting.script.module import Module

SOURCE = "Ascend/tensorflow npu_bridge/estimator/npu/npu_estimator.py"


def lint_overridden(module: Module, blocks: list[Block]) -> Iterator[Finding]:
    """Yield settings whose block is passed to an NPURunConfig that contradicts them."""
    for call in module.calls:
        if not is_npu(module, call.func, "NPURunConfig"):
            continue
        arguments, all_seen = arguments_of(call, RUN_CONFIG_POSITIONAL)
        config = arguments.get("session_config")
        if not all_seen or not isinstance(config, ast.Name):
            continue
        variable = _single_binding(module, config)
        for block in blocks:
            if variable is not None and _config_of(module, block) == variable:
                yield from _compare(module, block, arguments)


def _single_binding(module: Module, name: ast.Name) -> tuple[int, str] | None:
    """Return the scope and name of a variable, if it is bound exactly once."""
    scope, bindings = module.scopes.lookup(name)
    return (id(scope), name.id) if scope is not None and len(bindings) == 1 else None


def _config_of(module: Module, block: Block) -> tuple[int, str] | None:
    """Return the variable of the config to which a block was added."""
    node: ast.expr | None = block.added
    while isinstance(node, ast.Call | ast.Attribute):
        node = node.func if isinstance(node, ast.Call) else node.value
    return _single_binding(module, node) if isinstance(node, ast.Name) else None


def _compare(module: Module, block: Block, arguments: Mapping[str, ast.expr]) -> Iterator[Finding]:
    for setting in block.settings:
        value = constant(module, setting.value)
        if value is None:
            continue
        if setting.key in ALWAYS_WRITTEN:
            final_value = _value_written(module, setting.key, arguments)
            if final_value is not None and final_value != value:
                yield finding(module, setting.node, _overwritten(setting.key, final_value), SOURCE)
        elif setting.key == "precision_mode" and arguments.keys().isdisjoint(
            ("precision_mode", "precision_mode_v2")
        ):
            yield finding(module, setting.node, _DEFAULT_MODE, SOURCE)


def _value_written(module: Module, key: str, arguments: Mapping[str, ast.expr]) -> Plain | None:
    """Return the value that NPUEstimator writes for a key; None if only known at run time."""
    if key in ("enable_dump", "enable_dump_debug"):
        return None if "dump_config" in arguments else False
    if key in arguments:
        return constant(module, arguments[key])
    default = RUN_CONFIG_PARAMETERS[key]
    return default if isinstance(default, bool | int | str) else None


def _overwritten(key: str, final_value: Plain) -> OptionProblem:
    argument = "dump_config" if key.startswith("enable_dump") else key
    return OptionProblem(
        key=key,
        rule="lint-overridden",
        severity="accuracy",
        confidence="likely",
        en=f"NPUEstimator later writes {key}={final_value}: the value here has no effect",
        zh=f"NPUEstimator 之后会写入 {key}={final_value}，此处的值不起作用",
        todo_en=f"Pass {argument} to NPURunConfig instead.",
        todo_zh=f"请改为在 NPURunConfig 中设置 {argument}。",
    )


_DEFAULT_MODE = OptionProblem(
    key="precision_mode",
    rule="lint-overridden",
    severity="accuracy",
    confidence="likely",
    en="NPURunConfig has no precision_mode: in old releases, NPUEstimator then overwrites this "
    "one with allow_fp32_to_fp16",
    zh="NPURunConfig 未设置 precision_mode：旧版 NPUEstimator 会写入 allow_fp32_to_fp16 "
    "并覆盖此处的值",
    todo_en="Pass precision_mode to NPURunConfig.",
    todo_zh="请在 NPURunConfig 中设置 precision_mode。",
)
