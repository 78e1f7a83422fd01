"""Gradients of `tf.gradients` go through the optimizer, whose wrappers only act there."""

import ast
from collections.abc import Iterator

from jumar.porting.edits import Text
from jumar.porting.rewriting.changes import Change
from jumar.porting.rewriting.editing import is_open, keyword, replace
from jumar.porting.rewriting.registry import rule
from jumar.porting.rewriting.view import View
from jumar.porting.script.nodes import walk

_REASON = Text(
    en="loss scale and averaging over ranks act in the optimizer's compute_gradients: gradients "
    "from tf.gradients would get neither; the order of the variables stays, and so does clipping "
    "after",
    zh="loss scale 与多卡梯度平均都在优化器的 compute_gradients 中生效，tf.gradients "
    "的梯度绕过了它们；"
    "变量顺序不变，梯度裁剪仍在其后",
)
_NOTICE = Text(
    en="these gradients reach apply_gradients without the optimizer's compute_gradients, in which "
    "loss scale and averaging over ranks act",
    zh="这些梯度未经优化器的 compute_gradients 就传给了 apply_gradients，loss scale "
    "与多卡梯度平均不会生效",
)
_ADVICE = Text(
    en="make the optimizer before this line, wrap it, and write: gradients = [gradient for "
    "gradient, _ in optimizer.compute_gradients(loss, variables)]; clip after that",
    zh="在此行之前创建并包装优化器，然后写：gradients = [gradient for gradient, _ in "
    "optimizer.compute_gradients(loss, variables)]；裁剪放在其后",
)
_BY_HAND = Text(
    en="an assignment updates variables with these gradients: no optimizer is involved, so they "
    "get neither the loss scale nor the average over ranks that the port was asked for",
    zh="用这些梯度直接赋值更新变量，未经过优化器，因此既没有所要求的 loss scale，"
    "也没有多卡梯度平均",
)
_BY_HAND_ADVICE = Text(
    en="if this trains the network, update it through an optimizer (GradientDescentOptimizer for "
    "w - rate * gradient); or write npu_allreduce(tf.gradients(...)) where RANK_SIZE is above 1, "
    "and train without a loss scale",
    zh="若此处训练网络，请改用优化器更新（w - rate * gradient 对应 GradientDescentOptimizer）；"
    "或在 RANK_SIZE 大于 1 时使用 npu_allreduce(tf.gradients(...))，且不使用 loss scale",
)
_ASSIGNS = frozenset({"assign", "assign_add", "assign_sub", "scatter_sub", "scatter_add"})
_WORDS = frozenset(
    {"grad_ys", "colocate_gradients_with_ops", "gate_gradients", "aggregation_method"}
)
_KEPT_WORDS = {"grad_ys": "grad_loss"}
Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Module


@rule(
    "gradients-through-optimizer",
    title=Text(
        en="Gradients for an optimizer are computed through it",
        zh="梯度改由优化器的 compute_gradients 计算",
    ),
    source="npu_optimizer.py and npu_loss_scale_optimizer.py of Ascend/tensorflow",
    calls=("tensorflow.gradients",),
)
def gradients_through_optimizer(call: ast.Call, view: View) -> Iterator[Change]:
    """Replace `tf.gradients(loss, variables)` by the optimizer's own, where that is the same."""
    if view.options.loss_scale is None and not view.options.distributed:
        return
    function: Function = view.module.function(call) or view.module.tree
    apply_call = _applied(call, function, view)
    if apply_call is None:
        carriers = _carriers(call, function)
        if any(_assigns(node, call, carriers) for node in walk(function)):
            yield view.notice(
                call,
                reason=_BY_HAND,
                todo=_BY_HAND_ADVICE,
                severity="accuracy",
                confidence="likely",
            )
        return
    if view.module.imports("horovod"):
        return
    parts = _parts(call)
    optimizer = _optimizer(apply_call, call, view)
    if parts is None or optimizer is None or not _same_variables(parts[1], apply_call):
        yield view.notice(
            call, reason=_NOTICE, todo=_ADVICE, severity="accuracy", confidence="likely"
        )
        return
    words = [
        f", {_KEPT_WORDS.get(word.arg, word.arg)}={view.module.source(word.value)}"
        for word in call.keywords
        if word.arg in _WORDS
    ]
    loss, variables = (view.module.source(part) for part in parts)
    name = "gradient" if "gradient" not in {loss, variables} else "one"
    text = (
        f"[{name} for {name}, _ in {optimizer}.compute_gradients"
        f"({loss}, {variables}{''.join(words)})]"
    )
    yield view.rewrite(call, replace(view.module, call, text), reason=_REASON, confidence="likely")


