"""CrossShardOptimizer, which is for TPU cores, is removed."""

import ast

from jumar.porting.rewriting import Changes, Leave, Replacement, Text, View, rule
from jumar.porting.rewriting.editing import argument, is_open
from jumar.porting.script.expressions import names_within

_DROPPED = Text(
    en="CrossShardOptimizer needs a TPU: only its inner optimizer is kept; NPUDistributedOptimizer "
    "averages gradients over NPUs",
    zh="CrossShardOptimizer 依赖 TPU：仅保留其内部优化器；多 NPU 间的梯度平均由 "
    "NPUDistributedOptimizer 完成",
)
_GUARDED = Text(
    en="it is only created if the script is to use a TPU",
    zh="仅在使用 TPU 时构造，脚本已有判断",
)


@rule(
    "cross-shard-optimizer",
    title=Text(en="CrossShardOptimizer is removed", zh="去掉 CrossShardOptimizer"),
    source="tpu_optimizer.py of TensorFlow 1.15; npu_optimizer.py of Ascend/tensorflow",
    calls=("tensorflow.contrib.tpu.CrossShardOptimizer",),
)
def cross_shard_optimizer(call: ast.Call, view: View) -> Changes:
    """Unwrap the optimizer, unless the script tests for a TPU first."""
    inner = argument(call, "opt", 0)
    if inner is None or is_open(call):
        return
    if any(tests_for_tpu(enclosing) for enclosing in view.module.scopes.ancestors(call)):
        yield Leave(node=call, reason=_GUARDED)
        return
    start, end = view.module.span(call)
    first, last = view.module.span(inner)
    # Keep the parentheses: the argument may span several lines.
    yield view.rewrite(
        call,
        Replacement(start=start, end=first, text="("),
        Replacement(start=last, end=end, text=")"),
        reason=_DROPPED,
    )


def tests_for_tpu(node: ast.AST) -> bool:
    """Whether a node is an `if` whose test mentions a TPU."""
    return isinstance(node, ast.If | ast.IfExp) and any(
        "tpu" in name.lower() for name in names_within(node.test)
    )
