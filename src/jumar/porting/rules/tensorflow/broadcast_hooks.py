"""With several devices, training starts with the same variables on all of them."""

import ast

from jumar.porting.rewriting import Changes, Leave, Replacement, Text, View, rule
from jumar.porting.rewriting.editing import add_argument, argument, is_open, replace, wrap
from jumar.porting.rules.tensorflow.estimator_plan import estimator_plan

_CALLS = {
    "tensorflow.estimator.TrainSpec": 2,
    "tensorflow.train.MonitoredTrainingSession": 4,
}
_BROADCASTS = (
    "BroadcastGlobalVariablesHook",
    "NPUBroadcastGlobalVariablesHook",
    "broadcast_global_variables",
)
_APPEND = Text(
    en="all devices start with the variables of the first: npu_hooks_append adds the "
    "broadcast hook; it ignores anything but a list, so a tuple or None is converted to one",
    zh="多卡训练时各卡以首卡变量初始化：npu_hooks_append 追加广播 hook；它只保留 list，"
    "因此 tuple 或 None 先转换为 list",
)
_ADDED = Text(en="NPUEstimator adds the broadcast itself", zh="NPUEstimator 会自行添加广播 hook")
_EXISTS = Text(en="the script already broadcasts its variables", zh="脚本已自行广播变量")


@rule(
    "broadcast-hooks",
    title=Text(
        en="Training with several devices begins with a broadcast",
        zh="多卡训练开始时广播变量",
    ),
    source="npu_init.py and npu_hook.py of Ascend/tensorflow",
    nodes=(ast.Call,),
)
def broadcast_hooks(call: ast.Call, view: View) -> Changes:
    """Append the broadcast to the hooks of all training outside NPUEstimator."""
    if not view.options.distributed:
        return
    position = _position(call, view)
    if position is None:
        return
    hooks = argument(call, "hooks", position)
    if (hooks is None and is_open(call)) or (hooks is not None and view.is_npu(hooks)):
        return
    if _broadcasts_already(view):
        yield Leave(node=call, reason=_EXISTS)
    elif _all_npu_estimators(call, view):
        yield Leave(node=call, reason=_ADDED)
    else:
        change = _appended(call, hooks, view)
        yield view.rewrite(call, *change, reason=_APPEND, imports=("npu_hooks_append",))


def _position(call: ast.Call, view: View) -> int | None:
    name = view.kinds.called(call)
    if name in _CALLS:
        return _CALLS[name]
    if isinstance(call.func, ast.Attribute) and call.func.attr == "train":
        return 1 if view.kinds.of(call.func.value) == "Estimator" else None
    return None


def _broadcasts_already(view: View) -> bool:
    """Whether some hook or operation of the module broadcasts variables."""
    return any(
        isinstance(node, ast.Name | ast.Attribute)
        and (view.module.name_of(node) or "").rpartition(".")[2] in _BROADCASTS
        for node in view.module.scopes.nodes
    )


def _all_npu_estimators(call: ast.Call, view: View) -> bool:
    """Whether all estimators of the module are or become NPUEstimators."""
    if view.kinds.called(call) == "tensorflow.train.MonitoredTrainingSession":
        return False
    estimators = [call for call in view.module.calls if view.kinds.of(call) == "Estimator"]
    return bool(estimators) and all(node in estimator_plan(view).estimators for node in estimators)


def _appended(call: ast.Call, hooks: ast.expr | None, view: View) -> tuple[Replacement, ...]:
    append = view.npu("npu_hooks_append")
    if hooks is None:
        return (add_argument(view.module, call, f"hooks={append}(hooks_list=[])"),)
    if isinstance(hooks, ast.Constant):
        return (replace(view.module, hooks, f"{append}(hooks_list=[])"),)
    if isinstance(hooks, ast.List | ast.ListComp):
        return wrap(view.module, hooks, f"{append}(hooks_list=", ")")
    if isinstance(hooks, ast.Tuple):
        return wrap(view.module, hooks, f"{append}(hooks_list=list(", "))")
    # The list is copied, since npu_hooks_append appends to its argument on every call.
    if isinstance(hooks, ast.Lambda | ast.IfExp | ast.BoolOp):
        return wrap(view.module, hooks, f"{append}(hooks_list=list((", ") or ()))")
    return wrap(view.module, hooks, f"{append}(hooks_list=list(", " or ()))")
