"""Configurations and strategies that a function creates for use elsewhere."""

import ast

from jumar.porting.rewriting import Changes, Leave, Remark, Text, View, rule
from jumar.porting.rules.tensorflow.distribution_strategy import STRATEGIES
from jumar.porting.script.expressions import last_name
from jumar.porting.script.module import Module
from jumar.porting.script.nodes import walk

_NPU_STRATEGY = "npu_bridge.npu_init.npu_strategy.NPUStrategy"
_USED_HERE = Text(
    en="code of this module that uses this configuration adds the NPU's options where it opens a "
    "session",
    zh="本模块中使用该配置之处会在打开会话时加入 NPU 选项",
)
_USED_ELSEWHERE = Remark(
    en="this function creates a configuration for other modules: sessions of the tree add the "
    "NPU's options where they are opened, but other code that uses it does not",
    zh="该函数为其他模块创建会话配置：工程内的会话在打开处加入 NPU 选项，其他使用者则没有",
    todo_en="make sure that every session that uses it is opened in a script of the tree, or "
    "return npu_config_proto(config_proto=...) here",
    todo_zh="请确认使用它的会话都在工程内的脚本中打开，或在此返回 "
    "npu_config_proto(config_proto=...)",
    confidence="likely",
)
_STRATEGY = Remark(
    en="this strategy of tf.distribute comes from {name} and is ported where it is created; a "
    "process drives one NPU, regardless of the number of devices that is passed",
    zh="此处的 tf.distribute 策略来自 {name}，已在创建处移植；"
    "无论传入多少设备，每个进程只驱动一个 NPU",
    todo_en="check its uses: batch sizes that are multiplied by the number of replicas, scopes, "
    "and numbers of GPUs",
    todo_zh="请检查其用法：按副本数放大的 batch size、scope，以及 GPU 数量",
)


@rule(
    "session-config-makers",
    title=Text(
        en="Functions that create a configuration are followed or reported",
        zh="跟踪或指出创建会话配置的函数",
    ),
    source="npu_init.py of Ascend/tensorflow",
    nodes=(ast.FunctionDef,),
)
def session_config_makers(function: ast.FunctionDef, view: View) -> Changes:
    """Report where a configuration returned by a function gets its options."""
    if "ConfigProto" not in view.module.text:
        return
    returned_values = [
        node.value
        for node in walk(function)
        if isinstance(node, ast.Return) and view.module.function(node) is function
    ]
    if not any(view.kinds.of(value) == "ConfigProto" for value in returned_values):
        return
    if any(value is not None and view.is_npu(value) for value in returned_values):
        return
    creation = _creation(function, view)
    if creation is None:
        return
    if _is_used(function.name, view):
        yield Leave(node=creation, reason=_USED_HERE)
    else:
        yield view.notice(creation, _USED_ELSEWHERE)


def _is_used(name: str, view: View) -> bool:
    """Whether the module itself uses a function or method of this name."""
    return any(last_name(node) == name for node in view.module.scopes.nodes)


def _creation(function: ast.FunctionDef, view: View) -> ast.Call | None:
    """The call within a function that creates a configuration."""
    for node in walk(function):
        if isinstance(node, ast.Call) and view.kinds.called(node) == "tensorflow.ConfigProto":
            return node
    return None


@rule(
    "distribution-strategy-users",
    title=Text(
        en="Strategies that are returned by a function of the tree are reported",
        zh="指出由工程内函数返回的分布式策略",
    ),
    source="npu_strategy.py of Ascend/tensorflow",
    nodes=(ast.Call,),
)
def distribution_strategy_users(call: ast.Call, view: View) -> Changes:
    """Report calls of a function that returns a strategy."""
    name = view.module.name_of(call.func) or ""
    home_module, function = view.module.definition(name)
    if (
        home_module is None
        or not isinstance(function, ast.FunctionDef)
        or not home_module.mentions("Strategy")
    ):
        return
    if any(
        isinstance(node, ast.Return) and _is_strategy(node.value, home_module)
        for node in walk(function)
    ):
        yield view.notice(call, _STRATEGY.filled(name=function.name))


def _is_strategy(value: ast.expr | None, home_module: Module) -> bool:
    """Whether the value that a function returns is a strategy, or a name bound to one."""
    if isinstance(value, ast.Name):
        return any(
            isinstance(binding.value, ast.Call) and _is_strategy(binding.value, home_module)
            for binding in home_module.bindings(value)
        )
    if not isinstance(value, ast.Call):
        return False
    name = home_module.name_of(value.func) or ""
    return name in STRATEGIES or name == _NPU_STRATEGY
