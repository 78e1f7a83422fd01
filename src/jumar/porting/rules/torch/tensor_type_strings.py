"""Tensor types in strings, as in `x.type('torch.cuda.HalfTensor')`, become the NPU's."""

import ast
import re

from jumar.porting.rewriting import Changes, Replacement, Text, View, rule
from jumar.porting.torch.scripts import IMPORT, is_message, replace_in_literal, uses_torch

_WHY = Text(
    en="a tensor on an NPU has the type torch.npu.…Tensor",
    zh="NPU 张量的类型名为 torch.npu.…Tensor",
)
_TYPE = re.compile(r"torch\.cuda\.\w+(?:Tensor|Storage)")


@rule(
    "tensor-type-strings",
    title=Text(
        en="Tensor types in strings become those of the NPU",
        zh="字符串中的张量类型名改为 NPU 类型",
    ),
    source="torch_npu (legacy tensor types torch.npu.*Tensor)",
    language="torch",
    nodes=(ast.Constant,),
)
def tensor_type_strings(node: ast.Constant, view: View) -> Changes:
    """Rename the module in the name of a tensor type."""
    if not isinstance(node.value, str) or not _TYPE.fullmatch(node.value):
        return
    if not uses_torch(view.module) or is_message(view.module, node):
        return
    module_change = replace_in_literal(view.module, node, "torch.cuda", "torch.npu")
    if module_change is not None:
        change = Replacement(
            start=module_change.start + len("torch."), end=module_change.end, text="npu"
        )
        yield view.rewrite(node, change, reason=_WHY, imports=IMPORT)
