"""Keras trains in a session for the NPU."""

import ast

from jumar.porting.rewriting import NPU_INIT, Changes, Leave, Remark, Replacement, Text, View, rule
from jumar.porting.rewriting.editing import insert_after, insert_before
from jumar.porting.rules.tensorflow.entry_points import (
    EXITS,
    Entry,
    entry_point,
    first_call,
    top_level,
)
from jumar.porting.rules.tensorflow.keras_runs import reaches_keras, runs_keras, uses_keras
from jumar.porting.script.nodes import walk

_BACKENDS = (
    "tensorflow.keras.backend",
    "keras.backend",
    "keras.backend.tensorflow_backend",
)
_SET_SESSIONS = tuple(f"{backend}.set_session" for backend in _BACKENDS)
_NAME = "npu_keras_session"
_ENTRY = Text(
    en="Keras runs in a session with NpuOptimizer, which is set before the model is built; closing "
    "it frees the device's memory",
    zh="Keras 使用建模之前设置的会话：该会话带有 NpuOptimizer；关闭会话后才会释放设备资源",
)
_SET = Text(
    en="the script sets its own Keras session, whose configuration is the NPU's",
    zh="脚本自行为 Keras 设置会话，其配置已为 NPU 配置",
)
_NO_ENTRY = Remark(
    en="a Keras model runs here, but the module has no main part in which its session could be set",
    zh="此处运行 Keras 模型，但模块没有主程序部分可设置会话",
    todo_en="call set_keras_session_npu_config() at the start of the script, before the model is "
    "built, and close_session() on its result at the end",
    todo_zh="在脚本开头、建模之前调用 set_keras_session_npu_config()，"
    "结束时对其返回值调用 close_session()",
    confidence="likely",
)
_NOT_CLOSED = Remark(
    en="the script's last statement computes its result, so the session is not closed here",
    zh="脚本以最后计算的返回值结束，因此未在此处关闭会话",
    todo_en="call close_session({name}) after the result is computed",
    todo_zh="得到该值后调用 close_session({name})",
)


@rule(
    "keras-session",
    title=Text(en="Keras runs in a session for the NPU", zh="Keras 使用 NPU 会话"),
    source="npu_init.py of Ascend/tensorflow; TensorFlow 1.15 migration guide of CANN",
)
def keras_session(tree: ast.Module, view: View) -> Changes:
    """Set a session at the beginning of the script and close it at its end."""
    runs = [call for call in view.module.calls if runs_keras(call, view)]
    if not runs:
        # The script may call functions of other modules that train.
        call = reaches_keras(view) if uses_keras(view.module) else None
        if call is None or _entry(view, [call]) is None:
            return
        runs = [call]
    own_session = _own_session(tree, view)
    if own_session is not None:
        yield Leave(node=own_session, reason=_SET)
        return
    entry = _entry(view, runs)
    if entry is None:
        yield view.notice(runs[0], _NO_ENTRY)
        return
    function, imports, functions = view.session_config()
    config = f"config={function}()" if functions else ""
    lines = [f"{_NAME} = {view.npu('set_keras_session_npu_config')}({config})"]
    needs = ["set_keras_session_npu_config", *(imports if functions else ())]
    set_session, session_imports = _set_session(view)
    if set_session:
        lines.append(f"{set_session}({_NAME})")
    changes = [insert_before(view.module, entry.first, "\n".join(lines))]
    closing = _closing(entry.last, view)
    if closing is None:
        yield view.notice(entry.last, _NOT_CLOSED.filled(name=_NAME))
    else:
        changes.append(closing)
        needs.append("close_session")
    yield view.rewrite(
        entry.first,
        *changes,
        reason=_ENTRY,
        confidence="likely",
        imports=(*needs, *session_imports),
        functions=functions,
    )


def _entry(view: View, runs: list[ast.Call]) -> Entry | None:
    """Where the script begins: in its main part, or at its top level if a model runs there."""
    entry = entry_point(view)
    if entry is None and any(view.module.function(node) is None for node in runs):
        entry = top_level(view) or first_call(view)
    return entry


def _own_session(tree: ast.Module, view: View) -> ast.expr | None:
    """The reference by which the script itself sets a Keras session."""
    for node in walk(tree):
        if isinstance(node, ast.Name | ast.Attribute):
            name = view.module.name_of(node)
            if name in _SET_SESSIONS or name == f"{NPU_INIT}.set_keras_session_npu_config":
                return node
    return None


def _set_session(view: View) -> tuple[str, tuple[str, ...]]:
    """The function that sets a session of stand-alone Keras, and its imports; empty if unused."""
    if not any(module.imports("keras") for module in view.module.with_imported()):
        return "", ()
    for local, bindings in view.module.scopes.module.bindings.items():
        full_name = view.module.exported(local, frozenset())
        if any(binding.kind == "import" for binding in bindings):
            if full_name in _BACKENDS[1:]:
                return f"{local}.set_session", ()
            if full_name == "keras":
                return f"{local}.backend.set_session", ()
    return "keras.backend.set_session", ("keras:",)


def _closing(last: ast.stmt, view: View) -> Replacement | None:
    line = f"{view.npu('close_session')}({_NAME})"
    if isinstance(last, ast.Return):
        if last.value is None or isinstance(last.value, ast.Name | ast.Constant):
            return insert_before(view.module, last, line)
        return None
    if isinstance(last, ast.Raise):
        return None
    if isinstance(last, ast.Expr) and isinstance(last.value, ast.Call):
        call = last.value
        if view.module.name_of(call.func) in EXITS:
            all_constant = all(isinstance(value, ast.Constant) for value in call.args)
            return insert_before(view.module, last, line) if all_constant else None
    return insert_after(view.module, last, line)
