"""Complex tensors are a finding."""

import ast
from collections.abc import Iterator

from jumar.porting.edits import Text
from jumar.porting.rewriting.changes import Change
from jumar.porting.rewriting.registry import rule
from jumar.porting.rewriting.view import View
from jumar.porting.torch.scripts import outermost

_WHY = Text(
    en="few operators have complex kernels on an NPU; the others run on the CPU or fail",
    zh="NPU 上只有少数算子支持复数类型，其余会回退到 CPU 或报错",
)
_TODO = Text(
    en="compute with real and imaginary parts, or keep this part on the CPU",
    zh="改为实部与虚部分别计算，或将该部分保留在 CPU 上",
)
_NAMES = (
    "torch.complex64",
    "torch.complex128",
    "torch.cfloat",
    "torch.cdouble",
    "torch.complex",
    "torch.polar",
    "torch.view_as_complex",
    "torch.view_as_real",
    "torch.stft",
    "torch.istft",
)


@rule(
    "torch-complex",
    title=Text(en="Complex tensors", zh="复数张量"),
    source="op_plugin_functions.yaml of Ascend/op-plugin",
    language="torch",
    nodes=(ast.Attribute,),
)
def torch_complex(node: ast.Attribute, view: View) -> Iterator[Change]:
    """Report complex types and what makes complex tensors."""
    name = view.module.name_of(node) or ""
    if name in _NAMES or (name.startswith("torch.fft.") and outermost(view.module, node)):
        yield view.notice(node, reason=_WHY, todo=_TODO, confidence="likely")
