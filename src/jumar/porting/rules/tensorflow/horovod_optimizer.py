"""Horovod's distributed optimizer and its initial broadcast become the NPU's."""

import ast

from jumar.porting.rewriting import Changes, Remark, Text, View, rule
from jumar.porting.rewriting.editing import argument, is_open, keyword, remove_arguments, replace
from jumar.porting.rules.tensorflow.horovod_names import SOURCE, called_member, horovod
from jumar.porting.rules.tensorflow.ranks import (
    RANK_IMPORTS,
    rank_id,
    several_ranks,
    tensorflow_name,
)

_OPTIMIZER = Text(
    en="HCCL averages the gradients over the ranks; with a single rank, nothing is added",
    zh="梯度由 HCCL 在各 rank 间求平均；单 rank 时不增加算子",
)
_DROPPED = Remark(
    en="arguments of Horovod's optimizer without a counterpart were removed: {names}",
    zh="Horovod 优化器的以下参数没有对应项，已删除：{names}",
    todo_en="compression and device arguments do not change results; check whether training "
    "depends on op or backward_passes_per_step: the NPU's optimizer averages the gradients of "
    "every step",
    todo_zh="compression 与 device 类参数不影响结果；op 与 backward_passes_per_step 请确认：NPU "
    "优化器每步都对梯度求平均",
)
_HARMLESS = 6
"""Positional arguments before `backward_passes_per_step` or `op` at the earliest, with Keras."""
_BROADCAST = Text(
    en="rank 0 broadcasts its initial values to the others",
    zh="rank 0 把初始值广播给其他 rank",
)
_TRAINABLE = Remark(
    en="Horovod broadcasts all global variables, the NPU's hook only the trainable ones: moving "
    "averages of batch normalisation and the global step keep the initial values of each rank",
    zh="Horovod 广播全部全局变量，NPU 的 hook 只广播可训练变量：BN 滑动平均和 global_step "
    "保持各 rank 自己的初值",
    todo_en="nothing to do if all ranks initialise them with constants or from the same "
    "checkpoint; otherwise broadcast them with hccl_ops.broadcast",
    todo_zh="若它们在各 rank 上初值为常量或来自同一 checkpoint，则无需处理；否则用 "
    "hccl_ops.broadcast 广播",
    severity="accuracy",
)
_METRIC = Remark(
    en="metrics are not averaged over the ranks: an empty callback replaces Horovod's",
    zh="指标不在各 rank 间平均：以空回调代替 Horovod 的回调",
    todo_en="if a schedule depends on the logged metrics, average them over the ranks yourself",
    todo_zh="若学习率等策略依赖这些指标，请自行在各 rank 间求平均",
)
_NO_NAME = Remark(
    en="the module has no name for TensorFlow itself, so the broadcast cannot be inserted",
    zh="该模块没有 TensorFlow 的名称，无法在此写出广播",
    todo_en="broadcast each variable with hccl_ops.broadcast([variable], 0) if RANK_SIZE is above "
    "1",
    todo_zh="RANK_SIZE 大于 1 时用 hccl_ops.broadcast([variable], 0) 广播每个变量",
    severity="blocking",
)


@rule(
    "horovod-optimizer",
    title=Text(
        en="Horovod's optimizer, hooks and callbacks become the NPU's",
        zh="Horovod 的优化器、hook 与回调改为 NPU 的",
    ),
    source=SOURCE,
    calls=horovod(
        "DistributedOptimizer",
        "BroadcastGlobalVariablesHook",
        "callbacks.BroadcastGlobalVariablesCallback",
        "callbacks.MetricAverageCallback",
        "broadcast_global_variables",
        "broadcast_variables",
    ),
)
def horovod_optimizer(call: ast.Call, view: View) -> Changes:
    """Replace the class or function, and keep the relevant arguments."""
    name = called_member(call, view)
    if name == "DistributedOptimizer":
        yield from _optimizer(call, view)
    elif name == "BroadcastGlobalVariablesHook":
        yield view.notice(call, _TRAINABLE)
        yield from _renamed(
            call, "NPUBroadcastGlobalVariablesHook", "root_rank", rank_id(view), view
        )
    elif name == "callbacks.BroadcastGlobalVariablesCallback":
        yield view.notice(call, _TRAINABLE)
        yield from _renamed(call, "NPUBroadcastGlobalVariablesCallback", "root_rank", "", view)
    elif name == "callbacks.MetricAverageCallback":
        yield view.notice(call, _METRIC)
        yield from _empty_callback(call, view)
    else:
        yield from _broadcast(call, view)


