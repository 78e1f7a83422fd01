"""tf.nn.dropout becomes the NPU's fused operator."""

import ast
from collections.abc import Iterator

from jumar.porting.rewriting import Changes, Leave, Remark, Replacement, Severity, Text, View, rule
from jumar.porting.rewriting.editing import argument, is_open, keyword, literal, replace, wrap
from jumar.porting.script.expressions import is_none, is_omitted

_REASON = Text(
    en="one fused operator draws the mask and applies it; its second argument is keep_prob, as in "
    "TensorFlow 1",
    zh="由一个融合算子生成并应用 mask；第二个参数是保留比例，与 TensorFlow 1 相同",
)
_BOTH = Remark(
    en="both keep_prob and rate are set, which TensorFlow rejects unless one is None",
    zh="同时给出了 keep_prob 与 rate，除非其一为 None，否则 TensorFlow 会报错",
    todo_en="keep one of them, and port again",
    todo_zh="只保留其中一个，再重新移植",
)
_OPEN = Remark(
    en="arguments are passed with * or **: it is unclear whether they contain keep_prob or rate",
    zh="参数由 * 或 ** 传入，此处无法判断给出的是保留比例还是丢弃比例",
    todo_en="use npu_ops.dropout(x, keep_prob=...)",
    todo_zh="写成 npu_ops.dropout(x, keep_prob=...)，参数为保留比例",
)
_LAYER = Text(
    en="a dropout layer also disables itself outside training; it runs unchanged",
    zh="dropout 层在非训练时会自行关闭；保持原样即可运行",
)
_SMALLER_MASK = Text(
    en="noise_shape shares mask values between elements; the kernels of npu_ops.dropout only "
    "accept a mask of the tensor's size, and tf.nn.dropout runs unchanged",
    zh="noise_shape 让多个值共用一个 mask；npu_ops.dropout 的算子只接受与张量同样大小的 mask，"
    "保持 tf.nn.dropout 即可运行",
)
_ZERO = Remark(
    en="everything is dropped here: the NPU's operator only accepts keep_prob above 0",
    zh="此处会丢弃全部数据：NPU 算子只接受大于 0 的保留比例",
    todo_en="correct the probability",
    todo_zh="请更正保留比例",
    severity="blocking",
)
_LAYERS = (
    "tensorflow.layers.dropout",
    "tensorflow.layers.Dropout",
    "tensorflow.keras.layers.Dropout",
    "keras.layers.Dropout",
    "keras.layers.core.Dropout",
    "tensorflow.contrib.layers.dropout",
    "tensorflow.contrib.slim.dropout",
    "tensorflow.nn.rnn_cell.DropoutWrapper",
    "tensorflow.contrib.rnn.DropoutWrapper",
)


@rule(
    "dropout",
    title=Text(en="tf.nn.dropout becomes npu_ops.dropout", zh="tf.nn.dropout 改为 npu_ops.dropout"),
    source="npu_ops.py of Ascend/tensorflow; defect of convert_tf2npu: rate without parentheses",
    calls=("tensorflow.nn.dropout", *_LAYERS),
    minimal=False,
)
def dropout(call: ast.Call, view: View) -> Changes:
    """Replace the function, and `rate` by `keep_prob`."""
    if view.module.name_of(call.func) in _LAYERS:
        yield Leave(node=call, reason=_LAYER)
        return
    if not is_omitted(argument(call, "noise_shape", 2)):
        yield Leave(node=call, reason=_SMALLER_MASK)
        return
    rate = keyword(call, "rate")
    keep_prob = argument(call, "keep_prob", 1)
    if is_open(call) or (rate is None and keep_prob is None):
        yield view.notice(call, _OPEN)
        return
    if rate is not None and keep_prob is not None:
        # TensorFlow accepts both if one is None; the operator has no rate.
        both_set = not (is_none(rate.value) or is_none(keep_prob))
        severity: Severity = "blocking" if both_set else "look"
        yield view.notice(call, _BOTH, severity=severity)
        return
    probability = literal(rate.value) if rate is not None else literal(keep_prob)
    if probability is not None and probability == (1 if rate is not None else 0):
        yield view.notice(call, _ZERO)
        return
    changes = [replace(view.module, call.func, f"{view.npu('npu_ops')}.dropout")]
    if rate is not None:
        changes += _keep_prob_from(rate, view)
    yield view.rewrite(call, *changes, reason=_REASON, imports=("npu_ops",))


def _keep_prob_from(rate: ast.keyword, view: View) -> Iterator[Replacement]:
    """Replace `rate=r` by `keep_prob=1.0 - (r)`."""
    start, _ = view.module.span(rate)
    value = literal(rate.value)
    needs_no_parentheses = isinstance(
        rate.value, ast.Name | ast.Attribute | ast.Call | ast.Subscript
    ) or (isinstance(value, int | float) and value >= 0)
    before, after = ("keep_prob=1.0 - ", "") if needs_no_parentheses else ("keep_prob=1.0 - (", ")")
    first, _ = view.module.span(rate.value)
    yield Replacement(start=start, end=first, text="")
    yield from wrap(view.module, rate.value, before, after)
