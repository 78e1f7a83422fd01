"""CrossShardOptimizer is for TPU cores."""

import ast
from collections.abc import Iterator

from jumar.porting.edits import Text
from jumar.porting.rewriting.changes import Change, Leave, Replacement
from jumar.porting.rewriting.editing import argument, is_open
from jumar.porting.rewriting.registry import rule
from jumar.porting.rewriting.view import View
from jumar.porting.script.nodes import walk

_DROPPED = Text(
    en="CrossShardOptimizer needs a TPU: its inner optimizer stays; gradients are averaged "
    "between NPUs by NPUDistributedOptimizer",
    zh="CrossShardOptimizer 依赖 TPU：仅保留其内部优化器；多 NPU 间的梯度平均由 "
    "NPUDistributedOptimizer 完成",
)
_GUARDED = Text(
    en="it is created only when the script asks for a TPU",
    zh="仅在使用 TPU 时构造，脚本已有判断",
)


@rule(
    "cross-shard-optimizer",
    title=Text(en="CrossShardOptimizer is dropped", zh="去掉 CrossShardOptimizer"),
    source="tpu_optimizer.py of TensorFlow 1.15; npu_optimizer.py of Ascend/tensorflow",
    calls=("tensorflow.contrib.tpu.CrossShardOptimizer",),
)
def cross_shard_optimizer(call: ast.Call, view: View) -> Iterator[Change]:
    """Unwrap the optimizer, unless the script itself asks for a TPU first."""
    inner = argument(call, "opt", 0)
    if inner is None or is_open(call):
        return
    if any(asks_for_tpu(enclosing) for enclosing in view.module.scopes.ancestors(call)):
        yield Leave(node=call, reason=_GUARDED)
        return
    start, end = view.module.span(call)
    first, last = view.module.span(inner)
    # Parentheses stay: the argument may go over several lines.
    yield view.rewrite(
        call,
        Replacement(start=start, end=first, text="("),
        Replacement(start=last, end=end, text=")"),
        reason=_DROPPED,
    )


def asks_for_tpu(node: ast.AST) -> bool:
    """Whether a condition is about using a TPU."""
    if not isinstance(node, ast.If | ast.IfExp):
        return False
    return any(
        (isinstance(part, ast.Name) and "tpu" in part.id.lower())
        or (isinstance(part, ast.Attribute) and "tpu" in part.attr.lower())
        for part in walk(node.test)
    )
