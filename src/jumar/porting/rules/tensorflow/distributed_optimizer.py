"""With several devices, optimizers average their gradients over the ranks."""

import ast

from jumar.porting.rewriting import Changes, Remark, Text, View, rule
from jumar.porting.rules.tensorflow.optimizer_sites import (
    DISTRIBUTED,
    LOSS_SCALED,
    OTHER_LOSS_SCALES,
    optimizers,
    sites,
    unreached_classes,
)

_REASON = Text(
    en="each rank computes gradients of its own batch: they are averaged over all ranks before "
    "they are applied; with a single rank, nothing is added to the graph",
    zh="每个 rank 只计算自己一批数据的梯度：应用前在所有 rank 间求平均；单 rank "
    "时图中不增加任何算子",
)
_IN_ESTIMATOR = Text(
    en="this optimizer is passed to an Estimator; its gradients are averaged as well",
    zh="该优化器交给 Estimator 使用，同样在各 rank 间求平均",
)
_NOT_AVERAGED = Remark(
    en="the optimizer within this loss scale does not average its gradients: each rank would "
    "train separately",
    zh="该 loss scale 内的优化器不对梯度求平均：各 rank 将各自训练",
    todo_en="wrap the inner optimizer in NPUDistributedOptimizer(...), and pass "
    "is_distributed=True to the loss scale",
    todo_zh="在内层优化器外包上 NPUDistributedOptimizer(...)，并给 loss scale 传入 "
    "is_distributed=True",
    severity="accuracy",
)
_CLASS = Remark(
    en="the optimizer is created where this class is called, so its gradients are not averaged: "
    "each rank would train separately",
    zh="优化器在调用该类的位置创建，因此其梯度未求平均：各 rank 将各自训练",
    todo_en="wrap the optimizer that the call returns: NPUDistributedOptimizer(optimizer)",
    todo_zh="包装调用所得的优化器：NPUDistributedOptimizer(optimizer)",
    severity="blocking",
    confidence="likely",
)


@rule(
    "distributed-optimizer",
    title=Text(en="Optimizers average gradients over the ranks", zh="优化器在各 rank 间平均梯度"),
    source="npu_optimizer.py of Ascend/tensorflow",
)
def distributed_optimizer(_: ast.Module, view: View) -> Changes:
    """Wrap each optimizer that computes gradients in the distributed one."""
    if not view.options.distributed:
        return
    # The loss scale, which checks the averaged gradients for overflow, stays outside.
    for site in sites(view, DISTRIBUTED | LOSS_SCALED, outside=OTHER_LOSS_SCALES):
        # The class lacks the wrapped optimizer's attributes; the function patches the optimizer.
        name = "NPUDistributedOptimizer"
        if site.members:
            name = "npu_distributed_optimizer_wrapper"
        yield view.rewrite(
            site.node,
            *site.replacements(view, f"{view.npu(name)}(", ")"),
            reason=_IN_ESTIMATOR if site.in_estimator else _REASON,
            confidence="certain" if len(site.creations) == 1 else "likely",
            imports=(name,),
        )
    optimizers_by_name = {view.module.name_of(call.func): call for call in optimizers(view)}
    if not DISTRIBUTED & optimizers_by_name.keys():
        # Nothing wraps a loss-scale optimizer: it must see the averaged gradients.
        for name in sorted(LOSS_SCALED & optimizers_by_name.keys()):
            yield view.notice(optimizers_by_name[name], _NOT_AVERAGED)
    for node in unreached_classes(view):
        yield view.notice(node, _CLASS)
