"""With several devices, plain sessions begin with the values of rank 0."""

import ast
from collections.abc import Iterator

from jumar.porting.edits import Text
from jumar.porting.rewriting.changes import Change
from jumar.porting.rewriting.editing import insert_after
from jumar.porting.rewriting.registry import rule
from jumar.porting.rewriting.view import View
from jumar.porting.rules.tensorflow.horovod_optimizer import broadcast_op
from jumar.porting.rules.tensorflow.input_purpose import named_purpose
from jumar.porting.rules.tensorflow.optimizer_sites import optimizers
from jumar.porting.rules.tensorflow.ranks import RANK_IMPORTS, several_ranks, tensorflow_name

_REASON = Text(
    en="each rank draws its own initial values; averaged gradients keep the ranks equal only if "
    "they start equal",
    zh="各 rank 随机初始化不同；只有初值相同，梯度平均后各 rank 才能保持一致",
)
_NOTICE = Text(
    en="each rank draws its own initial values here, and no line could be added to broadcast "
    "those of rank 0",
    zh="各 rank 在此随机初始化，且无法自动加入广播 rank 0 初值的语句",
)
_ADVICE = Text(
    en="after it, run tf.assign(variable, hccl_ops.broadcast([variable], 0)[0]) for the global "
    "variables where RANK_SIZE is above 1",
    zh="RANK_SIZE 大于 1 时，在其后对全部全局变量执行 "
    "tf.assign(variable, hccl_ops.broadcast([variable], 0)[0])",
)
_INITIALIZERS = ("tensorflow.global_variables_initializer", "tensorflow.initialize_all_variables")
_BROADCASTS = (
    "npu_bridge.npu_init.NPUBroadcastGlobalVariablesHook",
    "npu_bridge.npu_init.hccl_ops.broadcast",
    "npu_bridge.npu_init.npu_hooks_append",
)


@rule(
    "initial-broadcast",
    title=Text(en="Sessions begin with the values of rank 0", zh="会话以 rank 0 的初值开始训练"),
    source="Facenet_ID0122 of ModelZoo-TensorFlow; hccl_ops.py of Ascend/tensorflow",
)
def initial_broadcast(_: ast.Module, view: View) -> Iterator[Change]:
    """After what runs the initialisers, broadcast the variables."""
    if not view.options.distributed or _has_broadcast(view) or not _trains(view):
        return
    tf = tensorflow_name(view)
    for node in view.module.scopes.nodes:
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
            continue
        session = _session(node, tf, view)
        if session is None or _evaluates(node, view):
            continue
        statement = view.module.statement(node)
        if tf is None or not isinstance(statement, ast.Expr) or statement.value is not node:
            yield view.notice(node, reason=_NOTICE, todo=_ADVICE, severity="accuracy")
            continue
        operation = broadcast_op(view, tf, f"{tf}.global_variables()", "0")
        text = (
            f"if {several_ranks(view)}:\n{view.module.lines.indentation}{session}.run({operation})"
        )
        yield view.rewrite(
            statement,
            insert_after(view.module, statement, text),
            reason=_REASON,
            confidence="likely",
            imports=("hccl_ops", *RANK_IMPORTS),
        )


def _evaluates(call: ast.Call, view: View) -> bool:
    """Whether a call is in a function that tests a model, where nothing has to be equal."""
    function, holder = view.module.function(call), view.module.class_of(call)
    names = [part.name for part in (function, holder) if part is not None]
    return named_purpose(names) == "other"


def _has_broadcast(view: View) -> bool:
    return any(
        isinstance(node, ast.Attribute | ast.Name)
        and (name := view.module.name_of(node)) is not None
        and (name in _BROADCASTS or (name.startswith("horovod.") and "roadcast" in name))
        for node in view.module.scopes.nodes
    )


def _trains(view: View) -> bool:
    """Whether the script trains: it makes an optimizer, or saves checkpoints."""
    if optimizers(view):
        return True
    return any(
        isinstance(node, ast.Call) and saves(node, view) for node in view.module.scopes.nodes
    )


def saves(call: ast.Call, view: View) -> bool:
    """Whether a call saves a checkpoint."""
    return (
        isinstance(call.func, ast.Attribute)
        and call.func.attr == "save"
        and view.kinds.of(call.func.value) == "Saver"
    )


def _session(call: ast.Call, tf: str | None, view: View) -> str | None:
    """The session that runs initialisers by a call; None if it runs none."""
    assert isinstance(call.func, ast.Attribute)
    if call.func.attr != "run":
        return None
    receiver = call.func.value
    if _initialises(receiver, view):
        return f"{tf or 'tf'}.get_default_session()"
    if call.args and view.kinds.of(receiver) in ("Session", None):
        inside = call.args[0]
        parts = inside.elts if isinstance(inside, ast.List | ast.Tuple) else [inside]
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
        _, bindings = view.module.scopes.lookup(value)
        return bool(bindings) and all(
            binding.kind == "assignment"
            and isinstance(binding.value, ast.Call)
            and _initialises(binding.value, view)
            for binding in bindings
        )
    return False
