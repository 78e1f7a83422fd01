"""Mixed precision without a loss scale is reported."""

import ast

from jumar.porting.options import MIXED_PRECISION_MODES
from jumar.porting.rewriting import Changes, Remark, Text, View, rule
from jumar.porting.rules.tensorflow.optimizer_sites import (
    LOSS_SCALED,
    OTHER_LOSS_SCALES,
    optimizers,
    sites,
)

_REASON = Remark(
    en="in mixed precision, gradients are float16 and the smallest become 0; this script does not "
    "scale the loss",
    zh="混合精度下梯度为 float16，过小的会变为 0；此处没有 loss scale",
    todo_en="port again with --loss-scale exponential (most migrated networks: 2**32, raised "
    "after 1000 steps, halved after 2 overflows) or --loss-scale fixed:1024; otherwise compare "
    "the loss of the first steps with float32",
    todo_zh="移植时加上 --loss-scale exponential（多数已迁移网络：2**32，1000 步增大，2 "
    "次溢出减半）或 --loss-scale fixed:1024；否则请与 float32 的前若干步 loss 比较",
    severity="accuracy",
    confidence="likely",
)


@rule(
    "loss-scale-advice",
    title=Text(en="Mixed precision without a loss scale", zh="混合精度但没有 loss scale"),
    source="npu_loss_scale_optimizer.py of Ascend/tensorflow; mixed precision guides of CANN",
)
def loss_scale_advice(_: ast.Module, view: View) -> Changes:
    """Report the first optimizer without a loss scale."""
    if view.options.precision not in MIXED_PRECISION_MODES or view.options.loss_scale is not None:
        return
    if any(view.module.name_of(optimizer.func) in LOSS_SCALED for optimizer in optimizers(view)):
        return
    for site in sites(view, LOSS_SCALED | OTHER_LOSS_SCALES):
        yield view.notice(site.creations[0], _REASON)
        return
