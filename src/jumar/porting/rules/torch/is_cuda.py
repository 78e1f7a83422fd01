"""`x.is_cuda` becomes `x.is_npu`."""

import ast

from jumar.porting.rewriting import Changes, Leave, Text, View, rule
from jumar.porting.torch.scripts import HANDLED, IMPORT, is_handled, replace_last_name, uses_torch

_WHY = Text(
    en="is_cuda is False for tensors on an NPU; is_npu is True",
    zh="NPU 张量的 is_cuda 为 False，应使用 is_npu",
)
_OWN = Text(en="the script sets or defines is_cuda itself", zh="脚本自行定义或赋值 is_cuda，不改动")
_SETTINGS = frozenset(
    {"args", "opt", "opts", "cfg", "config", "flags", "hparams", "FLAGS", "params"}
)


@rule(
    "is-cuda",
    title=Text(en="x.is_cuda becomes x.is_npu", zh="x.is_cuda 改为 x.is_npu"),
    source="torch_npu (Tensor.is_npu); transfer_to_npu of Ascend/pytorch",
    language="torch",
    nodes=(ast.Attribute,),
)
def is_cuda(node: ast.Attribute, view: View) -> Changes:
    """Rename the attribute, unless the script defines it."""
    if node.attr != "is_cuda" or not isinstance(node.ctx, ast.Load):
        return
    if not uses_torch(view.module):
        return
    if isinstance(node.value, ast.Name) and node.value.id in _SETTINGS:
        return
    if _is_defined_here(view):
        yield Leave(node=node, reason=_OWN)
    elif is_handled(view.module, node):
        yield Leave(node=node, reason=HANDLED)
    elif change := replace_last_name(view.module, node, "is_cuda", "is_npu"):
        yield view.rewrite(node, change, reason=_WHY, confidence="likely", imports=IMPORT)


def _is_defined_here(view: View) -> bool:
    return any(
        (isinstance(node, ast.FunctionDef) and node.name == "is_cuda")
        or (
            isinstance(node, ast.Attribute)
            and node.attr == "is_cuda"
            and not isinstance(node.ctx, ast.Load)
        )
        for node in view.module.scopes.nodes
    )
