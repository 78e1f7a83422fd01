"""Checks for finite values, which the device does by its status register."""

import ast
from collections.abc import Iterator

from jumar.porting.edits import Text
from jumar.porting.rewriting.changes import Change
from jumar.porting.rewriting.registry import rule
from jumar.porting.rewriting.view import View

_CHECK = Text(
    en="the NPU lists tf.is_finite, tf.is_nan and tf.is_inf as unsupported; a check of gradients "
    "by them is what NPULossScaleOptimizer does by the status register",
    zh="NPU 支持清单中 tf.is_finite、tf.is_nan、tf.is_inf 为不支持；NPULossScaleOptimizer "
    "通过状态寄存器完成梯度检查",
)
_CHECK_TODO = Text(
    en="remove the check and port with --loss-scale, or keep it out of the training step",
    zh="删除该检查并使用 --loss-scale 移植，或将其移出训练步",
)


@rule(
    "finite-check",
    title=Text(en="Checks for finite values", zh="有限值检查"),
    source="API support list of convert_tf2npu, December 2023",
    references=(
        "tensorflow.is_finite",
        "tensorflow.is_nan",
        "tensorflow.is_inf",
        "tensorflow.math.is_finite",
        "tensorflow.math.is_nan",
        "tensorflow.math.is_inf",
        "tensorflow.debugging.is_finite",
        "tensorflow.debugging.is_nan",
        "tensorflow.debugging.is_inf",
    ),
)
def finite_check(node: ast.expr, view: View) -> Iterator[Change]:
    """A finding for each."""
    yield view.notice(node, reason=_CHECK, todo=_CHECK_TODO, severity="blocking")
