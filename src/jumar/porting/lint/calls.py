"""Finds mistakes in calls of npu_bridge: configurations, loss scale, ranks."""

import ast
from collections.abc import Iterator, Mapping

from jumar.ground.errors import nearest
from jumar.porting.edits import Finding, Text
from jumar.porting.lint.blocks import lint_folder, lint_profiling_options
from jumar.porting.lint.values import bound_once, constant, finding, is_npu
from jumar.porting.npu.option_rules import PART_PARAMETERS, RUN_CONFIG_POSITIONAL
from jumar.porting.npu.option_table import NPU_OPTIONS
from jumar.porting.npu.options import (
    OptionProblem,
    OptionValue,
    check_combinations,
    check_option,
    check_run_config,
    did_you_mean,
)
from jumar.porting.script.expressions import is_none, last_name
from jumar.porting.script.module import Module

CONFIG = "Ascend/tensorflow npu_bridge/estimator/npu/npu_config.py"
LOSS_SCALE = "Ascend/tensorflow npu_bridge/estimator/npu/npu_loss_scale_manager.py"
ESTIMATOR = "Ascend/tensorflow npu_bridge/estimator/npu/npu_estimator.py"
RANKS = "Ascend/tensorflow npu_bridge/estimator/npu/util.py"

_RANK_VARIABLES = ("RANK_SIZE", "RANK_ID", "DEVICE_ID", "ASCEND_DEVICE_ID", "DEVICE_INDEX")
_SINGLE_DEVICE_DEFAULTS = {"RANK_SIZE": "1"}
_FIXED_PARAMETERS = ("loss_scale", "enable_overflow_check")
_EXPONENTIAL_PARAMETERS = (
    "init_loss_scale",
    "incr_every_n_steps",
    "decr_every_n_nan_or_inf",
    "incr_ratio",
    "decr_ratio",
)


def lint_calls(module: Module) -> Iterator[Finding]:
    """Yield the findings about all calls in a script."""
    for node in module.calls:
        if is_npu(module, node.func, "NPURunConfig"):
            yield from _lint_run_config(module, node)
        elif is_npu(module, node.func, "NPUEstimator"):
            yield from _lint_estimator(module, node)
        elif is_npu(module, node.func, "FixedLossScaleManager"):
            yield from _lint_fixed(module, node)
        elif is_npu(module, node.func, "ExponentialUpdateLossScaleManager"):
            yield from _lint_exponential(module, node)
        elif isinstance(node.func, ast.Name) and node.func.id == "int":
            yield from _lint_rank(module, node)
        else:
            for part, parameters in PART_PARAMETERS.items():
                if is_npu(module, node.func, part):
                    yield from _lint_part(module, node, part, parameters)


def arguments_of(call: ast.Call, names: tuple[str, ...]) -> tuple[dict[str, ast.expr], bool]:
    """Return the arguments by name, and whether all are visible (no `*args`, no `**kwargs`)."""
    arguments: dict[str, ast.expr] = {}
    for name, value in zip(names, call.args, strict=False):
        if isinstance(value, ast.Starred):
            break
        arguments[name] = value
    all_seen = not any(isinstance(value, ast.Starred) for value in call.args)
    for keyword in call.keywords:
        if keyword.arg is None:
            all_seen = False
        else:
            arguments[keyword.arg] = keyword.value
    return arguments, all_seen


def _values(module: Module, arguments: Mapping[str, ast.expr]) -> dict[str, OptionValue]:
    """Return the values of the arguments, without those that are None and so count as absent."""
    return {
        name: OptionValue(field=None, value=constant(module, node))
        for name, node in arguments.items()
        if not is_none(node)
    }


def _lint_run_config(module: Module, call: ast.Call) -> Iterator[Finding]:
    arguments, all_seen = arguments_of(call, RUN_CONFIG_POSITIONAL)
    for problem in check_run_config(_values(module, arguments)):
        if all_seen or problem.rule != "lint-option-needs":
            yield finding(module, arguments[problem.key], problem, CONFIG)


