"""Gradients from `tf.gradients` are computed by the optimizer, on which its wrappers rely."""

import ast

from jumar.porting.rewriting import Changes, Remark, Text, View, rule
from jumar.porting.rewriting.editing import is_open, keyword, replace
from jumar.porting.script.expressions import argument_values, method_name
from jumar.porting.script.nodes import walk

_REASON = Text(
    en="loss scaling and averaging over ranks happen in the optimizer's compute_gradients: "
    "gradients from tf.gradients would get neither; the order of the variables and subsequent "
    "clipping are unchanged",
    zh="loss scale 与多卡梯度平均都在优化器的 compute_gradients 中生效，tf.gradients "
    "的梯度绕过了它们；"
    "变量顺序不变，梯度裁剪仍在其后",
)
_NOTICE = Remark(
    en="these gradients reach apply_gradients without the optimizer's compute_gradients, in which "
    "loss scaling and averaging over ranks happen",
    zh="这些梯度未经优化器的 compute_gradients 就传给了 apply_gradients，loss scale "
    "与多卡梯度平均不会生效",
    todo_en="create the optimizer before this line, wrap it, and write: gradients = [gradient for "
    "gradient, _ in optimizer.compute_gradients(loss, variables)]; clip after that",
    todo_zh="在此行之前创建并包装优化器，然后写：gradients = [gradient for gradient, _ in "
    "optimizer.compute_gradients(loss, variables)]；裁剪放在其后",
    severity="accuracy",
    confidence="likely",
)
_BY_HAND = Remark(
    en="an assignment updates variables with these gradients: no optimizer is involved, so neither "
    "the loss scale nor the averaging over ranks that the port's options request has an effect",
    zh="用这些梯度直接赋值更新变量，未经过优化器，因此既没有所要求的 loss scale，"
    "也没有多卡梯度平均",
    todo_en="if this trains the network, update it through an optimizer (GradientDescentOptimizer "
    "for w - rate * gradient); or use npu_allreduce(tf.gradients(...)) if RANK_SIZE is above 1, "
    "and train without a loss scale",
    todo_zh="若此处训练网络，请改用优化器更新（w - rate * gradient 对应 GradientDescentOptimizer）"
    "；或在 RANK_SIZE 大于 1 时使用 npu_allreduce(tf.gradients(...))，且不使用 loss scale",
    severity="accuracy",
    confidence="likely",
)
_ASSIGNS = frozenset({"assign", "assign_add", "assign_sub", "scatter_sub", "scatter_add"})
_KEYWORDS = frozenset(
    {"grad_ys", "colocate_gradients_with_ops", "gate_gradients", "aggregation_method"}
)
_RENAMED_KEYWORDS = {"grad_ys": "grad_loss"}
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
def gradients_through_optimizer(call: ast.Call, view: View) -> Changes:
    """Replace `tf.gradients(loss, variables)` by the optimizer's gradients, if they are equal."""
    if view.options.loss_scale is None and not view.options.distributed:
        return
    function: Function = view.module.function(call) or view.module.tree
    carriers = _carriers(call, function)
    apply_call = _apply_call(call, function, carriers, view)
    if apply_call is None:
        if any(_assigns(node, call, carriers) for node in walk(function)):
            yield view.notice(call, _BY_HAND)
        return
    if view.module.imports("horovod"):
        return
    parts = _loss_and_variables(call)
    optimizer = _optimizer(apply_call, call, view)
    if parts is None or optimizer is None or not _same_variables(parts[1], apply_call):
        yield view.notice(call, _NOTICE)
        return
    options = [
        f", {_RENAMED_KEYWORDS.get(passed.arg, passed.arg)}={view.module.source(passed.value)}"
        for passed in call.keywords
        if passed.arg in _KEYWORDS
    ]
    loss, variables = (view.module.source(part) for part in parts)
    name = "gradient" if "gradient" not in {loss, variables} else "one"
    text = (
        f"[{name} for {name}, _ in {optimizer}.compute_gradients"
        f"({loss}, {variables}{''.join(options)})]"
    )
    yield view.rewrite(call, replace(view.module, call, text), reason=_REASON, confidence="likely")


def _loss_and_variables(call: ast.Call) -> tuple[ast.expr, ast.expr] | None:
    """The loss and the variables, if no other argument changes the result."""
    if is_open(call) or len(call.args) > 2:
        return None
    arguments = list(call.args)
    for name in ("ys", "xs")[len(arguments) :]:
        passed = keyword(call, name)
        if passed is None:
            return None
        arguments.append(passed.value)
    if any(passed.arg not in _KEYWORDS | {"ys", "xs", "name"} for passed in call.keywords):
        return None
    loss, variables = arguments
    # compute_gradients only accepts one tensor, tf.gradients also a list of them.
    return None if isinstance(loss, ast.List | ast.Tuple) else (loss, variables)


def _apply_call(
    call: ast.Call, function: Function, carriers: set[str], view: View
) -> ast.Call | None:
    """The `apply_gradients(...)` that these gradients reach within the function."""
    for node in walk(function):
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr == "apply_gradients"
            and node.args
            and view.kinds.of(node.func.value) in ("Optimizer", None)
            and _uses_gradients(node.args[0], call, carriers)
        ):
            return node
    return None


def _uses_gradients(node: ast.AST, call: ast.Call, carriers: set[str]) -> bool:
    """Whether a node contains the call, or a name bound to its gradients."""
    return any(
        part is call or (isinstance(part, ast.Name) and part.id in carriers) for part in walk(node)
    )


def _assigns(node: ast.AST, call: ast.Call, carriers: set[str]) -> bool:
    """Whether a node assigns gradients, or a name bound to them, to a variable."""
    return (
        isinstance(node, ast.Call)
        and method_name(node) in _ASSIGNS
        and any(_uses_gradients(value, call, carriers) for value in argument_values(node))
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
            if _uses_gradients(value, call, carriers):
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
