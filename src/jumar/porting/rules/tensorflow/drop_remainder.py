"""Batches for training get a fixed size; those for evaluation keep their last samples."""

import ast

from jumar.porting.rewriting import Changes, Leave, Remark, Text, View, rule
from jumar.porting.rewriting.editing import add_argument, argument, is_open, literal
from jumar.porting.rules.tensorflow.input_purpose import Use, purpose_of
from jumar.porting.script.expressions import is_none

_POSITION = {"batch": 1, "padded_batch": 3, "map_and_batch": 3}
_AFTER_BATCHES = ("prefetch", "make_one_shot_iterator", "make_initializable_iterator")
_ARGUMENTS: dict[str, frozenset[str]] = {
    "map": frozenset({"num_parallel_calls"}),
    "shuffle": frozenset({"reshuffle_each_iteration"}),
    "interleave": frozenset({"cycle_length"}),
}
"""Arguments that identify a method as one of a data set."""
_REASON = Text(
    en="the graph on the NPU has fixed shapes: a smaller last batch would be another graph",
    zh="NPU 上的图形状固定：最后不足一批的数据会成为另一张图",
)
_EVAL = Remark(
    en="these batches are for evaluation or prediction, so drop_remainder=True would silently lose "
    "the last samples; without it, the graph is compiled again for the shape of the last batch",
    zh="该数据用于评估或预测，drop_remainder=True 会悄悄丢失最后的样本；"
    "不加则最后一批形状不同，需重新编译",
    todo_en="pad the last batch and exclude the padding from the metric, choose a batch size that "
    "divides the number of samples, or evaluate the remaining samples on the CPU",
    todo_zh="补齐最后一批并在指标中忽略补齐部分，或选用能整除样本数的 batch size，或在 CPU "
    "上评估剩余样本",
    severity="accuracy",
)
_UNSURE = Remark(
    en="it is unclear whether these batches are for training or evaluation",
    zh="此处无法判断该数据用于训练还是评估",
    todo_en="for training, add drop_remainder=True; for evaluation, which would lose samples, pad "
    "the last batch instead",
    todo_zh="用于训练则加 drop_remainder=True；用于评估会丢样本，请改为补齐最后一批",
    confidence="unsure",
)
_FALSE = Remark(
    en="drop_remainder is False in the training input: the graph is compiled again for the shape "
    "of an epoch's last batch",
    zh="训练输入中 drop_remainder 为 False：每轮最后一批形状不同，需重新编译图",
    todo_en="set it to True, or repeat before batching so that no batch is smaller",
    todo_zh="改为 True，或先 repeat 再 batch，使每批大小相同",
    severity="speed",
)
_SET = Text(en="the script sets drop_remainder itself", zh="脚本已自行设置 drop_remainder")


@rule(
    "drop-remainder",
    title=Text(en="Training batches get a fixed size", zh="训练数据的批大小固定"),
    source="TensorFlow 1.15 migration guide of CANN; defect of convert_tf2npu that forces it on "
    "evaluation as well",
    nodes=(ast.Call,),
)
def drop_remainder(call: ast.Call, view: View) -> Changes:
    """Add `drop_remainder` to data sets that are batched for training."""
    method = _method(call, view)
    if method is None:
        return
    decision = argument(call, "drop_remainder", _POSITION[method])
    if decision is None and is_open(call):
        yield view.notice(call, _UNSURE)
        return
    use = purpose_of(call, view)
    if decision is not None:
        if literal(decision) is False and use.purpose == "train" and not _repeats(call):
            yield view.notice(call, _FALSE, confidence=use.confidence)
        else:
            yield Leave(node=call, reason=_SET)
        return
    if _repeats(call):
        # An endless data set has no smaller batch, regardless of its purpose.
        use = Use(purpose="train", confidence="certain")
    if use.purpose == "other":
        yield view.notice(call, _EVAL, confidence=use.confidence)
    elif use.purpose == "unknown":
        yield view.notice(call, _UNSURE)
    else:
        text = use.test or "True"
        yield view.rewrite(
            call,
            add_argument(view.module, call, f"drop_remainder={text}"),
            reason=_REASON,
            confidence=use.confidence,
        )


def _method(call: ast.Call, view: View) -> str | None:
    """The tf.data method by which a call batches a data set."""
    if view.module.name_of(call.func) == "tensorflow.data.experimental.map_and_batch":
        return "map_and_batch"
    if not isinstance(call.func, ast.Attribute) or call.func.attr not in ("batch", "padded_batch"):
        return None
    kind = view.kinds.of(call.func.value)
    if kind == "Dataset" or (
        kind is None and view.module.imports("tensorflow") and _is_only_of_data_sets(call, view)
    ):
        return call.func.attr
    return None


def _is_only_of_data_sets(call: ast.Call, view: View) -> bool:
    """Whether a method, or another one called on its receiver or result, needs a data set."""
    assert isinstance(call.func, ast.Attribute)
    receiver = call.func.value
    return (
        call.func.attr == "padded_batch"
        or _method_on(call, view) in _AFTER_BATCHES
        or (
            isinstance(receiver, ast.Name)
            and any(_is_data_set(use, view) for use in view.module.uses(receiver))
        )
    )


def _is_data_set(name: ast.Name, view: View) -> bool:
    """Whether the method called on a name, or one of its arguments, identifies a data set."""
    method = _method_on(name, view)
    if method in _AFTER_BATCHES:
        return True
    outer = view.module.parent(name)
    call = view.module.parent(outer) if outer is not None else None
    names = {passed.arg for passed in call.keywords} if isinstance(call, ast.Call) else set[str]()
    return method in _ARGUMENTS and bool(names & _ARGUMENTS[method])


def _method_on(node: ast.expr, view: View) -> str:
    """The method that is called on an expression; empty if there is none."""
    outer = view.module.parent(node)
    if not isinstance(outer, ast.Attribute):
        return ""
    call = view.module.parent(outer)
    return outer.attr if isinstance(call, ast.Call) and call.func is outer else ""


def _repeats(call: ast.Call) -> bool:
    """Whether an endless `.repeat()` precedes the batches in the same chain."""
    current: ast.expr = call
    while isinstance(current, ast.Call) and isinstance(current.func, ast.Attribute):
        if current.func.attr == "repeat" and not current.args and not current.keywords:
            return True
        if current.func.attr == "repeat" and current.args:
            return literal(current.args[0]) in (-1,) or is_none(current.args[0])
        current = current.func.value
    return False