def _lint_part(
    module: Module, call: ast.Call, part: str, parameters: Mapping[str, str]
) -> Iterator[Finding]:
    arguments, all_seen = arguments_of(call, tuple(parameters))
    nodes = {parameters[name]: node for name, node in arguments.items() if name in parameters}
    for name, node in arguments.items():
        if name not in parameters:
            near = nearest(name, parameters)
            yield finding(module, node, _unknown_argument(part, name, near), CONFIG)
    values = _values(module, nodes)
    problems = [
        problem
        for key, value in values.items()
        for problem in check_option(NPU_OPTIONS[key], value)
    ]
    problems += check_combinations(values) if all_seen else []
    for problem in problems:
        # The parts have defaults for these, so naming them alone is not a mistake.
        if problem.rule != "lint-option-unused":
            yield finding(module, nodes[problem.key], problem, CONFIG)
    if "dump_path" in nodes:
        yield from lint_folder(module, nodes["dump_path"], values["dump_path"].value)
    if "profiling_options" in nodes:
        yield from lint_profiling_options(
            module, nodes["profiling_options"], nodes["profiling_options"]
        )


def _lint_estimator(module: Module, call: ast.Call) -> Iterator[Finding]:
    arguments, _ = arguments_of(call, ("model_fn", "model_dir", "config"))
    config = arguments.get("config")
    if isinstance(config, ast.Name):
        config = bound_once(module, config)
    if isinstance(config, ast.Call) and module.name_of(config.func) in (
        "tensorflow.estimator.RunConfig",
        "tensorflow.contrib.tpu.RunConfig",
        "npu_bridge.npu_init.npu_run_config_init",
    ):
        problem = OptionProblem(
            rule="lint-estimator-config",
            severity="blocking",
            en="NPUEstimator accepts only an NPURunConfig: ValueError",
            zh="NPUEstimator 只接受 NPURunConfig，否则抛出 ValueError",
            todo_en="Create the config with NPURunConfig, or keep tf.estimator.Estimator.",
            todo_zh="请用 NPURunConfig 构造 config，或保留 tf.estimator.Estimator。",
        )
        yield finding(module, arguments["config"], problem, ESTIMATOR)


def _lint_fixed(module: Module, call: ast.Call) -> Iterator[Finding]:
    arguments, all_seen = arguments_of(call, _FIXED_PARAMETERS)
    yield from _unknown(module, call, arguments, _FIXED_PARAMETERS)
    yield from _missing(module, call, arguments, ("loss_scale",), all_seen=all_seen)
    yield from _below(module, arguments, "loss_scale", 1)


def _lint_exponential(module: Module, call: ast.Call) -> Iterator[Finding]:
    arguments, all_seen = arguments_of(call, _EXPONENTIAL_PARAMETERS)
    yield from _unknown(module, call, arguments, _EXPONENTIAL_PARAMETERS)
    yield from _missing(module, call, arguments, _EXPONENTIAL_PARAMETERS[:2], all_seen=all_seen)
    for name in _EXPONENTIAL_PARAMETERS[:3]:
        yield from _below(module, arguments, name, 1)
    growth = _number(module, arguments.get("incr_ratio"))
    if growth is not None and growth <= 1:
        yield finding(module, arguments["incr_ratio"], _ratio("incr_ratio > 1"), LOSS_SCALE)
    fall = _number(module, arguments.get("decr_ratio"))
    if fall is not None and not 0 < fall < 1:
        yield finding(module, arguments["decr_ratio"], _ratio("0 < decr_ratio < 1"), LOSS_SCALE)


def _number(module: Module, node: ast.expr | None) -> float | None:
    value = constant(module, node) if node is not None else None
    return value if isinstance(value, int | float) else None


def _below(
    module: Module, arguments: Mapping[str, ast.expr], name: str, minimum: int
) -> Iterator[Finding]:
    value = _number(module, arguments.get(name))
    if value is not None and value < minimum:
        problem = OptionProblem(
            rule="lint-loss-scale",
            severity="blocking" if name == "loss_scale" else "accuracy",
            en=f"{name} is {value:g}, below {minimum}",
            zh=f"{name} 为 {value:g}，小于 {minimum}",
            todo_en=f"Use {minimum} or more.",
            todo_zh=f"请给出不小于 {minimum} 的值。",
        )
        yield finding(module, arguments[name], problem, LOSS_SCALE)


