"""torch.profiler becomes torch_npu.profiler, with the activity `NPU`."""

import ast

from jumar.porting.rewriting import Changes, Remark, Text, View, rule
from jumar.porting.rewriting.editing import replace
from jumar.porting.script.expressions import method_name
from jumar.porting.torch.names import PROFILER_NAMES
from jumar.porting.torch.scripts import IMPORT, replace_import, replace_last_name, uses_torch

_ROOT = "torch.profiler."
_WHY = Remark(
    en="torch_npu.profiler records the NPU's work; its classes accept the same arguments",
    zh="torch_npu.profiler 采集 NPU 侧数据，类与参数同名",
    todo_en="import these names from torch_npu.profiler; unchanged because of the comments "
    "between them",
    todo_zh="从 torch_npu.profiler 导入这些名称；此处名称之间有注释，未自动改动",
    severity="blocking",
)
_ACTIVITY = Text(en="the device's activity is called NPU", zh="设备侧活动名为 NPU")
_TABLE = Remark(
    en="torch_npu's profiler has no key_averages() or events(): it writes files",
    zh="torch_npu 的 profiler 没有 key_averages() 与 events()，结果写入文件",
    todo_en="pass on_trace_ready=torch_npu.profiler.tensorboard_trace_handler(DIR) and read "
    "op_statistic.csv and kernel_details.csv below DIR",
    todo_zh="设置 on_trace_ready=torch_npu.profiler.tensorboard_trace_handler(DIR)，"
    "查看 DIR 下的 op_statistic.csv 与 kernel_details.csv",
    severity="blocking",
    confidence="likely",
)
_OLD = Remark(
    en="torch.autograd.profiler does not record an NPU's work",
    zh="torch.autograd.profiler 无法采集 NPU 侧数据",
    todo_en="use torch_npu.profiler.profile",
    todo_zh="改用 torch_npu.profiler.profile",
)


@rule(
    "torch-profiler",
    title=Text(
        en="torch.profiler becomes torch_npu.profiler", zh="torch.profiler 改为 torch_npu.profiler"
    ),
    source="torch_npu/profiler of Ascend/pytorch; API support list (torch.profiler)",
    language="torch",
    nodes=(ast.Attribute, ast.ImportFrom, ast.Call),
)
def torch_profiler(node: ast.AST, view: View) -> Changes:
    """Replace profiler names with those of torch_npu, in references and imports."""
    if isinstance(node, ast.ImportFrom):
        yield from _imported(node, view)
    elif isinstance(node, ast.Call):
        yield from _results(node, view)
    elif isinstance(node, ast.Attribute):
        yield from _reference(node, view)


def _reference(node: ast.Attribute, view: View) -> Changes:
    if node.attr == "CUDA":
        class_name = view.module.name_of(node.value) or ""
        # An imported class belongs to torch_npu once an earlier round has rewritten its import.
        is_dotted = (
            isinstance(node.value, ast.Attribute) and class_name == f"{_ROOT}ProfilerActivity"
        )
        if is_dotted or class_name == "torch_npu.profiler.ProfilerActivity":
            change = replace_last_name(view.module, node, "CUDA", "NPU")
            if change is not None:
                yield view.rewrite(node, change, reason=_ACTIVITY)
    elif (
        node.attr in PROFILER_NAMES
        and view.module.name_of(node.value) == "torch.profiler"
        and _is_shared(node, view)
    ):
        change = replace(view.module, node.value, "torch_npu.profiler")
        yield view.rewrite(node, change, reason=_WHY.reason, imports=IMPORT)


def _is_shared(node: ast.Attribute, view: View) -> bool:
    """Whether a name is no activity of another device, such as ProfilerActivity.XPU."""
    parent = view.module.parent(node)
    if node.attr != "ProfilerActivity" or not isinstance(parent, ast.Attribute):
        return True
    return parent.attr in ("CPU", "CUDA")


def _imported(node: ast.ImportFrom, view: View) -> Changes:
    if node.module != "torch.profiler" or node.level:
        return
    moved_names = [alias for alias in node.names if alias.name in PROFILER_NAMES]
    kept_names = [alias for alias in node.names if alias.name not in PROFILER_NAMES]
    if not moved_names:
        return
    lines = [_statement("torch_npu.profiler", moved_names)]
    lines += [_statement("torch.profiler", kept_names)] if kept_names else []
    change = replace_import(view.module, node, lines)
    if change is not None:
        yield view.rewrite(node, change, reason=_WHY.reason)
    else:
        yield view.notice(node, _WHY)


def _results(node: ast.Call, view: View) -> Changes:
    name = view.module.name_of(node.func) or ""
    if name in ("torch.autograd.profiler.profile", "torch.autograd.profiler.emit_nvtx"):
        yield view.notice(node, _OLD)
    elif method_name(node) == "key_averages" and uses_torch(view.module):
        yield view.notice(node, _TABLE)


def _statement(module: str, aliases: list[ast.alias]) -> str:
    return f"from {module} import {', '.join(map(ast.unparse, aliases))}"
