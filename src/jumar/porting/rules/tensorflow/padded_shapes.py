"""Padded batches whose size depends on their contents are said."""

import ast
from collections.abc import Iterator

from jumar.porting.edits import Text
from jumar.porting.rewriting.changes import Change
from jumar.porting.rewriting.editing import argument
from jumar.porting.rewriting.registry import rule
from jumar.porting.rewriting.view import View

_REASON = Text(
    en="these batches are padded to their longest element, so their shape changes from step to "
    "step; the NPU compiles the graph again for each new shape",
    zh="各批按自身最长元素补齐，形状逐步变化；NPU 遇到新形状会重新编译图",
)
_TODO = Text(
    en="give padded_shapes fixed numbers and filter or cut what is longer; or declare the ranges: "
    'dynamic_input, dynamic_graph_execute_mode="dynamic_execute" and dynamic_inputs_shape_range',
    zh="padded_shapes 改为固定值，并过滤或截断更长的样本；或声明形状范围：dynamic_input、"
    'dynamic_graph_execute_mode="dynamic_execute"、dynamic_inputs_shape_range',
)
_BUCKETS = Text(
    en="each bucket has a batch size and a length of its own, so the NPU compiles one graph for "
    "each; batches inside a bucket must not be smaller",
    zh="每个 bucket 的批大小与长度不同，NPU 会为每个 bucket 编译一张图；bucket 内的批不能变小",
)
_BUCKETS_TODO = Text(
    en="keep few buckets, with pad_to_bucket_boundary=True and drop_remainder=True in training",
    zh="减少 bucket 数量，训练时设置 pad_to_bucket_boundary=True 与 drop_remainder=True",
)
_BUCKET_NAMES = (
    "tensorflow.data.experimental.bucket_by_sequence_length",
    "tensorflow.contrib.data.bucket_by_sequence_length",
    "tensorflow.contrib.training.bucket_by_sequence_length",
    "tensorflow.contrib.training.bucket",
)


@rule(
    "padded-shapes",
    title=Text(en="Padded batches of changing shape", zh="形状变化的补齐批"),
    source="ViDeNN_ID1146 and NMT_ID0512 of ModelZoo-TensorFlow; npu_config.py of "
    "Ascend/tensorflow",
    nodes=(ast.Call,),
)
def padded_shapes(call: ast.Call, view: View) -> Iterator[Change]:
    """A finding where a padded shape holds None."""
    if view.module.name_of(call.func) in _BUCKET_NAMES:
        yield view.notice(call, reason=_BUCKETS, todo=_BUCKETS_TODO, severity="speed")
        return
    if not isinstance(call.func, ast.Attribute) or call.func.attr != "padded_batch":
        return
    kind = view.kinds.of(call.func.value)
    if kind != "Dataset" and not (kind is None and view.module.imports("tensorflow")):
        return
    shapes = argument(call, "padded_shapes", 1)
    fixed = shapes is not None and not any(
        (isinstance(node, ast.Constant) and node.value is None)
        or (isinstance(node, ast.Attribute) and node.attr == "output_shapes")
        for node in ast.walk(shapes)
    )
    named = isinstance(shapes, ast.Name | ast.Attribute)
    if not fixed or named:
        yield view.notice(
            call,
            reason=_REASON,
            todo=_TODO,
            severity="speed",
            confidence="unsure" if named and fixed else "certain",
        )
