"""Losses whose inputs preceded their labels before TensorFlow 1.0."""

import ast
import re
from typing import Literal

from jumar.porting.rewriting import (
    Changes,
    Confidence,
    Leave,
    Remark,
    Replacement,
    Text,
    View,
    rule,
)
from jumar.porting.rewriting.editing import argument, slots
from jumar.porting.rules.tensorflow.old_names import OLD
from jumar.porting.rules.tensorflow.release_choices import chooses_release
from jumar.porting.script.expressions import last_name

Order = Literal["old", "new", "unknown"]
Role = Literal["labels", "inputs", ""]

_SAMPLED = (
    *("weights", "biases", "inputs", "labels", "num_sampled", "num_classes", "num_true"),
    *("sampled_values", "remove_accidental_hits", "partition_strategy", "name"),
)
_PARAMETERS = {
    "tensorflow.nn.nce_loss": _SAMPLED,
    "tensorflow.nn.sampled_softmax_loss": _SAMPLED,
    "tensorflow.nn.ctc_loss": (
        *("inputs", "labels", "sequence_length", "preprocess_collapse_repeated"),
        "ctc_merge_repeated",
    ),
}
"""The parameters in their old order, with their current names."""
_SEQUENCE_LOSSES = tuple(
    f"tensorflow.{module}.{name}"
    for module in ("nn.seq2seq", "contrib.legacy_seq2seq")
    for name in ("sequence_loss", "sequence_loss_by_example", "model_with_buckets")
)
_LOSS_POSITION = {"sequence_loss": 5, "sequence_loss_by_example": 4, "model_with_buckets": 6}
_LABELS_NAME = re.compile(r"label|target")
_INPUTS_NAME = re.compile(r"emb|hidden|logit|inputs?(?![a-z])|feature")
_SAME_ROLE = tuple(
    f"tensorflow.{name}"
    for name in ("cast", "convert_to_tensor", "expand_dims", "identity", "reshape", "to_int64")
)
"""Functions whose argument has the same role as their result."""
_MAX_DEPTH = 8
_REASON = Text(
    en="since TensorFlow 1.0, the labels precede the inputs here",
    zh="自 TensorFlow 1.0 起，此处 labels 在 inputs 之前",
)
_UNSURE = Remark(
    en="before TensorFlow 1.0, the inputs preceded the labels here, and since then they follow "
    "them; it is unclear for which order this was written",
    zh="TensorFlow 1.0 之前此处 inputs 在 labels 之前，之后则相反；无法判断该调用按哪种顺序书写",
    todo_en="pass the two arguments by keyword: labels= and inputs=",
    todo_zh="请为这两个参数写明 labels= 与 inputs=",
    confidence="unsure",
)
_CHOOSES = Text(
    en="the script itself chooses between the orders of several releases",
    zh="脚本已根据版本自行选择参数顺序",
)
_LOSS_FUNCTION = Remark(
    en="since TensorFlow 1.0, a softmax_loss_function is called with labels= and logits=; this one "
    "has other parameters",
    zh="自 TensorFlow 1.0 起，softmax_loss_function 以 labels= 与 logits= 调用；该函数的参数名不同",
    todo_en="rename its parameters, and their uses, to labels and logits",
    todo_zh="将其参数（及函数体内的使用）改名为 labels 与 logits",
    severity="blocking",
)


@rule(
    "sampled-losses",
    title=Text(
        en="Losses whose argument order changed in TensorFlow 1.0 get keywords",
        zh="TensorFlow 1.0 前后参数顺序不同的损失函数改用关键字参数",
    ),
    source="release notes of TensorFlow 1.0; signatures of 0.12 and 1.15",
    calls=(*_PARAMETERS, *_SEQUENCE_LOSSES),
)
def sampled_losses(call: ast.Call, view: View) -> Changes:
    """Add keywords to a call in the old order; report a call whose order is unclear."""
    name = view.kinds.called(call) or ""
    if name in _SEQUENCE_LOSSES:
        yield from _loss_functions(call, name.rpartition(".")[2], view)
        return
    order = _PARAMETERS[name]
    inputs_position = order.index("inputs")
    has_starred = any(isinstance(value, ast.Starred) for value in call.args)
    if len(call.args) <= inputs_position and not has_starred:
        return
    if chooses_release(call, view):
        yield Leave(node=call, reason=_CHOOSES)
        return
    order_used, confidence = _order(call, inputs_position, view)
    if order_used == "unknown" or (
        order_used == "old" and (has_starred or len(call.args) > len(order))
    ):
        yield view.notice(call, _UNSURE)
    elif order_used == "old":
        name_changes = [
            Replacement(
                start=slot.start,
                end=slot.start,
                text=f"{order[position]}=",
                side="open",
                width=len(view.module.text),
            )
            for slot in slots(view.module, call)
            if isinstance(slot.node, ast.expr)
            for position in [call.args.index(slot.node)]
            if position >= inputs_position
        ]
        yield view.rewrite(call, *name_changes, reason=_REASON, confidence=confidence)


