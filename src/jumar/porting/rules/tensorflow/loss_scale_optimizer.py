"""TensorFlow's loss-scale optimizers become the NPU's."""

import ast

from jumar.porting.options import LossScale
from jumar.porting.rewriting import Changes, Remark, Replacement, Text, View, rule
from jumar.porting.rewriting.editing import argument, is_open, keyword, remove_arguments, replace
from jumar.porting.rules.tensorflow.loss_scale import manager, number_text
from jumar.porting.rules.tensorflow.optimizer_sites import is_distributed, values_of
from jumar.porting.rules.tensorflow.ranks import RANK_IMPORTS, several_ranks
from jumar.porting.script.nodes import walk

_EXPERIMENTAL = ("tensorflow.train.experimental.MixedPrecisionLossScaleOptimizer",)
_REWRITE = ("tensorflow.train.experimental.enable_mixed_precision_graph_rewrite",)
_CONTRIB = ("tensorflow.contrib.mixed_precision.LossScaleOptimizer",)
_KERAS = (
    "tensorflow.keras.mixed_precision.experimental.LossScaleOptimizer",
    "tensorflow.keras.mixed_precision.experimental.Policy",
    "tensorflow.keras.mixed_precision.experimental.set_policy",
)
_DYNAMIC = LossScale(
    kind="exponential",
    init_loss_scale=2.0**15,
    incr_every_n_steps=2000,
    decr_every_n_nan_or_inf=1,
    decr_ratio=0.5,
)
_REASON = Text(
    en="the NPU detects overflows in its status register, not with tf.is_finite on every gradient; "
    "the rule for the scale is unchanged",
    zh="NPU 通过状态寄存器检测溢出，不再对每个梯度使用 tf.is_finite；loss scale 的规则不变",
)
_REASON_OPTION = Text(
    en="the NPU detects overflows in its status register, not with tf.is_finite on every gradient; "
    "the scale is that of --loss-scale, instead of the script's",
    zh="NPU 通过状态寄存器检测溢出，不再对每个梯度使用 tf.is_finite；采用 --loss-scale "
    "指定的值，而非脚本原来的值",
)
_OWN = Remark(
    en="--loss-scale has no effect here: the script passes a loss scale that it creates itself",
    zh="--loss-scale 在此处不生效：脚本传入了自己创建的 loss scale",
    todo_en="for the scale of the option, pass {manager} instead",
    todo_zh="若要采用该选项的值，请改为传入 {manager}",
    severity="accuracy",
)
_PRECISION = Remark(
    en="this call also switched the graph to mixed precision, which on the NPU is the session "
    "option precision_mode",
    zh="该调用还会把图切换为混合精度，NPU 上由会话选项 precision_mode 完成",
    todo_en="port again with --precision allow_mix_precision",
    todo_zh="移植时加上 --precision allow_mix_precision",
    severity="accuracy",
)
_UNREAD = Remark(
    en="it is unclear whether the loss scale is a number, 'dynamic' or an object",
    zh="此处无法判断 loss scale 是数值、'dynamic' 还是对象",
    todo_en="use NPULossScaleOptimizer(optimizer, manager) with "
    "FixedLossScaleManager(loss_scale=...) or ExponentialUpdateLossScaleManager(...)",
    todo_zh="改写为 NPULossScaleOptimizer(optimizer, manager)，manager 用 "
    "FixedLossScaleManager(loss_scale=...) 或 ExponentialUpdateLossScaleManager(...)",
    severity="blocking",
)
_OF_KERAS = Remark(
    en="mixed precision and loss scales of Keras policies have no effect on the NPU",
    zh="Keras 策略的混合精度与 loss scale 在 NPU 上不生效",
    todo_en="remove it, port again with --precision allow_mix_precision, and compile the model "
    "with a tf.train optimizer that is wrapped in NPULossScaleOptimizer",
    todo_zh="删除它，移植时加上 --precision allow_mix_precision，并用 NPULossScaleOptimizer 包装 "
    "tf.train 的优化器后再 compile",
    severity="accuracy",
)


