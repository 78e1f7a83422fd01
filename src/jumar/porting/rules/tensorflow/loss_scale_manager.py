"""TensorFlow's loss scales become the NPU's managers, with the same values."""

import ast

from jumar.porting.rewriting import Changes, Remark, Replacement, Text, View, rule
from jumar.porting.rewriting.editing import (
    argument,
    is_open,
    keyword,
    literal,
    open_parenthesis,
    replace,
)

_REASON_FIXED = Text(
    en="the NPU's optimizer expects a manager as its loss scale",
    zh="NPU 的优化器通过 manager 设置 loss scale",
)
_REASON = Text(
    en="the NPU's manager keeps TensorFlow's rule: the scale is lowered at the first overflow, by "
    "the factor by which it is raised; the manager's defaults (0.8 after two overflows) differ",
    zh="在 NPU 的 manager 中保持相同规则：TensorFlow 首次溢出即按增大倍数缩小；manager "
    "默认值（两次后乘 0.8）与之不同",
)
_SAME = Text(
    en="the NPU's manager of the same name accepts the same arguments and needs no tf.is_finite",
    zh="NPU 的同名 manager 参数相同，且不依赖 tf.is_finite",
)
_OPEN = Remark(
    en="arguments are passed with * or **: they cannot be renamed here",
    zh="参数由 * 或 ** 传入，此处无法改名",
    todo_en="use ExponentialUpdateLossScaleManager(init_loss_scale=, incr_every_n_steps=, "
    "incr_ratio=, decr_every_n_nan_or_inf=1, decr_ratio=1/incr_ratio)",
    todo_zh="写成 ExponentialUpdateLossScaleManager(init_loss_scale=, incr_every_n_steps=, "
    "incr_ratio=, decr_every_n_nan_or_inf=1, decr_ratio=1/incr_ratio)",
    severity="accuracy",
)
_FIXED = ("tensorflow.train.experimental.FixedLossScale",)
_DYNAMIC = ("tensorflow.train.experimental.DynamicLossScale",)
_CONTRIB = tuple(
    f"tensorflow.contrib.mixed_precision.{name}"
    for name in ("FixedLossScaleManager", "ExponentialUpdateLossScaleManager")
)
_PARAMETERS = (
    ("initial_loss_scale", "init_loss_scale", "2**15"),
    ("increment_period", "incr_every_n_steps", "2000"),
    ("multiplier", "incr_ratio", "2"),
)


@rule(
    "loss-scale-manager",
    title=Text(
        en="TensorFlow's loss scales become managers", zh="TensorFlow 的 loss scale 改为 manager"
    ),
    source="npu_loss_scale_manager.py of Ascend/tensorflow; loss_scale.py of TensorFlow 1.15",
    calls=(*_FIXED, *_DYNAMIC, *_CONTRIB),
)
def loss_scale_manager(call: ast.Call, view: View) -> Changes:
    """Replace the class of a loss scale, and its arguments if they have other names."""
    name = view.module.name_of(call.func)
    if name in _CONTRIB:
        manager = name.rpartition(".")[2]
        yield view.rewrite(
            call,
            replace(view.module, call.func, view.npu(manager)),
            reason=_SAME,
            imports=(manager,),
        )
    elif is_open(call):
        yield view.notice(call, _OPEN)
    elif name in _FIXED:
        manager = "FixedLossScaleManager"
        value = argument(call, "loss_scale_value", 0)
        changes = [replace(view.module, call.func, view.npu(manager))]
        passed = keyword(call, "loss_scale_value")
        if passed is not None:
            start, _ = view.module.span(passed)
            changes.append(
                Replacement(start=start, end=start + len("loss_scale_value"), text="loss_scale")
            )
        elif value is not None:
            start = open_parenthesis(view.module, call) + 1
            changes.append(Replacement(start=start, end=start, text="loss_scale="))
        yield view.rewrite(call, *changes, reason=_REASON_FIXED, imports=(manager,))
    elif name in _DYNAMIC:
        manager = "ExponentialUpdateLossScaleManager"
        arguments_by_name = [
            (new, _source(argument(call, old, position), default, view))
            for position, (old, new, default) in enumerate(_PARAMETERS)
        ]
        ratio = dict(arguments_by_name)["incr_ratio"]
        texts = [f"{new}={value}" for new, value in arguments_by_name]
        texts += ["decr_every_n_nan_or_inf=1", f"decr_ratio={_inverse(ratio)}"]
        _, end = view.module.span(call)
        arguments = Replacement(
            start=open_parenthesis(view.module, call), end=end, text=f"({', '.join(texts)})"
        )
        yield view.rewrite(
            call,
            replace(view.module, call.func, view.npu(manager)),
            arguments,
            reason=_REASON,
            imports=(manager,),
        )


def _source(value: ast.expr | None, default: str, view: View) -> str:
    return default if value is None else view.module.source(value)


def _inverse(ratio: str) -> str:
    """The reciprocal of an expression, as a number if it is one."""
    value = literal(ast.parse(ratio, mode="eval").body)
    if isinstance(value, int | float) and value in (2, 4, 8):
        return repr(1 / value)
    return f"1.0 / {ratio}" if ratio.isidentifier() or value is not None else f"1.0 / ({ratio})"