def _order(call: ast.Call, inputs_position: int, view: View) -> tuple[Order, Confidence]:
    """The order in which a call passes labels and inputs, and how certain that is."""
    keywords = {passed.arg for passed in call.keywords}
    if any(isinstance(value, ast.Starred) for value in call.args[: inputs_position + 2]):
        return "unknown", "unsure"
    if len(call.args) == inputs_position + 1:
        # The other one is passed by keyword: no call passes a parameter twice.
        if "labels" in keywords:
            return "old", "certain"
        if "inputs" in keywords or "logits" in keywords:
            return "new", "certain"
        return "unknown", "unsure"
    first_role, second_role = (
        _role(value, view, 0) for value in call.args[inputs_position : inputs_position + 2]
    )
    by_role: Order = "unknown"
    if first_role != second_role:
        by_role = "old" if first_role == "inputs" or second_role == "labels" else "new"
    if not _has_old_names(view):
        return by_role, "likely"
    if by_role == "new" or (by_role == "unknown" and first_role):
        return "unknown", "unsure"
    return "old", "certain"


def _role(node: ast.expr, view: View, depth: int) -> Role:
    """Whether an expression is labels or inputs, by its value or else by its name."""
    if depth > _MAX_DEPTH:
        return ""
    if isinstance(node, ast.Call):
        return _role_of_result(node, view, depth)
    if isinstance(node, ast.Name):
        value = view.module.assigned_value(node)
        if isinstance(value, ast.Call):
            role = _role(value, view, depth + 1)
            if role:
                return role
    name = last_name(node)
    labels, inputs = (
        bool(pattern.search(name.lower())) for pattern in (_LABELS_NAME, _INPUTS_NAME)
    )
    if labels == inputs:
        return ""
    return "labels" if labels else "inputs"


def _role_of_result(call: ast.Call, view: View, depth: int) -> Role:
    name = view.module.name_of(call.func) or ""
    if name in _SAME_ROLE and call.args:
        return _role(call.args[0], view, depth + 1)
    if name == "tensorflow.sparse_placeholder":
        return "labels"
    if name == "tensorflow.nn.embedding_lookup":
        return "inputs"
    if name == "tensorflow.placeholder":
        dtype = argument(call, "dtype", 0)
        kind = (view.module.name_of(dtype) or "") if dtype is not None else ""
        if kind.startswith("tensorflow.int"):
            return "labels"
    return ""


def _has_old_names(view: View) -> bool:
    """Whether the script uses names removed in 1.15, and does not choose between releases."""
    return any(
        isinstance(node, ast.Attribute)
        and (old := OLD.get(view.module.name_of(node) or "")) is not None
        and bool(old.current_name)
        and not chooses_release(node, view)
        for node in view.module.scopes.nodes
    )


def _loss_functions(call: ast.Call, name: str, view: View) -> Changes:
    """Report functions of the module that TensorFlow 1.15 cannot call with its keywords."""
    loss_function = argument(call, "softmax_loss_function", _LOSS_POSITION[name])
    if loss_function is None:
        return
    for function in _functions(loss_function, view, 0):
        parameters = function.args
        names = {parameter.arg for parameter in (*parameters.args, *parameters.kwonlyargs)}
        if parameters.kwarg is None and not names >= {"labels", "logits"}:
            yield view.notice(function, _LOSS_FUNCTION)


def _functions(node: ast.expr, view: View, depth: int) -> list[ast.FunctionDef | ast.Lambda]:
    """The functions of the module that a name may refer to."""
    if isinstance(node, ast.Lambda):
        return [node]
    if not isinstance(node, ast.Name) or depth > _MAX_DEPTH:
        return []
    functions: list[ast.FunctionDef | ast.Lambda] = []
    for binding in view.module.bindings(node):
        if isinstance(binding.node, ast.FunctionDef):
            functions.append(binding.node)
        elif binding.kind == "assignment" and binding.value is not None:
            functions += _functions(binding.value, view, depth + 1)
    return functions
