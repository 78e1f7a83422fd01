"""Estimator becomes NPUEstimator, or keeps its class and gets a configuration for the NPU."""

import ast

from jumar.porting.npu.session_options import run_config_imports
from jumar.porting.rewriting import Changes, Leave, Remark, Replacement, Text, View, rule
from jumar.porting.rewriting.editing import add_argument, argument, insert_before, is_open, replace
from jumar.porting.rewriting.prelude import RUN_CONFIG as RUN_CONFIG_FUNCTIONS
from jumar.porting.rules.tensorflow.estimator_plan import ESTIMATOR, estimator_plan, minimal_config
from jumar.porting.rules.tensorflow.run_config import default_npu_run_config
from jumar.porting.script.expressions import is_omitted

_JOB = 'os.environ.setdefault("JOB_ID", "10086")'
_FULL = Text(
    en="NPUEstimator adds the NPU's graph optimizer, the broadcast between devices and the loop on "
    "the device; it requires the environment variable JOB_ID, with any value",
    zh="NPUEstimator 会加入 NPU 图优化器、多卡间的变量广播以及设备侧循环；"
    "环境变量 JOB_ID 必须存在，取值任意",
)
_MINIMAL = Text(
    en="this estimator's configuration is created outside this module, or is to stay: "
    "npu_run_config_init adds NpuOptimizer to any RunConfig",
    zh="该 Estimator 的配置并非在本模块中构造，或要求最小改动："
    "npu_run_config_init 会在传入的 RunConfig 中加入 NpuOptimizer",
)
_DONE = Text(en="it already has the NPU's configuration", zh="已带有 NPU 配置")
_STARRED = Remark(
    en="arguments are passed with * or **: it is unclear whether they contain a configuration",
    zh="参数由 * 或 ** 传入，此处无法判断其中是否含有运行配置",
    todo_en="pass config=npu_run_config_init(run_config=...) where the arguments are created",
    todo_zh="在构造这些参数的位置传入 config=npu_run_config_init(run_config=...)",
    confidence="likely",
)
_LOOP = Remark(
    en="the session options request {steps} steps per run, but only NPUEstimator turns that into a "
    "loop on the device",
    zh="会话选项要求每次运行 {steps} 步，但只有 NPUEstimator 会据此在设备侧构造循环，"
    "该 Estimator 不会",
    todo_en="port again without --iterations-per-loop, or use NPUEstimator with an NPURunConfig "
    "that is created in the same module",
    todo_zh="去掉 --iterations-per-loop 重新移植，或在同一模块中改用 NPURunConfig 与 NPUEstimator",
    severity="blocking",
)


@rule(
    "estimator",
    title=Text(en="Estimator becomes NPUEstimator", zh="Estimator 替换为 NPUEstimator"),
    source="npu_estimator.py and npu_init.py of Ascend/tensorflow",
    calls=(ESTIMATOR,),
)
def estimator(call: ast.Call, view: View) -> Changes:
    """Use NPUEstimator if the configuration can be an NPURunConfig."""
    if call in estimator_plan(view).estimators:
        yield view.rewrite(
            call,
            *_converted(call, view),
            reason=_FULL,
            imports=("NPUEstimator", *job_imports(call, view), *config_imports(call, 2, view)),
            functions=(RUN_CONFIG_FUNCTIONS,),
        )
        return
    yield from with_minimal_config(call, 2, view)


def with_minimal_config(call: ast.Call, position: int, view: View) -> Changes:
    """The changes of an estimator that keeps its class."""
    if is_open(call) and argument(call, "config", position) is None:
        yield view.notice(call, _STARRED)
        return
    change = minimal_config(call, position, view)
    if change is None:
        yield Leave(node=call, reason=_DONE)
        return
    yield from loop_notice(call, view)
    replacements, imports, functions = change
    yield view.rewrite(call, *replacements, reason=_MINIMAL, imports=imports, functions=functions)


def loop_notice(call: ast.Call, view: View) -> Changes:
    """Report that an estimator that keeps its class ignores the steps per run."""
    steps = view.options.iterations_per_loop
    if steps > 1:
        yield view.notice(call, _LOOP.filled(steps=steps))


def job_line(call: ast.Call, view: View) -> tuple[Replacement, ...]:
    """The line that sets JOB_ID, before the first estimator in a function."""
    if not job_imports(call, view):
        return ()
    statement = view.module.statement(call)
    if len(_of_same_function(call, view)) > 1:
        # The others may be in another branch: insert the line before the whole `if`.
        statement = _in_body(statement, view)
    return (insert_before(view.module, statement, _JOB),)


def job_imports(call: ast.Call, view: View) -> tuple[str, ...]:
    """The import of `os`, if JOB_ID is set before this call."""
    if '"JOB_ID"' in view.module.text or "'JOB_ID'" in view.module.text:
        return ()
    first = min(view.module.span(estimator)[0] for estimator in _of_same_function(call, view))
    return ("os:",) if view.module.span(call)[0] == first else ()


def _of_same_function(call: ast.Call, view: View) -> list[ast.Call]:
    """The estimators of one function, or of the module's top level."""
    function = view.module.function(call)
    return [
        estimator
        for estimator in estimator_plan(view).estimators
        if view.module.function(estimator) is function
    ]


def _in_body(statement: ast.stmt, view: View) -> ast.stmt:
    """The top-level statement of a function or module that contains a statement."""
    current = statement
    for enclosing in view.module.scopes.ancestors(statement):
        if isinstance(
            enclosing, ast.FunctionDef | ast.AsyncFunctionDef | ast.Module | ast.ClassDef
        ):
            break
        if isinstance(enclosing, ast.stmt):
            current = enclosing
    return current


def config_imports(call: ast.Call, position: int, view: View) -> tuple[str, ...]:
    """The imports that an added configuration needs."""
    if _has_config(call, position):
        return ()
    return ("NPURunConfig", *run_config_imports(view.options))


def added_config(call: ast.Call, position: int, view: View) -> tuple[Replacement, ...]:
    """The NPURunConfig that is added to an estimator without a configuration."""
    if _has_config(call, position):
        return ()
    config = argument(call, "config", position)
    if config is not None:
        return (replace(view.module, config, default_npu_run_config(view)),)
    return (add_argument(view.module, call, f"config={default_npu_run_config(view)}"),)


def _converted(call: ast.Call, view: View) -> list[Replacement]:
    changes = [
        replace(view.module, call.func, view.npu("NPUEstimator")),
        *job_line(call, view),
        *added_config(call, 2, view),
    ]
    if len(call.args) > 4:
        # NPUEstimator has another parameter in the fifth position.
        start, _ = view.module.span(call.args[4])
        changes.append(Replacement(start=start, end=start, text="warm_start_from="))
    return changes


def _has_config(call: ast.Call, position: int) -> bool:
    return not is_omitted(argument(call, "config", position))
