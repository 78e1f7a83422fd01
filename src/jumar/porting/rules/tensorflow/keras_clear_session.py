"""A new Keras session is configured for the NPU as well."""

import ast

from jumar.porting.rewriting import Changes, Text, View, rule
from jumar.porting.rewriting.editing import insert_after, replace

_CLEARED = Text(
    en="clear_session discards the session with NpuOptimizer: npu_clear_session creates a new one",
    zh="clear_session 会丢弃带 NpuOptimizer 的会话：npu_clear_session 会重新创建",
)
_STANDALONE = ("keras.backend.clear_session", "keras.backend.tensorflow_backend.clear_session")


@rule(
    "keras-clear-session",
    title=Text(
        en="clear_session creates a new session for the NPU",
        zh="clear_session 后重新创建 NPU 会话",
    ),
    source="npu_init.py of Ascend/tensorflow",
    calls=("tensorflow.keras.backend.clear_session", *_STANDALONE),
)
def keras_clear_session(call: ast.Call, view: View) -> Changes:
    """Replace TensorFlow's function; after that of stand-alone Keras, set a session again."""
    statement = view.module.statement(call)
    if call.args or call.keywords or not isinstance(statement, ast.Expr):
        return
    function, imports, functions = view.session_config()
    config = f"config={function}()" if functions else ""
    imports = imports if functions else ()
    if view.kinds.called(call) in _STANDALONE:
        block = view.module.block(statement)
        following = block[block.index(statement) + 1 :][:1]
        if any("set_session" in view.module.source(line) for line in following):
            return
        if not isinstance(call.func, ast.Attribute):
            return
        setter = f"{view.module.source(call.func.value)}.set_session"
        new_session = f"{view.npu('set_keras_session_npu_config')}({config})"
        change = insert_after(view.module, statement, f"{setter}({new_session})")
        imports = ("set_keras_session_npu_config", *imports)
    else:
        text = f"{view.npu('npu_clear_session')}({config})"
        change = replace(view.module, call, text)
        imports = ("npu_clear_session", *imports)
    yield view.rewrite(call, change, reason=_CLEARED, imports=imports, functions=functions)
