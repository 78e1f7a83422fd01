"""With several devices, Keras models average their gradients and start with equal variables."""

import ast
from collections.abc import Iterator

from jumar.porting.rewriting import Changes, Remark, Text, View, rule
from jumar.porting.rewriting.editing import add_argument, argument, is_open, replace, wrap
from jumar.porting.rules.tensorflow.keras_runs import compiles_keras, runs_keras
from jumar.porting.rules.tensorflow.optimizer_sites import is_distributed, values_of
from jumar.porting.script.expressions import is_none

_COMPILE = Text(
    en="the optimizer of the model averages its gradients over the ranks; Keras still resolves "
    "names of optimizers",
    zh="模型优化器在各 rank 间平均梯度；字符串名称仍由 Keras 解析",
)
_FIT = Text(
    en="all ranks start with the variables of rank 0; npu_callbacks_append only accepts lists",
    zh="所有 rank 以 rank 0 的变量开始；npu_callbacks_append 只保留 list",
)
_UNREAD = Remark(
    en="arguments are passed with * or **: the optimizer or the callbacks are not visible",
    zh="参数由 * 或 ** 传入，此处看不到优化器或回调",
    todo_en="compile with npu_distributed_optimizer_wrapper(optimizer), and fit with "
    "npu_callbacks_append(callbacks_list=[...])",
    todo_zh="compile 用 npu_distributed_optimizer_wrapper(optimizer)，fit 用 "
    "npu_callbacks_append(callbacks_list=[...])",
    severity="accuracy",
)
_WRAPPER = "npu_distributed_optimizer_wrapper"
_APPEND = "npu_callbacks_append"
_FITS = {"fit": 5, "fit_generator": 4}


@rule(
    "keras-distributed",
    title=Text(en="Keras models train on several devices", zh="Keras 模型多卡训练"),
    source="npu_optimizer.py and npu_callbacks.py of Ascend/tensorflow",
    nodes=(ast.Call,),
)
def keras_distributed(call: ast.Call, view: View) -> Changes:
    """Wrap the optimizer of `compile`, and add the broadcast to `fit`."""
    if not view.options.distributed or not isinstance(call.func, ast.Attribute):
        return
    if compiles_keras(call, view):
        yield from _compiled(call, view)
    elif call.func.attr in _FITS and runs_keras(call, view):
        yield from _fitted(call, _FITS[call.func.attr], view)


def _compiled(call: ast.Call, view: View) -> Changes:
    optimizer = argument(call, "optimizer", 0)
    if optimizer is None:
        if is_open(call):
            yield view.notice(call, _UNREAD)
        return
    if _is_wrapped(optimizer, view):
        return
    yield view.rewrite(
        optimizer,
        *wrap(view.module, optimizer, f"{view.npu(_WRAPPER)}(", ")"),
        reason=_COMPILE,
        imports=(_WRAPPER,),
    )


def _is_wrapped(optimizer: ast.expr, view: View) -> bool:
    """Whether an optimizer already averages, or is one of tf.train, which another rule wraps."""
    return any(
        view.kinds.of(value) == "Optimizer" or is_distributed(value, view)
        for value in values_of(optimizer, view)
    )


def _fitted(call: ast.Call, position: int, view: View) -> Changes:
    if any("BroadcastGlobalVariables" in name for name in _names(view)):
        return
    callbacks = argument(call, "callbacks", position)
    if callbacks is not None and view.is_npu(callbacks):
        return
    if callbacks is None and is_open(call):
        yield view.notice(call, _UNREAD)
        return
    append = view.npu(_APPEND)
    if callbacks is None:
        change = (add_argument(view.module, call, f"callbacks={append}(callbacks_list=[])"),)
    elif is_none(callbacks):
        change = (replace(view.module, callbacks, f"{append}(callbacks_list=[])"),)
    elif isinstance(callbacks, ast.List):
        change = wrap(view.module, callbacks, f"{append}(callbacks_list=", ")")
    else:
        change = wrap(view.module, callbacks, f"{append}(callbacks_list=list((", ") or ()))")
    yield view.rewrite(call, *change, reason=_FIT, imports=(_APPEND,))


def _names(view: View) -> Iterator[str]:
    for node in view.module.scopes.nodes:
        if isinstance(node, ast.Attribute):
            yield node.attr
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            yield (view.module.name_of(node.func) or "").rpartition(".")[2]
