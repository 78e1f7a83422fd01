"""The TPU's RunConfig gets the session options of the port."""

import ast

from jumar.porting.rewriting import Changes, Remark, Text, View, rule
from jumar.porting.rewriting.editing import argument, literal
from jumar.porting.rules.tensorflow.estimator_plan import TPU_RUN_CONFIG, session_config_of
from jumar.porting.script.nodes import walk

_LOOP = Remark(
    en="iterations_per_loop of TPUConfig has no effect without a TPU: each session.run is one step",
    zh="TPUConfig 的 iterations_per_loop 在非 TPU 上无效：每次 session.run 只执行一步",
    todo_en="for a loop on the device, use NPUEstimator with "
    "NPURunConfig(iterations_per_loop=...); you then have to pass params['batch_size'], "
    "eval_metrics and scaffold_fn yourself",
    todo_zh="如需设备侧循环，请改用 NPUEstimator 与 NPURunConfig(iterations_per_loop=...)；"
    "此时 params['batch_size']、eval_metrics 与 scaffold_fn 需自行传递",
    severity="speed",
)
_SESSION = Text(
    en="the port's options are added to the session's configuration in this RunConfig",
    zh="移植选项写入该 RunConfig 的会话配置",
)


@rule(
    "tpu-run-config",
    title=Text(
        en="The TPU's RunConfig gets the options of the port",
        zh="TPU RunConfig 携带移植选项",
    ),
    source="tpu_config.py of TensorFlow 1.15",
    calls=(TPU_RUN_CONFIG,),
)
def tpu_run_config(call: ast.Call, view: View) -> Changes:
    """Add the session's options; report a loop that has no effect on the NPU."""
    for node in walk(call):
        if isinstance(node, ast.Call) and node is not call:
            loops = argument(node, "iterations_per_loop", 0)
            name = view.module.name_of(node.func) or ""
            if (
                name == "tensorflow.contrib.tpu.TPUConfig"
                and loops is not None
                and literal(loops) != 1
            ):
                yield view.notice(node, _LOOP)
    if not view.options.has_session_options:
        return
    change = session_config_of(call, -1, view)
    if change is not None:
        _, imports, functions = view.session_config()
        yield view.rewrite(call, *change, reason=_SESSION, imports=imports, functions=functions)
