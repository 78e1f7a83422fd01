"""With several devices, plain sessions start with the values of rank 0."""

import ast

from jumar.porting.rewriting import Changes, Remark, Text, View, rule
from jumar.porting.rewriting.editing import argument, insert_after, insert_before
from jumar.porting.rules.tensorflow.ranks import RANK_IMPORTS, several_ranks, tensorflow_name
from jumar.porting.rules.tensorflow.training_scripts import evaluates, trains
from jumar.porting.script.expressions import method_name

_REASON = Text(
    en="each rank draws its own initial values; averaged gradients keep the ranks equal only if "
    "they start equal",
    zh="各 rank 随机初始化不同；只有初值相同，梯度平均后各 rank 才能保持一致",
)
_NOTICE = Remark(
    en="each rank draws its own initial values here, and the broadcast of those of rank 0 could "
    "not be inserted",
    zh="各 rank 在此随机初始化，且无法自动加入广播 rank 0 初值的语句",
    todo_en="after it, run tf.assign(variable, hccl_ops.broadcast([variable], 0)[0]) for all "
    "global variables if RANK_SIZE is above 1",
    todo_zh="RANK_SIZE 大于 1 时，在其后对全部全局变量执行 "
    "tf.assign(variable, hccl_ops.broadcast([variable], 0)[0])",
    severity="accuracy",
)
_BEFORE = Text(
    en="build tf.group(*[tf.assign(variable, hccl_ops.broadcast([variable], 0)[0]) for variable in "
    "tf.global_variables()]) before the Supervisor closes the graph, and run it first in its "
    "session if RANK_SIZE is above 1",
    zh="在 Supervisor 封闭计算图之前构建 tf.group(*[tf.assign(variable, "
    "hccl_ops.broadcast([variable], 0)[0]) for variable in tf.global_variables()])，"
    "RANK_SIZE 大于 1 时在其会话中首先执行",
)
_HIDDEN = Remark(
    en="each rank draws its own initial values here, and slim opens the session itself",
    zh="各 rank 在此随机初始化，而会话由 slim 自行创建",
    todo_en="build tf.group(*[tf.assign(variable, hccl_ops.broadcast([variable], 0)[0]) for "
    "variable in tf.global_variables()]) before this call, and pass init_fn=lambda session: "
    "session.run(...) if RANK_SIZE is above 1",
    todo_zh="在此调用之前构建 tf.group(*[tf.assign(variable, hccl_ops.broadcast([variable], "
    "0)[0]) for variable in tf.global_variables()])，RANK_SIZE 大于 1 时传入 init_fn=lambda "
    "session: session.run(...)",
    severity="accuracy",
)
_OPENS = ("managed_session", "prepare_or_wait_for_session")
_NAME = "npu_broadcast"
_INITIALIZERS = ("tensorflow.global_variables_initializer", "tensorflow.initialize_all_variables")
_BROADCASTS = (
    "npu_bridge.npu_init.NPUBroadcastGlobalVariablesHook",
    "npu_bridge.npu_init.hccl_ops.broadcast",
    "npu_bridge.npu_init.npu_hooks_append",
)


@rule(
    "initial-broadcast",
    title=Text(en="Sessions start with the values of rank 0", zh="会话以 rank 0 的初值开始训练"),
    source="Facenet_ID0122 of ModelZoo-TensorFlow; hccl_ops.py of Ascend/tensorflow",
)
def initial_broadcast(_: ast.Module, view: View) -> Changes:
    """Broadcast the variables after the initialisers have run."""
    if not view.options.distributed or _has_broadcast(view) or not trains(view):
        return
    tf = tensorflow_name(view)
    for node in view.module.calls:
        if view.kinds.called(node) == "tensorflow.train.Supervisor":
            yield from _supervised(node, tf, view)
            continue
        if (view.module.name_of(node.func) or "").endswith("slim.learning.train"):
            yield view.notice(node, _HIDDEN)
            continue
        if _within_supervisor(node, view):
            # The graph is closed there; `_supervised` runs an operation that is built before.
            continue
        session = _session(node, tf, view)
        if session is None or evaluates(node, view):
            continue
        statement = view.module.statement(node)
        if tf is None or not isinstance(statement, ast.Expr) or statement.value is not node:
            yield view.notice(node, _NOTICE)
            continue
        indent = view.module.lines.indentation
        operation = _operation(view, tf, indent * 2)
        lines = [f"if {several_ranks(view)}:", f"{indent}{session}.run(", *operation, f"{indent})"]
        yield view.rewrite(
            statement,
            insert_after(view.module, statement, "\n".join(lines)),
            reason=_REASON,
            confidence="likely",
            imports=("hccl_ops", *RANK_IMPORTS),
        )


