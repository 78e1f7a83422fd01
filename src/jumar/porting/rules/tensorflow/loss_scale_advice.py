"""Mixed precision without a loss scale is reported."""

import ast
from collections.abc import Iterator

from jumar.porting.edits import Text
from jumar.porting.options import MIXED_PRECISION_MODES
from jumar.porting.rewriting.changes import Change
from jumar.porting.rewriting.registry import rule
from jumar.porting.rewriting.view import View
from jumar.porting.rules.tensorflow.optimizer_sites import (
    LOSS_SCALED,
    OTHER_LOSS_SCALES,
    optimizers,
    sites,
)

_REASON = Text(
    en="in mixed precision, gradients are float16 and the smallest become 0; this script does not "
    "scale the loss",
    zh="混合精度下梯度为 float16，过小的会变为 0；此处没有 loss scale",
)
_ADVICE = Text(
    en="port again with --loss-scale exponential (most migrated networks: 2**32, raised after 1000 "
    "steps, halved after 2 overflows) or --loss-scale fixed:1024; otherwise compare the loss of "
    "the first steps with float32",
    zh="移植时加上 --loss-scale exponential（多数已迁移网络：2**32，1000 步增大，2 次溢出减半）或 "
    "--loss-scale fixed:1024；否则请与 float32 的前若干步 loss 比较",
)


@rule(
    "loss-scale-advice",
    title=Text(en="Mixed precision without a loss scale", zh="混合精度但没有 loss scale"),
    source="npu_loss_scale_optimizer.py of Ascend/tensorflow; mixed precision guides of CANN",
)
def loss_scale_advice(_: ast.Module, view: View) -> Iterator[Change]:
    """Report the first optimizer without a loss scale."""
    if view.options.precision not in MIXED_PRECISION_MODES or view.options.loss_scale is not None:
        return
    if any(view.module.name_of(optimizer.func) in LOSS_SCALED for optimizer in optimizers(view)):
        return
    for site in sites(view, LOSS_SCALED | OTHER_LOSS_SCALES):
        yield view.notice(
            site.creations[0],
            reason=_REASON,
            todo=_ADVICE,
            severity="accuracy",
            confidence="likely",
        )
        return
