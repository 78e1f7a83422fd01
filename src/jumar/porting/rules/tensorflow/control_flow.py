"""Branches of the graph that train."""

import ast
from collections.abc import Iterator

from jumar.porting.edits import Text
from jumar.porting.rewriting.changes import Change, Leave
from jumar.porting.rewriting.registry import rule
from jumar.porting.rewriting.view import View

_TRAINING = ("minimize", "apply_gradients", "compute_gradients")
_REASON = Text(
    en="the optimizer stands in a branch of the graph: the NPU cannot fuse the step across it, and "
    "a loss scale's skipped step is a branch within a branch",
    zh="优化器位于图的条件分支中：NPU 无法跨分支融合训练步，loss scale 跳过一步时会形成嵌套分支",
)
_TODO = Text(
    en="train unconditionally, and choose by a factor: multiply the learning rate or the gradients "
    "by tf.cast(condition, tf.float32), or make two training operations and choose one in Python",
    zh="改为无条件训练，用系数选择：将学习率或梯度乘以 tf.cast(condition, tf.float32)；"
    "或建立两个训练操作，在 Python 中选择其一",
)
_PLAIN = Text(
    en="a branch of the graph without an optimizer in it works on the NPU",
    zh="不含优化器的条件分支可在 NPU 上运行",
)


@rule(
    "control-flow",
    title=Text(en="Optimizers within branches are pointed out", zh="提示条件分支中的优化器"),
    source="CANN TensorFlow 1.15 migration guide",
    calls=("tensorflow.cond", "tensorflow.case", "tensorflow.switch_case"),
)
def control_flow(call: ast.Call, view: View) -> Iterator[Change]:
    """Say which branch trains."""
    if any(_trains(branch, view) for branch in [*call.args, *_values(call)]):
        yield view.notice(call, reason=_REASON, todo=_TODO, severity="speed")
    else:
        yield Leave(node=call, reason=_PLAIN)


def _values(call: ast.Call) -> list[ast.expr]:
    return [word.value for word in call.keywords]


def _trains(branch: ast.expr, view: View) -> bool:
    nodes: list[ast.AST] = [branch]
    if isinstance(branch, ast.Name):
        _, bindings = view.module.scopes.lookup(branch)
        nodes += [binding.node for binding in bindings if binding.kind == "function"]
    return any(
        isinstance(inner, ast.Call)
        and isinstance(inner.func, ast.Attribute)
        and inner.func.attr in _TRAINING
        for node in nodes
        for inner in ast.walk(node)
    )
