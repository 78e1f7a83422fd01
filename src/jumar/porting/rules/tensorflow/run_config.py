"""RunConfig becomes NPURunConfig if the estimator that uses it becomes NPUEstimator."""

import ast

from jumar.porting.npu.option_rules import RUN_CONFIG_MISSING
from jumar.porting.npu.session_options import run_config_arguments, run_config_imports
from jumar.porting.rewriting import Changes, Leave, Remark, Replacement, Text, View, rule
from jumar.porting.rewriting.editing import add_argument, argument, remove_arguments, replace, slots
from jumar.porting.rewriting.prelude import RUN_CONFIG as RUN_CONFIG_FUNCTIONS
from jumar.porting.rules.tensorflow.estimator_plan import (
    RUN_CONFIG,
    estimator_plan,
    session_config_of,
)
from jumar.porting.script.expressions import is_none

_PARAMETERS = (
    "model_dir",
    "tf_random_seed",
    "save_summary_steps",
    "save_checkpoints_steps",
    "save_checkpoints_secs",
    "session_config",
    "keep_checkpoint_max",
    "keep_checkpoint_every_n_hours",
    "log_step_count_steps",
    "train_distribute",
    "device_fn",
    "protocol",
    "eval_distribute",
    "experimental_distribute",
    "experimental_max_worker_delay_secs",
    "session_creation_timeout_secs",
)

_RUN_CONFIG = Text(
    en="NPUEstimator gets its options from an NPURunConfig; defaults of RunConfig that differ are "
    "set explicitly",
    zh="NPUEstimator 通过 NPURunConfig 获取选项；RunConfig 与 NPURunConfig 不同的默认值已显式写出",
)
_SESSION = Text(
    en="this RunConfig is used by estimators that remain TensorFlow's: the port's options are "
    "added to its session's configuration",
    zh="该 RunConfig 用于仍为 TensorFlow 原生的 Estimator：移植选项写入其会话配置",
)
_KEPT = Text(
    en="this RunConfig is used by an estimator that remains TensorFlow's, which passes it to "
    "npu_run_config_init",
    zh="该 RunConfig 用于仍为 TensorFlow 原生的 Estimator，由后者传给 npu_run_config_init",
)
_DROPPED = Remark(
    en="NPURunConfig has no parameter {name}: the argument is removed",
    zh="NPURunConfig 不支持参数 {name}，已删除",
    todo_en="check that the script does not depend on it",
    todo_zh="请确认脚本不依赖该参数",
)
_DROPPED_ADVICE = {
    "device_fn": Text(
        en="nothing to do if it places operations on GPUs or parameter servers: it does not place "
        "the NPU's graph",
        zh="若只用于 GPU 或参数服务器放置则无需处理：NPU 图不由它放置",
    ),
    "experimental_distribute": Text(
        en="pass the strategy as train_distribute= and eval_distribute=",
        zh="改用 train_distribute= 与 eval_distribute= 传入策略",
    ),
}
_NEVER = Remark(
    en="RunConfig saves no checkpoints if both are None; NPURunConfig saves one every 100 steps",
    zh="两者均为 None 时 RunConfig 不保存 checkpoint，而 NPURunConfig 每 100 步保存一次",
    todo_en="set save_checkpoints_steps to more than the number of training steps",
    todo_zh="将 save_checkpoints_steps 设为大于训练总步数的值",
    severity="speed",
)
_SUMMARIES = Remark(
    en="summaries are written every 100 steps, as with RunConfig: each one runs host operations "
    "outside the NPU's graph",
    zh="与 RunConfig 相同，每 100 步写一次 summary：每次都会在 NPU 图之外执行主机侧算子",
    todo_en="pass save_summary_steps=0 if they are not used",
    todo_zh="若无人查看，请设置 save_summary_steps=0",
    severity="speed",
)


