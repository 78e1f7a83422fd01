"""Report optimizers to which no loss scale could be added."""

import ast
from dataclasses import replace

from jumar.porting.rewriting import Changes, Remark, Text, View, rule
from jumar.porting.rewriting.editing import argument
from jumar.porting.rules.tensorflow.keras_runs import compiles_keras
from jumar.porting.rules.tensorflow.optimizer_sites import unreached_classes

_CLASS = Remark(
    en="the optimizer is created where this class is called, so no loss scale was added to it",
    zh="优化器在调用该类的位置创建，因此未能在其外加上 loss scale",
    todo_en="wrap the optimizer that the call returns: NPULossScaleOptimizer(optimizer, manager)",
    todo_zh="包装调用所得的优化器：NPULossScaleOptimizer(optimizer, manager)",
    severity="accuracy",
    confidence="likely",
)

_NAME = Remark(
    en="the optimizer is chosen by name here, so no loss scale was added to it",
    zh="此处按名称选择优化器，因此未能在其外加上 loss scale",
    todo_en="instead, pass NPULossScaleOptimizer(optimizer, manager) with a tf.train optimizer",
    todo_zh="改为传入 NPULossScaleOptimizer(optimizer, manager) 包装的 tf.train 优化器",
    severity="accuracy",
    confidence="likely",
)
_KERAS = replace(
    _NAME,
    en="Keras computes the gradients of this model without a tf.train optimizer, and only those "
    "can have a loss scale",
    zh="该模型的梯度由 Keras 计算，未使用 tf.train 的优化器，而 loss scale 只能加在后者外面",
)
_BY_NAME = "tensorflow.contrib.layers.optimize_loss"


@rule(
    "loss-scale-unreached",
    title=Text(en="Optimizers without the loss scale", zh="未加上 loss scale 的优化器"),
    source="npu_loss_scale_optimizer.py of Ascend/tensorflow",
)
def loss_scale_unreached(_: ast.Module, view: View) -> Changes:
    """Report optimizer classes in tables, names of optimizers, and optimizers of Keras."""
    if view.options.loss_scale is None:
        return
    for node in unreached_classes(view):
        yield view.notice(node, _CLASS)
    for node in view.module.calls:
        if view.module.name_of(node.func) == _BY_NAME:
            optimizer = argument(node, "optimizer", 3)
            is_reached = not (
                isinstance(optimizer, ast.Constant) and isinstance(optimizer.value, str)
            )
            remark = _NAME
        elif compiles_keras(node, view):
            optimizer = argument(node, "optimizer", 0)
            is_reached = view.kinds.of(optimizer) == "Optimizer"
            remark = _KERAS
        else:
            continue
        if optimizer is not None and not is_reached:
            yield view.notice(optimizer, remark)
