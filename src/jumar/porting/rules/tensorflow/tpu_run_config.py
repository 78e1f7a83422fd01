"""The TPU's RunConfig gets the session options of the port."""

import ast
from collections.abc import Iterator

from jumar.porting.edits import Text
from jumar.porting.rewriting.changes import Change
from jumar.porting.rewriting.editing import argument, literal
from jumar.porting.rewriting.registry import rule
from jumar.porting.rewriting.view import View
from jumar.porting.rules.tensorflow.estimator_plan import (
    TPU_RUN_CONFIG,
    session_config_of,
)
from jumar.porting.script.nodes import walk

_LOOP = Text(
    en="iterations_per_loop of TPUConfig has no effect without a TPU: each session.run is one step",
    zh="TPUConfig 的 iterations_per_loop 在非 TPU 上无效：每次 session.run 只执行一步",
)
_LOOP_ADVICE = Text(
    en="for a loop on the device, use NPUEstimator with NPURunConfig(iterations_per_loop=...); "
    "you then have to pass params['batch_size'], eval_metrics and scaffold_fn yourself",
    zh="如需设备侧循环，请改用 NPUEstimator 与 NPURunConfig(iterations_per_loop=...)；"
    "此时 params['batch_size']、eval_metrics 与 scaffold_fn 需自行传递",
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
def tpu_run_config(call: ast.Call, view: View) -> Iterator[Change]:
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
                yield view.notice(node, reason=_LOOP, todo=_LOOP_ADVICE, severity="speed")
    if not view.options.has_session_options:
        return
    change = session_config_of(call, -1, view)
    if change is not None:
        _, imports, functions = view.session_config()
        yield view.rewrite(call, *change, reason=_SESSION, imports=imports, functions=functions)
