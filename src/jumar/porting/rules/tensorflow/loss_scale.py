"""Optimizers scale the loss, as set by `--loss-scale`."""

import ast

from jumar.porting.options import LossScale
from jumar.porting.rewriting import Changes, Leave, Remark, Text, View, rule
from jumar.porting.rules.tensorflow.optimizer_lives import is_conditional
from jumar.porting.rules.tensorflow.optimizer_sites import (
    LOSS_SCALED,
    OTHER_LOSS_SCALES,
    Site,
    is_distributed,
    optimizers,
    sites,
)
from jumar.porting.rules.tensorflow.ranks import RANK_IMPORTS, several_ranks
from jumar.porting.script.nodes import walk

_REASON = Text(
    en="small gradients vanish in float16: the loss is scaled up before the gradients are "
    "computed, the gradients are scaled down again, and steps that overflow are skipped",
    zh="float16 下过小的梯度会变为 0：先放大 loss 再求梯度，求得后再缩小，溢出的一步不更新参数",
)
_DONE = Text(en="it already scales the loss", zh="已使用 loss scale")
_IN_ESTIMATOR = Remark(
    en="this optimizer is passed to an Estimator, which uses it in its own graph: variables of a "
    "loss scale that is created here would be in another graph",
    zh="该优化器交给 Estimator 在另一张图中使用，而此处创建的 loss scale 变量属于当前图",
    todo_en="pass a function that creates the optimizer (optimizer=lambda: "
    "NPULossScaleOptimizer(...)), which is called within the Estimator's graph",
    todo_zh="改为传入创建优化器的函数（optimizer=lambda: NPULossScaleOptimizer(...)），由 "
    "Estimator 在其图中调用",
    severity="accuracy",
)

_CONDITIONAL = Remark(
    en="the script wraps this optimizer only under a condition: otherwise, its loss is not scaled",
    zh="脚本只在满足条件时才包装该优化器，否则不使用 loss scale",
    todo_en="train with the condition met, or wrap the optimizer unconditionally",
    todo_zh="训练时满足该条件，或去掉条件，始终包装该优化器",
    severity="accuracy",
    confidence="likely",
)


def manager(view: View, scale: LossScale) -> tuple[str, str]:
    """The expression for a port's loss-scale manager, and the name to import."""
    if scale.kind == "fixed":
        name = "FixedLossScaleManager"
        return f"{view.npu(name)}(loss_scale={number_text(scale.init_loss_scale)})", name
    name = "ExponentialUpdateLossScaleManager"
    ratio = "" if scale.incr_ratio == 2 else f"incr_ratio={number_text(scale.incr_ratio)}, "
    return (
        f"{view.npu(name)}(init_loss_scale={number_text(scale.init_loss_scale)}, "
        f"incr_every_n_steps={scale.incr_every_n_steps}, "
        f"decr_every_n_nan_or_inf={scale.decr_every_n_nan_or_inf}, {ratio}"
        f"decr_ratio={number_text(scale.decr_ratio)})",
        name,
    )


def number_text(value: float) -> str:
    """A number as a programmer would write it: `1024`, `2**15`, `0.5`."""
    if value != int(value):
        return repr(value)
    integer = int(value)
    if integer >= 2**15 and integer & (integer - 1) == 0:
        return f"2**{integer.bit_length() - 1}"
    return str(integer)


_MAX_LINE_LENGTH = 100
"""If the wrapped optimizer makes a line longer than this, it is split into several lines."""


@rule(
    "loss-scale",
    title=Text(en="Optimizers scale the loss", zh="优化器加入 loss scale"),
    source="npu_loss_scale_optimizer.py and npu_loss_scale_manager.py of Ascend/tensorflow",
)
def loss_scale(_: ast.Module, view: View) -> Changes:
    """Wrap each optimizer in `NPULossScaleOptimizer`, outside any distributed wrapper."""
    scale = view.options.loss_scale
    if scale is None:
        return
    for optimizer in optimizers(view):
        name = view.module.name_of(optimizer.func)
        if name in LOSS_SCALED | OTHER_LOSS_SCALES and is_conditional(optimizer, view):
            yield view.notice(optimizer, _CONDITIONAL)
        elif name in LOSS_SCALED:
            yield Leave(node=optimizer, reason=_DONE)
    for site in sites(view, LOSS_SCALED | OTHER_LOSS_SCALES):
        if site.in_estimator:
            yield view.notice(site.creations[0], _IN_ESTIMATOR)
            continue
        text, name = manager(view, scale)
        imports: tuple[str, ...] = ("NPULossScaleOptimizer", name)
        arguments = [text]
        if _distributed(site, view):
            arguments.append(f"is_distributed={several_ranks(view)}")
            imports += RANK_IMPORTS
        before, after = _around(site, arguments, view)
        yield view.rewrite(
            site.node,
            *site.replacements(view, before, after, outside=True),
            reason=_REASON,
            confidence="certain" if len(site.creations) == 1 else "likely",
            imports=imports,
        )


def _around(site: Site, arguments: list[str], view: View) -> tuple[str, str]:
    """The text before and after an optimizer, on separate lines if one would be too long."""
    before = f"{view.npu('NPULossScaleOptimizer')}("
    closing = f", {', '.join(arguments)})"
    lines = view.module.lines
    start, end = view.module.span(site.node)
    first = lines.line_start(start)
    line = view.module.text[first : lines.line_end(end)].strip("\r\n")
    is_multiline = lines.newline in view.module.text[start:end]
    if isinstance(site.node, ast.stmt):
        # A separate line, `name = wrapped(name, ...)`, which is indented later.
        if len(f"{site.name} = {before}{site.name}{closing}") <= _MAX_LINE_LENGTH:
            return before, closing
        inner = "\n" + lines.indentation
        return before + inner, "".join(f",{inner}{text}" for text in arguments) + ",\n)"
    if is_multiline or len(before + line + closing) <= _MAX_LINE_LENGTH:
        return before, closing
    gap = lines.newline + lines.indent(start)
    inner = gap + lines.indentation
    return before + inner, "".join(f",{inner}{text}" for text in arguments) + f"{gap})"


def _distributed(site: Site, view: View) -> bool:
    """Whether the gradients of an optimizer are averaged over the ranks."""
    return view.options.distributed or any(
        is_distributed(node, view) for creation in site.creations for node in walk(creation)
    )
