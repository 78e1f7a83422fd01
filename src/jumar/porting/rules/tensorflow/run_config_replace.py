"""A RunConfig whose session configuration is replaced keeps the options of the port."""

import ast

from jumar.porting.rewriting import Changes, Leave, Text, View, rule
from jumar.porting.rewriting.editing import keyword
from jumar.porting.rules.tensorflow.estimator_plan import is_npu_run_config, session_config_of

_REASON = Text(
    en="replace() overrides the session configuration that has the port's options: they are added "
    "to this one as well",
    zh="replace() 会用另一份会话配置覆盖带有移植选项的配置：新的配置同样加入这些选项",
)
_KEPT = Text(
    en="NPURunConfig keeps the port's options separate from the session's configuration",
    zh="NPURunConfig 在会话配置之外保存移植选项",
)


@rule(
    "run-config-replace",
    title=Text(
        en="A replaced session configuration gets the options of the port",
        zh="replace() 中的会话配置加入移植选项",
    ),
    source="run_config.py of TensorFlow 1.15; npu_config.py of Ascend/tensorflow",
    nodes=(ast.Call,),
)
def run_config_replace(call: ast.Call, view: View) -> Changes:
    """Add the options to the `session_config` of `run_config.replace(...)`."""
    if not view.options.has_session_options or not isinstance(call.func, ast.Attribute):
        return
    if call.func.attr != "replace" or keyword(call, "session_config") is None:
        return
    if view.kinds.of(call.func.value) != "RunConfig":
        return
    if is_npu_run_config(call.func.value, view):
        yield Leave(node=call, reason=_KEPT)
        return
    change = session_config_of(call, -1, view)
    if change is not None:
        _, imports, functions = view.session_config()
        yield view.rewrite(
            call,
            *change,
            reason=_REASON,
            confidence="likely",
            imports=imports,
            functions=functions,
        )
