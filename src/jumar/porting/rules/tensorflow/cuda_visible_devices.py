"""The environment variable that selects a GPU becomes the one that selects an NPU."""

import ast

from jumar.porting.rewriting import Changes, Confidence, Remark, Text, View, rule
from jumar.porting.rewriting.editing import delete, literal, replace
from jumar.porting.rules.tensorflow.concerned import uses_tensorflow
from jumar.porting.rules.tensorflow.environment_variables import assigned_variable, read_variable
from jumar.porting.script.expressions import method_name

_VISIBLE = "CUDA_VISIBLE_DEVICES"
_ORDER = "CUDA_DEVICE_ORDER"
_CHOICE = Text(
    en="ASCEND_DEVICE_ID selects the NPU of a process; a value from the launch script has priority",
    zh="进程使用的 NPU 由 ASCEND_DEVICE_ID 指定；启动脚本已设置时以其为准",
)
_SEVERAL = Remark(
    en="a process uses one NPU, selected by ASCEND_DEVICE_ID and DEVICE_ID, which the launch "
    "script sets; a list of GPUs has no meaning",
    zh="一个进程只使用一个 NPU，由启动脚本设置的 ASCEND_DEVICE_ID 与 DEVICE_ID 指定；"
    "GPU 列表无意义",
    todo_en="port again with --devices {count}, and start it with the launch script: one process "
    "per device",
    todo_zh="使用 --devices {count} 重新移植，并用启动脚本启动：每个设备一个进程",
    severity="speed",
)
_UNKNOWN = Remark(
    en="the value must be a single device number, not a list such as 0,1 or an empty string",
    zh="该值必须是单个设备编号：0,1 这样的列表或空字符串均无效",
    todo_en="pass one number, or set ASCEND_DEVICE_ID outside the script",
    todo_zh="传入单个编号，或在脚本外设置 ASCEND_DEVICE_ID",
)
_HIDDEN = Remark(
    en="this hides the GPUs so that the script runs on the CPU; it does not hide the NPU",
    zh="该语句隐藏 GPU 以便在 CPU 上运行；它不会隐藏 NPU",
    todo_en="to run on the CPU, use the original script: sessions of the ported script use the NPU",
    todo_zh="需要在 CPU 上运行时请使用原脚本：移植后的会话使用 NPU",
)
_READ = Remark(
    en="the script reads which GPUs are visible, which says nothing about NPUs",
    zh="脚本读取可见的 GPU，这与 NPU 无关",
    todo_en="read ASCEND_DEVICE_ID for the device of this process, RANK_SIZE for the number of "
    "devices",
    todo_zh="本进程的设备读取 ASCEND_DEVICE_ID，设备总数读取 RANK_SIZE",
)
_PCI = Text(en="the order of GPUs has no meaning on the NPU", zh="GPU 排序在 NPU 上无意义")


@rule(
    "cuda-visible-devices",
    title=Text(
        en="CUDA_VISIBLE_DEVICES becomes ASCEND_DEVICE_ID",
        zh="CUDA_VISIBLE_DEVICES 替换为 ASCEND_DEVICE_ID",
    ),
    source="npu_attrs.cc of Ascend/tensorflow: session_device_id, ASCEND_DEVICE_ID, DEVICE_ID",
    nodes=(ast.Assign, ast.Expr, ast.Subscript, ast.Call),
)
def cuda_visible_devices(
    node: ast.Assign | ast.Expr | ast.Subscript | ast.Call, view: View
) -> Changes:
    """Select an NPU instead of a GPU; delete statements that select several GPUs."""
    if isinstance(node, ast.Subscript | ast.Call):
        if read_variable(node, view) == _VISIBLE and uses_tensorflow(view):
            yield view.notice(node, _READ)
        return
    variable = assigned_variable(node, view)
    if variable is None or not uses_tensorflow(view):
        return
    name, value = variable
    if name == _ORDER:
        yield view.rewrite(node, delete(view.module, node), reason=_PCI)
    elif name == _VISIBLE:
        yield from _choice(node, value, view)


def _choice(node: ast.Assign | ast.Expr, value: ast.expr, view: View) -> Changes:
    text = literal(value)
    if isinstance(text, str) and not text.strip().isdigit():
        numbers = [part for part in text.split(",") if part.strip().isdigit()]
        if len(numbers) < 2:
            yield view.notice(node, _HIDDEN)
        else:
            yield from _several(node, str(len(numbers)), "certain", view)
        return
    if text is None and _is_list(value, view):
        yield from _several(node, "N", "likely", view)
        return
    if text is None:
        yield view.notice(node, _UNKNOWN)
    environ = _environ(node, view)
    source = view.module.source(value)
    yield view.rewrite(
        node,
        replace(view.module, node, f'{environ}.setdefault("ASCEND_DEVICE_ID", {source})'),
        reason=_CHOICE,
        confidence="certain" if text is not None else "likely",
    )


def _several(
    node: ast.Assign | ast.Expr, count: str, confidence: Confidence, view: View
) -> Changes:
    if not view.options.distributed:
        yield view.notice(node, _SEVERAL.filled(count=count), confidence=confidence)
    change = delete(view.module, node)
    yield view.rewrite(node, change, reason=_SEVERAL.reason, confidence=confidence)


def _is_list(value: ast.expr, view: View) -> bool:
    """Whether a value selects several devices, judging by its name or because it is split."""
    source = view.module.source(value)
    if isinstance(value, ast.Call):
        return method_name(value) == "join"
    name = source.rpartition(".")[2].lower()
    return name.endswith(("list", "gpus", "devices", "ids")) or f"{source}.split(" in (
        view.module.text
    )


def _environ(node: ast.Assign | ast.Expr, view: View) -> str:
    """The script's expression for `os.environ`."""
    if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Subscript):
        return view.module.source(node.targets[0].value)
    assert isinstance(node, ast.Expr)
    assert isinstance(node.value, ast.Call)
    func = node.value.func
    if isinstance(func, ast.Attribute) and func.attr == "setdefault":
        return view.module.source(func.value)
    return f"{view.module.source(func.value)}.environ" if isinstance(func, ast.Attribute) else ""