def _operation(view: View, tf: str, indent: str) -> list[str]:
    """The source lines of the operation that sets all variables to the values of rank 0."""
    inner = indent + view.module.lines.indentation
    broadcast = f"{view.npu('hccl_ops')}.broadcast([variable], 0)[0]"
    return [
        f"{indent}{tf}.group(*[",
        f"{inner}{tf}.assign(variable, {broadcast})",
        f"{inner}for variable in {tf}.global_variables()",
        f"{indent}])",
    ]


def _supervised(call: ast.Call, tf: str | None, view: View) -> Changes:
    """Build the broadcast before a Supervisor closes the graph; run it in its session."""
    if evaluates(call, view):
        return
    statement = view.module.statement(call)
    body = _managed_session(statement, view)
    if tf is None or body is None or argument(call, "graph", 0) is not None:
        yield view.notice(call, _NOTICE, todo=_BEFORE)
        return
    session, first = body
    later = [
        node
        for node in view.module.calls
        if _within_supervisor(node, view) and _session(node, tf, view) is not None
    ]
    if len(later) > 1:
        yield view.notice(call, _NOTICE, todo=_BEFORE)
        return
    indent = view.module.lines.indentation
    operation = _operation(view, tf, indent)
    building = [
        f"{_NAME} = None",
        f"if {several_ranks(view)}:",
        f"{indent}{_NAME} = {operation[0].lstrip()}",
        *operation[1:],
    ]
    run_text = f"if {_NAME} is not None:\n{indent}{session}.run({_NAME})"
    yield view.rewrite(
        statement,
        insert_before(view.module, statement, "\n".join(building)),
        insert_after(view.module, view.module.statement(later[0]), run_text)
        if later
        else insert_before(view.module, first, run_text),
        reason=_REASON,
        confidence="likely",
        imports=("hccl_ops", *RANK_IMPORTS),
    )


def _within_supervisor(call: ast.Call, view: View) -> bool:
    """Whether a call is in the `with` block of a Supervisor's session."""
    return any(
        method_name(item.context_expr) in _OPENS
        for enclosing in view.module.scopes.ancestors(call)
        if isinstance(enclosing, ast.With)
        for item in enclosing.items
    )


def _managed_session(statement: ast.stmt, view: View) -> tuple[str, ast.stmt] | None:
    """The name of a Supervisor's session in a `with` block, and the block's first statement."""
    if not isinstance(statement, ast.Assign) or not isinstance(statement.targets[0], ast.Name):
        return None
    sessions: list[tuple[str, ast.stmt]] = []
    for reference in view.module.uses(statement.targets[0]):
        method = view.module.parent(reference)
        if not isinstance(method, ast.Attribute) or method.attr not in _OPENS:
            continue
        item = view.module.parent(view.module.parent(method) or method)
        enclosing = view.module.parent(item) if isinstance(item, ast.withitem) else None
        if not isinstance(enclosing, ast.With) or not isinstance(item, ast.withitem):
            return None
        if not isinstance(item.optional_vars, ast.Name):
            return None
        if view.module.function(enclosing) is not view.module.function(statement):
            return None
        sessions.append((item.optional_vars.id, enclosing.body[0]))
    return sessions[0] if len(sessions) == 1 else None


def _has_broadcast(view: View) -> bool:
    return any(
        isinstance(node, ast.Attribute | ast.Name)
        and (name := view.module.name_of(node)) is not None
        and (name in _BROADCASTS or (name.startswith("horovod.") and "roadcast" in name))
        for node in view.module.scopes.nodes
    )


def _session(call: ast.Call, tf: str | None, view: View) -> str | None:
    """The session in which a call runs initialisers; None if it runs none."""
    if not isinstance(call.func, ast.Attribute) or call.func.attr != "run":
        return None
    receiver = call.func.value
    if _initialises(receiver, view):
        return f"{tf or 'tf'}.get_default_session()"
    if call.args and view.kinds.of(receiver) in ("Session", None):
        fetches = call.args[0]
        parts = fetches.elts if isinstance(fetches, ast.List | ast.Tuple) else [fetches]
        if any(_initialises(part, view) for part in parts):
            return view.module.source(receiver)
    return None


def _initialises(value: ast.expr, view: View) -> bool:
    """Whether a value is the operation that initialises all variables."""
    if isinstance(value, ast.Call):
        name = view.module.name_of(value.func)
        if name == "tensorflow.group":
            return any(_initialises(part, view) for part in value.args)
        return name in _INITIALIZERS
    if isinstance(value, ast.Name):
        bindings = view.module.bindings(value)
        return bool(bindings) and all(
            binding.kind == "assignment"
            and isinstance(binding.value, ast.Call)
            and _initialises(binding.value, view)
            for binding in bindings
        )
    return False