@rule(
    "loss-scale-optimizer",
    title=Text(
        en="TensorFlow's loss-scale optimizers become NPULossScaleOptimizer",
        zh="TensorFlow 的 loss scale 优化器改为 NPULossScaleOptimizer",
    ),
    source="npu_loss_scale_optimizer.py of Ascend/tensorflow; mixed_precision.py of TensorFlow "
    "1.15",
    calls=(*_EXPERIMENTAL, *_REWRITE, *_CONTRIB, *_KERAS),
)
def loss_scale_optimizer(call: ast.Call, view: View) -> Changes:
    """Replace the class, and the loss scale by a manager: that of `--loss-scale`, if given."""
    name = view.module.name_of(call.func)
    if name in _KERAS:
        yield view.notice(call, _OF_KERAS)
        return
    optimizer = argument(call, "opt", 0)
    parameter = "loss_scale_manager" if name in _CONTRIB else "loss_scale"
    scale_argument = argument(call, parameter, 1)
    if optimizer is None or is_open(call) or (scale_argument is None and name not in _REWRITE):
        yield view.notice(call, _UNREAD)
        return
    if name in _REWRITE and not view.options.precision:
        yield view.notice(call, _PRECISION)
    scale = (None, None) if name in _CONTRIB else _manager(scale_argument, view)
    if scale is None:
        yield view.notice(call, _UNREAD)
        return
    reason = _REASON
    if view.options.loss_scale is not None:
        requested = manager(view, view.options.loss_scale)
        if scale == (None, None):
            yield view.notice(call, _OWN.filled(manager=requested[0]))
        elif scale != requested:
            scale, reason = requested, _REASON_OPTION
    changes = [replace(view.module, call.func, view.npu("NPULossScaleOptimizer"))]
    changes += _arguments(call, parameter, scale_argument, scale[0], view)
    imports: tuple[str, ...] = ("NPULossScaleOptimizer", *((scale[1],) if scale[1] else ()))
    if _is_distributed(optimizer, view):
        _, end = view.module.span(scale_argument or optimizer)
        changes.append(
            Replacement(
                start=end,
                end=end,
                text=f", is_distributed={several_ranks(view)}",
                side="close",
                width=_outside(call, view),
            )
        )
        imports += RANK_IMPORTS
    yield view.rewrite(call, *changes, reason=reason, imports=imports)


def _arguments(
    call: ast.Call, parameter: str, scale_argument: ast.expr | None, scale: str | None, view: View
) -> list[Replacement]:
    """Replace the loss scale by the NPU optimizer's argument, and remove other arguments."""
    changes: list[Replacement] = []
    scale_keyword = keyword(call, parameter)
    if scale_keyword is not None and parameter != "loss_scale_manager":
        start, _ = view.module.span(scale_keyword)
        if keyword(call, "opt") is not None:
            changes.append(
                Replacement(start=start, end=start + len(parameter), text="loss_scale_manager")
            )
        else:
            # Without a keyword, as it is usually written: `opt, manager`.
            value_start, _ = view.module.span(scale_keyword.value)
            changes.append(Replacement(start=start, end=value_start, text=""))
    if scale is not None and scale_argument is not None:
        changes.append(replace(view.module, scale_argument, scale))
    elif scale is not None:
        optimizer = argument(call, "opt", 0)
        assert optimizer is not None
        _, end = view.module.span(optimizer)
        name = "loss_scale_manager=" if keyword(call, "opt") is not None else ""
        changes.append(
            Replacement(
                start=end,
                end=end,
                text=f", {name}{scale}",
                side="close",
                width=_outside(call, view),
            )
        )
    others = {passed for passed in call.keywords if passed.arg not in ("opt", parameter)}
    return [*changes, *remove_arguments(view.module, call, set(others))]


def _outside(call: ast.Call, view: View) -> int:
    """A width that puts further arguments behind whatever is wrapped around the optimizer."""
    start, end = view.module.span(call)
    return end - start


def _manager(scale: ast.expr | None, view: View) -> tuple[str | None, str | None] | None:
    """The expression for a manager and its class; both None if `scale` stays, None if unclear."""
    if scale is None or (isinstance(scale, ast.Constant) and scale.value == "dynamic"):
        return manager(view, _DYNAMIC)
    if isinstance(scale, ast.Constant) and isinstance(scale.value, int | float):
        manager_name = "FixedLossScaleManager"
        return (
            f"{view.npu(manager_name)}(loss_scale={number_text(float(scale.value))})",
            manager_name,
        )
    if view.kinds.of(scale) == "LossScale":
        return None, None
    return None


def _is_distributed(optimizer: ast.expr, view: View) -> bool:
    return view.options.distributed or any(
        is_distributed(node, view) for value in values_of(optimizer, view) for node in walk(value)
    )
