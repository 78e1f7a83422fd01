"""Sessions that are never closed keep the device."""

import ast
from collections.abc import Iterator

from jumar.porting.edits import Text
from jumar.porting.rewriting.changes import Change
from jumar.porting.rewriting.registry import rule
from jumar.porting.rewriting.view import View
from jumar.porting.rules.tensorflow.host_sessions import host_only

_OPEN = Text(
    en="nothing closes this session: the device's memory is freed when it is closed, at the latest "
    "at the end of the process",
    zh="该会话未被关闭：设备资源在会话关闭时释放，最迟到进程结束",
)
_OPEN_TODO = Text(
    en="call {name}.close() when it is done, or open it by `with`",
    zh="使用完毕后调用 {name}.close()，或用 with 打开",
)


@rule(
    "session-close",
    title=Text(en="Sessions that stay open are pointed out", zh="指出未关闭的会话"),
    source="migrated scripts of ModelZoo-TensorFlow",
    calls=("tensorflow.Session", "tensorflow.InteractiveSession"),
)
def session_close(call: ast.Call, view: View) -> Iterator[Change]:
    """Tell of a session that one name holds, and that is neither closed nor handed on."""
    statement = view.module.parent(call)
    if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
        return
    target = statement.targets[0]
    if not isinstance(target, ast.Name) or host_only(call, view):
        return
    scope, _ = view.module.scopes.lookup(target)
    if scope is None or any(
        _closes(reference, view) for reference in scope.references.get(target.id, [])
    ):
        return
    todo = _OPEN_TODO.filled(name=target.id)
    yield view.notice(call, reason=_OPEN, todo=todo, confidence="likely")


def _closes(reference: ast.Name, view: View) -> bool:
    """Whether a use of a session closes it, hands it on, or keeps it for later."""
    parent = view.module.parent(reference)
    if isinstance(parent, ast.Attribute):
        return parent.attr in ("close", "__exit__", "__enter__")
    return isinstance(
        parent, ast.withitem | ast.Return | ast.Yield | ast.Assign | ast.Tuple | ast.List | ast.Dict
    )
