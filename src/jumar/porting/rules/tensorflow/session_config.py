"""Sessions get a configuration with the NPU's graph optimizer."""

import ast

from jumar.porting.rewriting import Change, Changes, Leave, Remark, Text, View, rule
from jumar.porting.rewriting.editing import add_argument, argument, is_open, literal, replace, wrap
from jumar.porting.rules.tensorflow.host_sessions import is_host_only
from jumar.porting.script.expressions import is_omitted

_SESSIONS = {
    "tensorflow.Session": ("config", 2),
    "tensorflow.InteractiveSession": ("config", 2),
    "tensorflow.train.MonitoredTrainingSession": ("config", 8),
    "tensorflow.train.SingularMonitoredSession": ("config", 3),
    "tensorflow.train.ChiefSessionCreator": ("config", 2),
    "tensorflow.train.WorkerSessionCreator": ("config", 2),
    "tensorflow.contrib.slim.learning.train": ("session_config", -1),
    "tensorflow.contrib.training.train": ("config", -1),
    "tensorflow.contrib.slim.evaluation.evaluate_once": ("session_config", -1),
    "tensorflow.contrib.slim.evaluation.evaluation_loop": ("session_config", -1),
}
_METHODS = {
    ("Supervisor", "managed_session"): ("config", 1),
    ("Supervisor", "prepare_or_wait_for_session"): ("config", 1),
}
_CREATED = "tensorflow.train.MonitoredSession"
"""It has no configuration itself: its `session_creator` opens the session."""
_ADD = Text(
    en="a session runs on the NPU if its configuration names the graph optimizer NpuOptimizer",
    zh="会话配置中指定 NpuOptimizer 图优化器后，会话才在 NPU 上运行",
)
_HOST = Text(
    en="this session decodes or writes on the host and does not train: it stays on the CPU",
    zh="该会话只在主机侧解码或写文件，不做训练：保留在 CPU 上",
)
_DONE = Text(en="it already has the NPU's configuration", zh="已带有 NPU 配置")
_STARRED = Remark(
    en="arguments are passed with * or **: it is unclear whether they contain a configuration",
    zh="参数由 * 或 ** 传入，此处无法判断其中是否含有会话配置",
    todo_en="pass config=npu_config_proto(config_proto=...) where the arguments are created",
    todo_zh="在构造这些参数的位置传入 config=npu_config_proto(config_proto=...)",
    confidence="likely",
)
_NO_CREATOR = Remark(
    en="this session is opened without options for the NPU, and the script's name for "
    "ChiefSessionCreator is unknown",
    zh="该会话未带 NPU 选项，且此处无法判断脚本如何引用 ChiefSessionCreator",
    todo_en="pass session_creator=tf.train.ChiefSessionCreator(config=npu_config_proto())",
    todo_zh="传入 session_creator=tf.train.ChiefSessionCreator(config=npu_config_proto())",
    severity="blocking",
)


@rule(
    "session-config",
    title=Text(en="Sessions get a configuration with NpuOptimizer", zh="会话配置加入 NpuOptimizer"),
    source="npu_init.py of Ascend/tensorflow; TensorFlow 1.15 migration guide",
    nodes=(ast.Call,),
)
def session_config(call: ast.Call, view: View) -> Changes:
    """Wrap the configuration of a session in `npu_config_proto`, or add one."""
    if view.kinds.called(call) == _CREATED:
        yield from _session_creator(call, view)
        return
    parameter = _parameter(call, view)
    if parameter is None:
        return
    name, position = parameter
    config = argument(call, name, position)
    if config is None and is_open(call):
        yield _in_kwargs(call, name, view)
        return
    if config is not None and has_npu_config(config, view):
        yield Leave(node=call, reason=_DONE)
        return
    if is_host_only(call, view):
        yield Leave(node=call, reason=_HOST)
        return
    function, imports, functions = view.session_config()
    if config is None:
        change = (add_argument(view.module, call, f"{name}={function}()"),)
    elif literal(config) is None and isinstance(config, ast.Constant):
        change = (replace(view.module, config, f"{function}()"),)
    else:
        prefix = "" if functions else "config_proto="
        change = wrap(view.module, config, f"{function}({prefix}", ")")
    yield view.rewrite(call, *change, reason=_ADD, imports=imports, functions=functions)


def _in_kwargs(call: ast.Call, name: str, view: View) -> Change:
    """Add a configuration to the `**kwargs` of a call, or wrap the one that they contain."""
    mappings = [passed.value for passed in call.keywords if passed.arg is None]
    if len(mappings) == 1 and _contains_npu_config(mappings[0], name, view):
        return Leave(node=call, reason=_DONE)
    has_starred = any(isinstance(value, ast.Starred) for value in call.args)
    if has_starred or len(mappings) != 1 or not isinstance(mappings[0], ast.Name):
        return view.notice(call, _STARRED)
    if is_host_only(call, view):
        return Leave(node=call, reason=_HOST)
    function, imports, functions = view.session_config()
    kwargs, prefix = mappings[0].id, "" if functions else "config_proto="
    value = f'{function}({prefix}{kwargs}.get("{name}"))'
    change = replace(view.module, mappings[0], f"dict({kwargs}, {name}={value})")
    return view.rewrite(call, change, reason=_ADD, imports=imports, functions=functions)


def _contains_npu_config(kwargs: ast.expr, name: str, view: View) -> bool:
    """Whether `dict(kwargs, config=...)`, as a port writes it, has the NPU's configuration."""
    if not (isinstance(kwargs, ast.Call) and isinstance(kwargs.func, ast.Name)):
        return False
    config = argument(kwargs, name)
    return kwargs.func.id == "dict" and config is not None and has_npu_config(config, view)


def _session_creator(call: ast.Call, view: View) -> Changes:
    """Pass a session creator with a configuration to a `MonitoredSession` that has none."""
    name = "session_creator"
    creator = argument(call, name, 0)
    if not is_omitted(creator):
        # ChiefSessionCreator gets the configuration where it is created.
        return
    if creator is None and is_open(call):
        yield view.notice(call, _STARRED, todo=_NO_CREATOR.todo)
        return
    # The module of a subclass may not have a ChiefSessionCreator.
    if not isinstance(call.func, ast.Attribute) or view.module.name_of(call.func) != _CREATED:
        yield view.notice(call, _NO_CREATOR)
        return
    function, imports, functions = view.session_config()
    module = view.module.source(call.func.value)
    new_creator = f"{module}.ChiefSessionCreator(config={function}())"
    if creator is None:
        change = add_argument(view.module, call, f"{name}={new_creator}")
    else:
        change = replace(view.module, creator, new_creator)
    yield view.rewrite(call, change, reason=_ADD, imports=imports, functions=functions)


def has_npu_config(config: ast.expr, view: View) -> bool:
    """Whether an expression is, or is a name bound once to, a call that adds NpuOptimizer."""
    if view.is_npu(config):
        return True
    if isinstance(config, ast.Name):
        values = [binding.value for binding in view.module.bindings(config)]
        return bool(values) and all(value is not None and view.is_npu(value) for value in values)
    return False


def _parameter(call: ast.Call, view: View) -> tuple[str, int] | None:
    name = view.kinds.called(call)
    if name in _SESSIONS:
        return _SESSIONS[name]
    if isinstance(call.func, ast.Attribute) and call.func.attr in {
        method for _, method in _METHODS
    }:
        return _METHODS.get((view.kinds.of(call.func.value) or "", call.func.attr))
    return None
