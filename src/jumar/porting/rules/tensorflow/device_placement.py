"""Placement of parts of a graph on GPUs."""

import ast
import re

from jumar.porting.rewriting import Changes, Leave, Remark, Text, View, rule
from jumar.porting.rewriting.editing import argument, replace
from jumar.porting.script.expressions import is_none
from jumar.porting.script.nodes import walk

_GPU = re.compile(r"(?i)\bgpu\b|/?device:gpu|gpu:")
_CPU = re.compile(r"(?i)\bcpu\b")
_HOST = Text(
    en="NpuOptimizer places the graph regardless of the device name, and /cpu:0 is the name for "
    "the NPU's graph: it keeps nothing on the host",
    zh="计算图由 NpuOptimizer 放置，与设备名无关；/cpu:0 即 NPU 图使用的名称，不会留在主机侧执行",
)
_MARKED = Text(
    en="there is no GPU; NpuOptimizer places the NPU's graph regardless of the device name",
    zh="没有 GPU；NPU 计算图由 NpuOptimizer 放置，与此处的设备名无关",
)
_TOWERS = Remark(
    en="one tower for each GPU: a process uses one NPU, so all towers would run on it one after "
    "another",
    zh="每个 GPU 一个 tower：一个进程只使用一个 NPU，所有 tower 会在同一设备上依次执行",
    todo_en="build one tower, and start one process for each NPU (--devices N): the processes "
    "average their gradients",
    todo_zh="只保留一个 tower，并为每个 NPU 启动一个进程（--devices N）：各进程之间会平均梯度",
    severity="speed",
)
_UNKNOWN = Remark(
    en="the device name is computed: it is unclear whether it is a GPU",
    zh="设备名由计算得到，此处无法判断是否为 GPU",
    todo_en="make sure that it is '/cpu:0' or None; the name of a GPU requires "
    "allow_soft_placement=True, which npu_config_proto sets",
    todo_zh="请确认其结果为 '/cpu:0' 或 None；若为 GPU 名称则需要 allow_soft_placement=True"
    "（npu_config_proto 会设置）",
    confidence="unsure",
)
_SERVERS = Remark(
    en="variables are spread over parameter servers: several NPUs train by averaging gradients "
    "instead",
    zh="变量分布在参数服务器上：多 NPU 训练采用梯度平均方式",
    todo_en="remove replica_device_setter, and port again with --devices N",
    todo_zh="去掉 replica_device_setter，使用 --devices N 重新移植",
    severity="blocking",
)


@rule(
    "device-placement",
    title=Text(en="Placement on GPUs becomes /cpu:0", zh="GPU 放置改为 CPU 标记"),
    source="TensorFlow 1.15 migration guide of CANN; ModelZoo-TensorFlow, PSENet_ID0239",
    nodes=(ast.Call,),
)
def device_placement(call: ast.Call, view: View) -> Changes:
    """Replace GPUs by `/cpu:0`; report towers and computed device names."""
    if view.module.name_of(call.func) != "tensorflow.device" and not _of_graph(call, view):
        return
    device = argument(call, "device_name_or_function", 0) or argument(call, "name", 0)
    if device is None or is_none(device):
        return
    if _is_device_setter(device, view):
        yield view.notice(call, _SERVERS)
        return
    text = _text(device, view, 0)
    if text is None:
        yield view.notice(call, _UNKNOWN)
        return
    if not _GPU.search(text):
        if _CPU.search(text):
            yield Leave(node=call, reason=_HOST)
        return
    if _is_tower(call, device, view):
        yield view.notice(call, _TOWERS)
    quote = '"' if view.module.source(device).startswith('"') else "'"
    yield view.rewrite(call, replace(view.module, device, f"{quote}/cpu:0{quote}"), reason=_MARKED)


def _text(node: ast.expr, view: View, depth: int) -> str | None:
    """The known part of a device name; None if nothing is known."""
    if depth > 4:
        return None
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else ""
    if isinstance(node, ast.JoinedStr):
        parts = [_text(part, view, depth + 1) for part in node.values]
        return "".join(part or "0" for part in parts)
    if isinstance(node, ast.FormattedValue):
        return _text(node.value, view, depth + 1)
    if isinstance(node, ast.BinOp):
        left = _text(node.left, view, depth + 1)
        right = _text(node.right, view, depth + 1)
        return None if left is None and right is None else f"{left or ''}{right or ''}"
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        if node.func.attr != "format":
            return None
        template = _text(node.func.value, view, depth + 1)
        values = [_text(value, view, depth + 1) or "0" for value in node.args]
        return None if template is None else _formatted(template, values)
    if isinstance(node, ast.Name):
        bindings = view.module.bindings(node)
        if len(bindings) == 1 and bindings[0].kind in ("assignment", "loop"):
            return _text(bindings[0].value, view, depth + 1) if bindings[0].value else None
    names: list[str | None] = [None]
    if isinstance(node, ast.IfExp):
        names = [_text(node.body, view, depth + 1), _text(node.orelse, view, depth + 1)]
    elif isinstance(node, ast.List | ast.Tuple):
        names = [_text(value, view, depth + 1) for value in node.elts]
    return None if None in names else " ".join(name or "" for name in names)


def _formatted(template: str, values: list[str]) -> str:
    for value in values:
        template = re.sub(r"\{[^{}]*\}", lambda _, text=value: text, template, count=1)
    return template


def _of_graph(call: ast.Call, view: View) -> bool:
    """Whether a call is the method `device` of a graph."""
    func = call.func
    if not isinstance(func, ast.Attribute) or func.attr != "device":
        return False
    graph = func.value
    if isinstance(graph, ast.Name):
        bindings = view.module.bindings(graph)
        if len(bindings) != 1 or bindings[0].value is None:
            return False
        graph = bindings[0].value
    name = view.module.name_of(graph.func) if isinstance(graph, ast.Call) else None
    return name in ("tensorflow.Graph", "tensorflow.get_default_graph")


def _is_device_setter(node: ast.expr, view: View) -> bool:
    if isinstance(node, ast.Name):
        return any(
            binding.value is not None
            and not isinstance(binding.value, ast.Name)
            and _is_device_setter(binding.value, view)
            for binding in view.module.bindings(node)
        )
    return isinstance(node, ast.Call) and (
        view.module.name_of(node.func) == "tensorflow.train.replica_device_setter"
    )


def _is_tower(call: ast.Call, device: ast.expr, view: View) -> bool:
    """Whether a loop iterates over devices: the device name contains the loop variable."""
    used_names = {node.id for node in walk(device) if isinstance(node, ast.Name)}
    for enclosing in view.module.scopes.ancestors(call):
        if isinstance(enclosing, ast.For | ast.AsyncFor):
            loop_names = {node.id for node in walk(enclosing.target) if isinstance(node, ast.Name)}
            if used_names & loop_names:
                return True
        if isinstance(enclosing, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            return False
    return False