def _ratio(condition: str) -> OptionProblem:
    return OptionProblem(
        rule="lint-loss-scale",
        severity="accuracy",
        en=f"the loss scale needs {condition}",
        zh=f"须满足 {condition}",
        todo_en=f"Use a value with {condition}.",
        todo_zh=f"请给出满足 {condition} 的数。",
    )


def _unknown(
    module: Module, call: ast.Call, arguments: Mapping[str, ast.expr], names: tuple[str, ...]
) -> Iterator[Finding]:
    for name, node in arguments.items():
        if name not in names:
            near = nearest(name, names)
            problem = _unknown_argument(last_name(call.func), name, near)
            yield finding(module, node, problem, LOSS_SCALE)


def _missing(
    module: Module,
    call: ast.Call,
    arguments: Mapping[str, ast.expr],
    names: tuple[str, ...],
    *,
    all_seen: bool,
) -> Iterator[Finding]:
    for name in names:
        if all_seen and name not in arguments:
            problem = OptionProblem(
                rule="lint-loss-scale",
                severity="blocking",
                en=f"{last_name(call.func)} needs {name}",
                zh=f"{last_name(call.func)} 缺少参数 {name}",
                todo_en=f"Pass {name}.",
                todo_zh=f"请给出 {name}。",
            )
            yield finding(module, call, problem, LOSS_SCALE)


def _lint_rank(module: Module, call: ast.Call) -> Iterator[Finding]:
    """Report `int(os.getenv("RANK_SIZE"))`, a TypeError unless a launcher sets the variable."""
    variable = _unset_variable(module, call.args[0]) if len(call.args) == 1 else ""
    if not variable or _is_guarded(module, call, variable):
        return
    default = _SINGLE_DEVICE_DEFAULTS.get(variable, "0")
    problem = OptionProblem(
        rule="lint-rank-default",
        severity="blocking",
        en=f"{variable} is only set by launch scripts: without one, int(None) raises TypeError",
        zh=f"未经启动脚本运行时 {variable} 未设置：int(None) 抛出 TypeError",
        todo_en=f'Write int(os.getenv("{variable}", "{default}")).',
        todo_zh=f'请改为 int(os.getenv("{variable}", "{default}"))。',
    )
    yield finding(module, call, problem, RANKS)


def _unset_variable(module: Module, node: ast.expr) -> str:
    """Return the rank variable that an expression reads without a default, if it reads one."""
    if isinstance(node, ast.Subscript) and module.name_of(node.value) in (
        "os.environ",
        "npu_bridge.npu_init.os.environ",
    ):
        name = constant(module, node.slice)
    elif (
        isinstance(node, ast.Call)
        and len(node.args) == 1
        and not node.keywords
        and (module.name_of(node.func) or "").removeprefix("npu_bridge.npu_init.")
        in ("os.getenv", "os.environ.get")
    ):
        name = constant(module, node.args[0])
    else:
        return ""
    return name if isinstance(name, str) and name in _RANK_VARIABLES else ""


def _is_guarded(module: Module, call: ast.Call, variable: str) -> bool:
    """Return whether the script checks for the variable first, or handles its absence."""
    for enclosing in module.scopes.ancestors(call):
        if isinstance(enclosing, ast.Try):
            return True
        if isinstance(enclosing, ast.If | ast.IfExp) and variable in module.source(enclosing.test):
            return True
    return False


def _unknown_argument(function: str, name: str, near: str) -> OptionProblem:
    todo = did_you_mean(near) if near else Text(en="Remove it.", zh="请删除。")
    return OptionProblem(
        rule="lint-unknown-argument",
        severity="blocking",
        en=f"{function} has no parameter '{name}': TypeError",
        zh=f"{function} 没有参数“{name}”：抛出 TypeError",
        todo_en=todo.en,
        todo_zh=todo.zh,
    )
