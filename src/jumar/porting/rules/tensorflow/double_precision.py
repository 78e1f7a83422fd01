"""Tensors of 64-bit floating point numbers are said."""

import ast
from collections.abc import Iterator

from jumar.porting.edits import Text
from jumar.porting.rewriting.changes import Change, Leave
from jumar.porting.rewriting.registry import rule
from jumar.porting.rewriting.view import View
from jumar.porting.rules.tensorflow.py_func import mapped

_REASON = Text(
    en="the matrix and vector units of the NPU do not compute in float64: such operators are slow "
    "or missing",
    zh="NPU 的矩阵与向量单元不支持 float64 计算：相应算子很慢或不存在",
)
_TODO = Text(
    en="use tf.float32 in the graph of the step, and convert inputs on the host",
    zh="训练步的图中使用 tf.float32，并在主机侧转换输入",
)
_HOST = Text(en="it belongs to the input, which runs on the host", zh="属于输入处理，在主机上执行")


@rule(
    "double-precision",
    title=Text(en="Tensors of float64", zh="float64 张量"),
    source="API support list of convert_tf2npu, December 2023",
    references=("tensorflow.float64", "tensorflow.double", "tensorflow.complex128"),
)
def double_precision(node: ast.expr, view: View) -> Iterator[Change]:
    """A finding outside of the input."""
    if mapped(node, view):
        yield Leave(node=node, reason=_HOST)
    else:
        yield view.notice(node, reason=_REASON, todo=_TODO, severity="speed", confidence="likely")
