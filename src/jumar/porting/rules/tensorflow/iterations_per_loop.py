"""Loops around `session.run` have to repeat their training operation on the device."""

import ast
import re

from jumar.porting.rewriting import Changes, Remark, Text, View, rule
from jumar.porting.script.expressions import last_name, method_name

_TRAINING = ("minimize", "apply_gradients")
_LIKELY = re.compile(r"train(ing)?_?(op|step)|optim|_op$|_solver$")
_REASON = Remark(
    en="iterations_per_loop={n} in the session's options has no effect by itself: this loop still "
    "runs one step per call",
    zh="会话选项中的 iterations_per_loop={n} 本身不起作用：该循环每次调用仍只执行一步",
    todo_en="after initialising the variables, write: {op} = util.set_iteration_per_loop(sess, "
    "{op}, {n}) with util from npu_bridge.npu_init; {op} has to be an operation; each call then "
    "runs {n} steps with one feed, so divide the number of calls by {n}, and count, change the "
    "learning rate, log and save in multiples of {n}. Data from feed_dict is repeated {n} times: "
    "read it with tf.data, or omit the option",
    todo_zh="变量初始化之后写：{op} = util.set_iteration_per_loop(sess, {op}, {n})，util 来自 "
    "npu_bridge.npu_init；{op} 必须是 Operation；此后每次调用以同一份输入执行 {n} 步，"
    "因此调用次数除以 {n}，计数、学习率、日志与保存都按 {n} 的倍数进行。feed_dict 的数据会重复 "
    "{n} 次：请用 tf.data 读取数据，否则不要使用该选项",
    severity="speed",
)


@rule(
    "iterations-per-loop",
    title=Text(
        en="Training operations that have to be repeated on the device are reported",
        zh="提示需要在设备上循环的训练操作",
    ),
    source="estimator/npu/util.py of Ascend/tensorflow",
    nodes=(ast.Call,),
)
def iterations_per_loop(call: ast.Call, view: View) -> Changes:
    """Report the call that must be added before a training loop."""
    number = view.options.iterations_per_loop
    if number == 1 or not isinstance(call.func, ast.Attribute) or call.func.attr != "run":
        return
    if not call.args or not _is_in_loop(call, view):
        return
    if view.kinds.of(call.func.value) not in ("Session", "MonitoredSession", None):
        return
    is_known_session = view.kinds.of(call.func.value) is not None
    for fetch in _fetches(call.args[0]):
        is_training = _trains(fetch, view)
        looks_like_training = is_known_session and bool(_LIKELY.search(last_name(fetch)))
        if is_training or looks_like_training:
            operation = view.module.source(fetch)
            yield view.notice(
                call,
                _REASON.filled(n=number, op=operation),
                confidence="certain" if is_training else "likely",
            )
            return


def _fetches(node: ast.expr) -> list[ast.expr]:
    if isinstance(node, ast.List | ast.Tuple):
        return [fetch for part in node.elts for fetch in _fetches(part)]
    if isinstance(node, ast.Dict):
        return [fetch for part in node.values for fetch in _fetches(part)]
    return [node] if isinstance(node, ast.Name | ast.Attribute) else []


def _is_in_loop(call: ast.Call, view: View) -> bool:
    for enclosing in view.module.scopes.ancestors(call):
        if isinstance(enclosing, ast.For | ast.While):
            return True
        if isinstance(enclosing, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            return False
    return False


def _trains(node: ast.expr, view: View) -> bool:
    """Whether a name or attribute is assigned the result of `minimize` or `apply_gradients`."""
    if isinstance(node, ast.Name):
        return any(_is_training(binding.value) for binding in view.module.bindings(node))
    return any(
        isinstance(statement, ast.Assign)
        and _is_training(statement.value)
        and any(
            isinstance(target, ast.Attribute) and target.attr == last_name(node)
            for target in statement.targets
        )
        for statement in view.module.scopes.nodes
    )


def _is_training(value: ast.expr | None) -> bool:
    return method_name(value) in _TRAINING
