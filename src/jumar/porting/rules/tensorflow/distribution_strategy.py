"""Strategies of tf.distribute become the NPU's; parameter servers are reported."""

import ast

from jumar.porting.rewriting import Changes, Remark, Replacement, Text, View, rule
from jumar.porting.rewriting.editing import open_parenthesis, replace

_MIRRORED = (
    "tensorflow.distribute.MirroredStrategy",
    "tensorflow.contrib.distribute.MirroredStrategy",
    "tensorflow.distribute.experimental.MultiWorkerMirroredStrategy",
    "tensorflow.contrib.distribute.CollectiveAllReduceStrategy",
)
_OTHER = (
    "tensorflow.distribute.experimental.ParameterServerStrategy",
    "tensorflow.contrib.distribute.ParameterServerStrategy",
    "tensorflow.distribute.experimental.TPUStrategy",
    "tensorflow.contrib.distribute.TPUStrategy",
    "tensorflow.distribute.experimental.CentralStorageStrategy",
    "tensorflow.distribute.OneDeviceStrategy",
    "tensorflow.contrib.distribute.OneDeviceStrategy",
)
STRATEGIES = (*_MIRRORED, *_OTHER)
_REASON = Text(
    en="each NPU has its own process: the strategy has one device, counts RANK_SIZE replicas and "
    "shards the input by rank",
    zh="每个 NPU 对应一个进程：该策略只含一个设备，副本数为 RANK_SIZE，并按 rank 切分输入",
)
_GRADIENTS = Remark(
    en="the strategy does not average gradients: the optimizer has to",
    zh="该策略不会平均梯度，需由优化器完成",
    todo_en="port again with --devices N, which wraps the optimizers in NPUDistributedOptimizer",
    todo_zh="移植时加上 --devices N，会在优化器外加上 NPUDistributedOptimizer",
    severity="accuracy",
)
_NONE = Remark(
    en="this strategy has no counterpart on the NPU, where every process drives one device and "
    "gradients are averaged by HCCL",
    zh="NPU 没有对应的策略：每个进程驱动一个设备，梯度由 HCCL 平均",
    todo_en="remove it, or use npu_strategy.NPUStrategy() with NPUDistributedOptimizer and one "
    "process for each device",
    todo_zh="删除它，或使用 npu_strategy.NPUStrategy() 加 NPUDistributedOptimizer，"
    "每个设备一个进程",
    severity="blocking",
)
_STRATEGY = "npu_strategy"


@rule(
    "distribution-strategy",
    title=Text(en="Strategies become NPUStrategy", zh="分布式策略改为 NPUStrategy"),
    source="npu_strategy.py of Ascend/tensorflow; API support list of convert_tf2npu, December "
    "2023",
    calls=STRATEGIES,
)
def distribution_strategy(call: ast.Call, view: View) -> Changes:
    """Replace a mirrored strategy including its arguments; report the others."""
    if view.module.name_of(call.func) not in _MIRRORED:
        # Another strategy, or a class of the tree that inherits from one.
        yield view.notice(call, _NONE)
        return
    if not view.options.distributed:
        yield view.notice(call, _GRADIENTS)
    _, end = view.module.span(call)
    start = open_parenthesis(view.module, call)
    yield view.rewrite(
        call,
        replace(view.module, call.func, f"{view.npu(_STRATEGY)}.NPUStrategy"),
        Replacement(start=start, end=end, text="()"),
        reason=_REASON,
        imports=(_STRATEGY,),
    )
