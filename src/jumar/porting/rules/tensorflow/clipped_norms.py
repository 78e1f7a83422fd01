"""Clipping by the global norm, after a loss scale has made gradients of rows dense."""

import ast
from collections.abc import Iterator

from jumar.porting.edits import Text
from jumar.porting.rewriting.changes import Change
from jumar.porting.rewriting.registry import rule
from jumar.porting.rewriting.view import View

_REASON = Text(
    en="NPULossScaleOptimizer divides each gradient by the scale, which turns those of gathered "
    "rows (embeddings) from IndexedSlices into tensors; rows that occur several times are then "
    "summed before the norm is taken, so the norm, and what is clipped, differ from the original",
    zh="NPULossScaleOptimizer 用缩放系数除每个梯度，使按行收集（embedding）的梯度由 IndexedSlices "
    "变为稠密张量；重复出现的行在求范数之前先被相加，因此全局范数与裁剪结果和原脚本不同",
)
_TODO = Text(
    en="nothing where no variable is read by tf.nn.embedding_lookup or tf.gather; otherwise "
    "compare with an original whose gradients are made dense by tf.convert_to_tensor, or clip less",
    zh="若没有变量经 tf.nn.embedding_lookup 或 tf.gather 读取则无需处理；否则请与先用 "
    "tf.convert_to_tensor 变为稠密的原脚本对比，或放宽裁剪",
)


@rule(
    "clipped-norms",
    title=Text(
        en="Clipping by the global norm with a loss scale is pointed out",
        zh="提示损失缩放下的全局范数裁剪",
    ),
    source="npu_loss_scale_optimizer.py of Ascend/tensorflow; tensorflow/nmt, whose losses part at "
    "step 3 with a scale of 1",
    calls=("tensorflow.clip_by_global_norm", "tensorflow.global_norm"),
)
def clipped_norms(call: ast.Call, view: View) -> Iterator[Change]:
    """Say that the norm may be another one."""
    if view.options.loss_scale is not None:
        yield view.notice(
            call, reason=_REASON, todo=_TODO, severity="accuracy", confidence="unsure"
        )
