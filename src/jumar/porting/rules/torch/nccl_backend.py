"""The communication backend of an NPU is hccl."""

import ast
import re

from jumar.porting.rewriting import Changes, Leave, Remark, Replacement, Text, View, rule
from jumar.porting.torch.devices import device_text
from jumar.porting.torch.scripts import (
    HANDLED,
    IMPORT,
    is_handled,
    is_message,
    replace_in_literal,
    replace_last_name,
    uses_torch,
)

_WHY = Text(
    en="torch_npu registers hccl as the backend for NPUs",
    zh="torch_npu 为 NPU 注册的通信后端是 hccl",
)
_TABLE = Remark(
    en="'nccl' is in a table; whether it is a backend depends on the code that reads it",
    zh="'nccl' 位于字典中，是否为通信后端取决于读取它的代码",
    todo_en="change it to 'hccl' if it is a backend",
    todo_zh="若为通信后端，请改为 'hccl'",
    confidence="unsure",
)
_GROUP = Remark(
    en="PyTorch for NPUs has no ProcessGroupNCCL and no options of it",
    zh="NPU 版 PyTorch 中没有 ProcessGroupNCCL 及其选项",
    todo_en="remove the options, or use torch_npu._C._distributed_c10d.ProcessGroupHCCL.Options()",
    todo_zh="删除相关选项，或改用 torch_npu._C._distributed_c10d.ProcessGroupHCCL.Options()",
    severity="blocking",
)
_BACKEND = re.compile(r"(?i)nccl")
_MAPPED = re.compile(r"(?:\w+:\w+,)*(?:\w+:\w+)")
_CALLS = ("torch.distributed.init_process_group", "torch.distributed.new_group")


@rule(
    "nccl-backend",
    title=Text(en="nccl becomes hccl", zh="通信后端 nccl 改为 hccl"),
    source="torch_npu/distributed of Ascend/pytorch; transfer_to_npu",
    language="torch",
    nodes=(ast.Constant,),
    references=(
        "torch.distributed.is_nccl_available",
        "torch.distributed.ProcessGroupNCCL",
        "torch._C._distributed_c10d.ProcessGroupNCCL",
    ),
)
def nccl_backend(node: ast.expr, view: View) -> Changes:
    """Replace the name of the backend."""
    if isinstance(node, ast.Name | ast.Attribute):
        yield from _reference(node, view)
        return
    text = device_text(node)
    if text is None or not _BACKEND.search(text) or not uses_torch(view.module):
        return
    parent = view.module.parent(node)
    if isinstance(parent, ast.JoinedStr) or is_message(view.module, node):
        return
    change = _changed(node, text, parent, view)
    if change is None:
        return
    if is_handled(view.module, node):
        yield Leave(node=node, reason=HANDLED)
        return
    if isinstance(parent, ast.Dict | ast.Subscript):
        yield view.notice(node, _TABLE)
        return
    call = parent if isinstance(parent, ast.Call) else view.module.parent(parent or node)
    certain = isinstance(call, ast.Call) and view.module.name_of(call.func) in _CALLS
    yield view.rewrite(
        node, *change, reason=_WHY, confidence="certain" if certain else "likely", imports=IMPORT
    )


def _changed(
    node: ast.expr, text: str, parent: ast.AST | None, view: View
) -> tuple[Replacement, ...] | None:
    """Replacements in a backend's name, or in a list of devices with their backends."""
    if text == "nccl" or (text == "NCCL" and isinstance(parent, ast.Call | ast.keyword)):
        change = replace_in_literal(view.module, node, text, "hccl")
        return (change,) if change is not None else None
    if ":" not in text or not _MAPPED.fullmatch(text) or "cuda:nccl" not in text:
        return None
    position = text.index("cuda:nccl")
    prefix = replace_in_literal(view.module, node, text[: position + len("cuda:nccl")], "")
    if prefix is None:
        return None
    return (Replacement(start=prefix.end - len("cuda:nccl"), end=prefix.end, text="npu:hccl"),)


def _reference(node: ast.Name | ast.Attribute, view: View) -> Changes:
    name = view.module.name_of(node) or ""
    if not name.endswith("is_nccl_available"):
        yield view.notice(node, _GROUP)
        return
    change = replace_last_name(view.module, node, "is_nccl_available", "is_hccl_available")
    if isinstance(node, ast.Attribute) and change is not None:
        yield view.rewrite(node, change, reason=_WHY, imports=IMPORT)