def _optimizer(call: ast.Call, view: View) -> Changes:
    optimizer = argument(call, "optimizer", 0)
    if optimizer is None or is_open(call):
        yield view.notice(call, _DROPPED.filled(names="*"), severity="blocking")
        return
    dropped_arguments = [
        value
        for value in [*call.args[1:], *call.keywords]
        if value is not optimizer and value is not keyword(call, "optimizer")
    ]
    # Positions differ between the functions for TensorFlow and Keras, so these have no names.
    names = [
        f"{value.arg}" if isinstance(value, ast.keyword) else ast.unparse(value)
        for value in dropped_arguments
    ]
    is_significant = {"op", "backward_passes_per_step"} & {*names} or len(call.args) > _HARMLESS
    if names:
        yield view.notice(
            call,
            _DROPPED.filled(names=", ".join(names)),
            severity="accuracy" if is_significant else "look",
        )
    wrapper = "npu_distributed_optimizer_wrapper"
    yield view.rewrite(
        call,
        replace(view.module, call.func, view.npu(wrapper)),
        *remove_arguments(view.module, call, set(dropped_arguments)),
        reason=_OPTIMIZER,
        imports=(wrapper,),
    )


def _renamed(call: ast.Call, name: str, parameter: str, index: str, view: View) -> Changes:
    """Replace the class, keeping the first argument and adding `index` if it is not empty."""
    root = argument(call, parameter, 0)
    root_text = "0" if root is None else view.module.source(root)
    by_keyword = keyword(call, parameter) is not None
    arguments = f"{parameter}={root_text}" if by_keyword else root_text
    if index:
        arguments += f", index={index}" if by_keyword else f", {index}"
    yield view.rewrite(
        call,
        replace(view.module, call, f"{view.npu(name)}({arguments})"),
        reason=_BROADCAST,
        imports=(name, *(RANK_IMPORTS if index else ())),
    )


def _empty_callback(call: ast.Call, view: View) -> Changes:
    is_keras_alone = (view.module.name_of(call.func) or "").startswith("horovod.keras.")
    for name in view.module.scopes.module.bindings:
        full_name = view.module.exported(name, frozenset())
        text = {
            "keras": f"{name}.callbacks.Callback()",
            "tensorflow.keras": f"{name}.callbacks.Callback()",
            "tensorflow": f"{name}.keras.callbacks.Callback()",
        }.get(full_name or "")
        # Callbacks of keras and tf.keras are not interchangeable.
        if text and is_keras_alone == (full_name == "keras"):
            yield view.rewrite(call, replace(view.module, call, text), reason=_METRIC.reason)
            return
    callbacks_module = "keras.callbacks" if is_keras_alone else "tensorflow.keras.callbacks"
    yield view.rewrite(
        call,
        replace(view.module, call, "Callback()"),
        reason=_METRIC.reason,
        imports=(f"{callbacks_module}:Callback",),
    )


def _broadcast(call: ast.Call, view: View) -> Changes:
    is_partial = called_member(call, view) == "broadcast_variables"
    tf = tensorflow_name(view)
    root = argument(call, "root_rank", 1 if is_partial else 0)
    variables = argument(call, "variables", 0) if is_partial else None
    if tf is None or (is_partial and variables is None):
        yield view.notice(call, _NO_NAME)
        return
    values = f"{tf}.global_variables()" if variables is None else view.module.source(variables)
    text = broadcast_op(view, tf, values, "0" if root is None else view.module.source(root))
    yield view.rewrite(
        call,
        replace(view.module, call, f"({text} if {several_ranks(view)} else {tf}.no_op())"),
        reason=_BROADCAST,
        imports=("hccl_ops", *RANK_IMPORTS),
    )


def broadcast_op(view: View, tf: str, variables: str, root: str) -> str:
    """An operation that sets variables to the values of one rank."""
    broadcast = f"{view.npu('hccl_ops')}.broadcast([variable], {root})[0]"
    return f"{tf}.group(*[{tf}.assign(variable, {broadcast}) for variable in {variables}])"