def _parts(call: ast.Call) -> tuple[ast.expr, ast.expr] | None:
    """The loss and the variables, if no other argument changes what is computed."""
    if is_open(call) or len(call.args) > 2:
        return None
    arguments = list(call.args)
    for name in ("ys", "xs")[len(arguments) :]:
        word = keyword(call, name)
        if word is None:
            return None
        arguments.append(word.value)
    if any(word.arg not in _WORDS | {"ys", "xs", "name"} for word in call.keywords):
        return None
    loss, variables = arguments
    # compute_gradients takes one tensor, where tf.gradients also takes a list of them.
    return None if isinstance(loss, ast.List | ast.Tuple) else (loss, variables)


def _applied(call: ast.Call, function: Function, view: View) -> ast.Call | None:
    """The `apply_gradients(...)` that these gradients reach within the function."""
    carriers = _carriers(call, function)
    for node in walk(function):
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr == "apply_gradients"
            and node.args
            and view.kinds.of(node.func.value) in ("Optimizer", None)
        ):
            inside = walk(node.args[0])
            if call in inside or any(
                isinstance(part, ast.Name) and part.id in carriers for part in inside
            ):
                return node
    return None


def _assigns(node: ast.AST, call: ast.Call, carriers: set[str]) -> bool:
    """Whether a node assigns gradients, or a name bound to them, to a variable."""
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in _ASSIGNS
        and any(
            part is call or (isinstance(part, ast.Name) and part.id in carriers)
            for value in [*node.args, *(word.value for word in node.keywords)]
            for part in walk(value)
        )
    )


def _carriers(call: ast.Call, function: Function) -> set[str]:
    """Names bound to the gradients, or to values derived from them."""
    carriers: set[str] = set()
    assignments = [
        ([node.target], node.iter)
        if not isinstance(node, ast.Assign)
        else (node.targets, node.value)
        for node in walk(function)
        if isinstance(node, ast.Assign | ast.For | ast.comprehension)
    ]
    while True:
        before = len(carriers)
        for targets, value in assignments:
            inside = walk(value)
            if call in inside or any(
                isinstance(part, ast.Name) and part.id in carriers for part in inside
            ):
                for target in targets:
                    carriers |= {
                        part.id
                        for part in walk(target)
                        if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)
                    }
        if len(carriers) == before:
            return carriers


def _optimizer(apply_call: ast.Call, call: ast.Call, view: View) -> str | None:
    """The name of the optimizer that applies the gradients, if it is created before them."""
    assert isinstance(apply_call.func, ast.Attribute)
    receiver = apply_call.func.value
    if view.kinds.of(receiver) != "Optimizer" or not isinstance(receiver, ast.Name):
        return None
    bindings = view.module.bindings(receiver)
    start, _ = view.module.span(call)
    if any(binding.kind == "assignment" for binding in bindings) and all(
        view.module.span(binding.node)[1] <= start for binding in bindings
    ):
        return receiver.id
    return None


def _same_variables(variables: ast.expr, apply_call: ast.Call) -> bool:
    """Whether `zip(gradients, variables)` pairs with the variables of the gradients."""
    pairs = apply_call.args[0]
    if (
        isinstance(pairs, ast.Call)
        and isinstance(pairs.func, ast.Name)
        and pairs.func.id == "list"
        and len(pairs.args) == 1
    ):
        pairs = pairs.args[0]
    return (
        isinstance(pairs, ast.Call)
        and isinstance(pairs.func, ast.Name)
        and pairs.func.id == "zip"
        and len(pairs.args) == 2
        and ast.dump(pairs.args[1]) == ast.dump(variables)
    )