@rule(
    "run-config",
    title=Text(en="RunConfig becomes NPURunConfig", zh="RunConfig 替换为 NPURunConfig"),
    source="npu_config.py of Ascend/tensorflow; run_config.py of TensorFlow 1.15",
    calls=(RUN_CONFIG,),
)
def run_config(call: ast.Call, view: View) -> Changes:
    """Convert a RunConfig to an NPURunConfig, or add the port's options to its session."""
    is_run_config = view.module.name_of(call.func) == RUN_CONFIG
    if is_run_config and call in estimator_plan(view).configs:
        yield from _converted(call, view)
        return
    if view.options.has_session_options:
        change = session_config_of(call, 5, view)
        if change is not None:
            _, imports, functions = view.session_config()
            yield view.rewrite(call, *change, reason=_SESSION, imports=imports, functions=functions)
            return
    yield Leave(node=call, reason=_KEPT)


def default_npu_run_config(view: View) -> str:
    """An NPURunConfig with the defaults of TensorFlow's estimators without a configuration."""
    options = npu_run_config_arguments(None, view)
    arguments = ["save_summary_steps=100", "save_checkpoints_secs=600", *options]
    return f"{view.npu('NPURunConfig')}({', '.join(arguments)})"


def _converted(call: ast.Call, view: View) -> Changes:
    changes: list[Replacement] = [replace(view.module, call.func, view.npu("NPURunConfig"))]
    dropped_arguments: dict[str, ast.expr | ast.keyword] = {}
    for number, slot in enumerate(slots(view.module, call)):
        name = (slot.node.arg or "") if isinstance(slot.node, ast.keyword) else _PARAMETERS[number]
        if name in RUN_CONFIG_MISSING:
            dropped_arguments[name] = slot.node
        elif not isinstance(slot.node, ast.keyword):
            changes.append(Replacement(start=slot.start, end=slot.start, text=f"{name}="))
    removals = remove_arguments(view.module, call, set(dropped_arguments.values()))
    new_arguments = [*_defaults(call), *npu_run_config_arguments(call, view)]
    if new_arguments:
        without = frozenset(dropped_arguments.values())
        changes.append(add_argument(view.module, call, *new_arguments, without=without))
    yield view.rewrite(
        call,
        *changes,
        *removals,
        reason=_RUN_CONFIG,
        imports=("NPURunConfig", *run_config_imports(view.options)),
        functions=(RUN_CONFIG_FUNCTIONS,),
    )
    yield from _notices(call, dropped_arguments, view)


def _defaults(call: ast.Call) -> list[str]:
    """Arguments for the defaults in which NPURunConfig differs from RunConfig."""
    defaults: list[str] = []
    if argument(call, "save_summary_steps", 2) is None:
        defaults.append("save_summary_steps=100")
    steps = argument(call, "save_checkpoints_steps", 3)
    if steps is None and argument(call, "save_checkpoints_secs", 4) is None:
        defaults.append("save_checkpoints_secs=600")
    return defaults


def npu_run_config_arguments(call: ast.Call | None, view: View) -> list[str]:
    """The options of the port that a call does not set."""
    present = {passed.arg for passed in call.keywords} if call else set[str | None]()
    if "precision_mode_v2" in present:
        # The two are mutually exclusive.
        present.add("precision_mode")
    texts: list[str] = []
    for name, value in run_config_arguments(view.options):
        for import_name in run_config_imports(view.options):
            value = value.replace(f"{import_name}(", f"{view.npu(import_name)}(")
        if name not in present:
            texts.append(f"{name}={value}")
    return texts


def _notices(
    call: ast.Call, dropped_arguments: "dict[str, ast.expr | ast.keyword]", view: View
) -> Changes:
    for name, node in dropped_arguments.items():
        yield view.notice(
            node.value if isinstance(node, ast.keyword) else node,
            _DROPPED.filled(name=name),
            todo=_DROPPED_ADVICE.get(name),
        )
    save_arguments = [
        argument(call, "save_checkpoints_steps", 3),
        argument(call, "save_checkpoints_secs", 4),
    ]
    present_arguments = [value for value in save_arguments if value is not None]
    if present_arguments and all(is_none(value) for value in present_arguments):
        yield view.notice(call, _NEVER)
    if argument(call, "save_summary_steps", 2) is None:
        yield view.notice(call, _SUMMARIES)
