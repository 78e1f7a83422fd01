"""Gradients that a script averages itself over the GPUs of one process."""

import ast
import re

from jumar.porting.rewriting import Changes, Remark, Text, View, rule
from jumar.porting.rules.tensorflow.concerned import uses_tensorflow
from jumar.porting.script.nodes import walk

_NAME = re.compile(r"(?i)grad|tower")
_REDUCED = frozenset(
    f"tensorflow.{name}" for name in ("add_n", "reduce_mean", "reduce_sum", "accumulate_n")
)
_REASON = Remark(
    en="this averages the gradients of towers, one for each GPU of a process; on NPUs, a process "
    "has one device and therefore one tower",
    zh="此处对各 tower（单进程内每个 GPU 一个）的梯度求平均；NPU 每个进程只有一个设备，"
    "即只有一个 tower",
    todo_en="build one tower and port again with --devices N: NPUDistributedOptimizer averages "
    "over the processes",
    todo_zh="只构建一个 tower，并用 --devices N 移植：NPUDistributedOptimizer 在各进程间求平均",
    severity="blocking",
    confidence="likely",
)


@rule(
    "distribution-towers",
    title=Text(en="Averages over towers are reported", zh="指出对多 tower 梯度求平均的函数"),
    source="TensorFlow 1.15 migration guide of CANN; npu_optimizer.py of Ascend/tensorflow",
    nodes=(ast.FunctionDef,),
)
def distribution_towers(function: ast.FunctionDef, view: View) -> Changes:
    """Report a function that iterates over the gradients of all towers, variable by variable.

    `gradients, variables = zip(*pairs)` is not reported: it splits the pairs of one optimizer.
    """
    if not _NAME.search(function.name) or not uses_tensorflow(view):
        return
    nodes = walk(function)
    calls = [node for node in nodes if isinstance(node, ast.Call)]
    if not any(view.module.name_of(call.func) in _REDUCED for call in calls):
        return
    parameters = {argument.arg for argument in function.args.args}
    for call in calls:
        if view.module.name_of(call.func) != "builtins.zip" or len(call.args) != 1:
            continue
        towers, parent = call.args[0], view.module.parent(call)
        if (
            isinstance(parent, ast.For | ast.comprehension)
            and isinstance(towers, ast.Starred)
            and isinstance(towers.value, ast.Name)
            and towers.value.id in parameters
        ):
            yield view.notice(call, _REASON)
            return
