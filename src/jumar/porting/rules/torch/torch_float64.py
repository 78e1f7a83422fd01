"""float64 is a finding."""

import ast
from collections.abc import Iterator

from jumar.porting.edits import Text
from jumar.porting.rewriting.changes import Change
from jumar.porting.rewriting.registry import rule
from jumar.porting.rewriting.view import View
from jumar.porting.torch.scripts import concerns_torch

_WHY = Text(
    en="NPUs have no float64 units: such kernels are missing or run slowly on the device's own CPU",
    zh="NPU 没有 float64 计算单元：相关算子缺失，或在 AI CPU 上缓慢执行",
)
_TODO = Text(
    en="use float32, or move this part to the CPU", zh="改用 float32，或将该部分放到 CPU 上计算"
)
_TYPES = ("torch.float64", "torch.double", "torch.DoubleTensor")


@rule(
    "torch-float64",
    title=Text(en="float64 on an NPU", zh="NPU 上的 float64"),
    source="transfer_to_npu of Ascend/pytorch (DoubleTensor becomes FloatTensor)",
    language="torch",
    nodes=(ast.Call,),
    references=_TYPES,
)
def torch_float64(node: ast.expr, view: View) -> Iterator[Change]:
    """Report float64 in types and casts."""
    if isinstance(node, ast.Name | ast.Attribute):
        if isinstance(node.ctx, ast.Load):
            yield view.notice(node, reason=_WHY, todo=_TODO, severity="speed", confidence="likely")
        return
    if (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "double"
        and not node.args
        and not node.keywords
        and view.module.name_of(node.func) is None
        and concerns_torch(view.module)
    ):
        yield view.notice(node, reason=_WHY, todo=_TODO, severity="speed", confidence="likely")
