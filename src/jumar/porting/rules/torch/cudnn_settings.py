"""Settings of cuDNN are removed, or reported if they concern determinism."""

import ast

from jumar.porting.rewriting import Changes, Remark, Text, View, rule
from jumar.porting.rewriting.editing import delete, literal
from jumar.porting.script.nodes import walk
from jumar.porting.torch.scripts import is_imported_name

_ROOT = "torch.backends.cudnn."
_TUNING = frozenset({"benchmark", "enabled", "fastest", "benchmark_limit"})
_WHY = Text(
    en="there is no cuDNN on an NPU: the setting does nothing",
    zh="NPU 上没有 cuDNN，该设置不起作用",
)
_KEEP = Remark(
    en="a cuDNN setting does nothing on an NPU, but the code that computes its value may",
    zh="cuDNN 设置在 NPU 上不起作用，但此处的取值涉及计算",
    todo_en="remove it if nothing else needs the value",
    todo_zh="若无其他用途，请删除",
)
_DETERMINISTIC = Remark(
    en="cudnn.deterministic does not make an NPU deterministic",
    zh="cudnn.deterministic 不会使 NPU 计算具有确定性",
    todo_en="call torch.use_deterministic_algorithms(True), which torch_npu supports, and set "
    "HCCL_DETERMINISTIC=true for several devices",
    todo_zh="调用 torch.use_deterministic_algorithms(True)（torch_npu 会传递给底层），多卡时设置 "
    "HCCL_DETERMINISTIC=true",
    severity="accuracy",
)
_FLAGS = Remark(
    en="this calls cuDNN, which does not exist on an NPU",
    zh="此处调用 cuDNN，NPU 上没有",
    todo_en="remove it, or skip it on an NPU",
    todo_zh="删除或加以保护",
)


@rule(
    "cudnn-settings",
    title=Text(en="Settings of cuDNN are removed", zh="删除 cuDNN 设置"),
    source="PyTorch's torch.backends.cudnn; deterministic computing in the guide of Ascend/pytorch",
    language="torch",
    nodes=(ast.Assign, ast.Call),
)
def cudnn_settings(node: ast.Assign | ast.Call, view: View) -> Changes:
    """Delete the statement if computing its value has no effect."""
    if isinstance(node, ast.Call):
        name = view.module.name_of(node.func) or ""
        if name.startswith(_ROOT):
            yield view.notice(node, _FLAGS)
        return
    targets = [target for target in node.targets if is_imported_name(view.module, target)]
    names = [view.module.name_of(target) or "" for target in targets]
    settings = [name[len(_ROOT) :] for name in names if name.startswith(_ROOT)]
    if not settings:
        return
    if "deterministic" in settings and literal(node.value) is not False:
        yield view.notice(node, _DETERMINISTIC)
    elif not set(settings) <= _TUNING | {"deterministic"}:
        return
    elif len(node.targets) == 1 and _is_plain(node.value):
        yield view.rewrite(node, delete(view.module, node), reason=_WHY)
    else:
        yield view.notice(node, _KEEP)


def _is_plain(value: ast.expr) -> bool:
    """Whether computing a value has no side effects."""
    return not any(
        isinstance(inner, ast.Call | ast.Await | ast.Yield | ast.NamedExpr | ast.Subscript)
        for inner in walk(value)
    )
