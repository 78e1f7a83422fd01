"""`x.cuda()` becomes `x.npu()`."""

import ast
import re

from jumar.porting.rewriting import Changes, Confidence, Leave, Replacement, Text, View, rule
from jumar.porting.torch.scripts import HANDLED, IMPORT, is_handled, replace_last_name, uses_torch

_MOVE = Text(
    en="torch_npu adds to tensors, modules and storages a method npu() with the same arguments",
    zh="torch_npu 为张量、模块与存储提供参数相同的 npu() 方法",
)
_OWN = Text(
    en="calls of cuda() have become calls of npu(): a class's own cuda() is renamed as well",
    zh="cuda() 的调用已改为 npu()，自定义的 cuda() 方法随之改名",
)
_DEF = re.compile(r"(?:async\s+)?def\s+")


@rule(
    "cuda-method",
    title=Text(en="x.cuda() becomes x.npu()", zh="x.cuda() 改为 x.npu()"),
    source="torch_npu (Tensor.npu, Module.npu); transfer_to_npu of Ascend/pytorch",
    language="torch",
    nodes=(ast.Call, ast.FunctionDef),
    references=("torch.Tensor.cuda", "torch.nn.Module.cuda"),
)
def cuda_method(node: ast.AST, view: View) -> Changes:
    """Rename calls and definitions of a method `cuda` to `npu`."""
    if not uses_torch(view.module):
        return
    if isinstance(node, ast.FunctionDef):
        yield from _definition(node, view)
        return
    function = node.func if isinstance(node, ast.Call) else node
    if not isinstance(function, ast.Attribute) or function.attr != "cuda":
        return
    name = view.module.name_of(function)
    if name is not None and not name.startswith(("torch.Tensor", "torch.nn.Module", "tree:")):
        return
    if isinstance(node, ast.Call) and name is not None and not name.startswith("tree:"):
        # The rule also sees it as a reference.
        return
    if name is not None and name.startswith("tree:") and view.module.definition(name)[1]:
        return
    change = replace_last_name(view.module, function, "cuda", "npu")
    if change is not None and is_handled(view.module, node):
        yield Leave(node=node, reason=HANDLED)
    elif change is not None:
        yield view.rewrite(
            function if not isinstance(node, ast.Call) else node,
            change,
            reason=_MOVE,
            confidence=_confidence(function.value, view),
            imports=IMPORT,
        )


def _confidence(receiver: ast.expr, view: View) -> Confidence:
    """Return `certain` if PyTorch creates the receiver, or a class that inherits its `__init__`."""
    if view.module.name_of(receiver) in ("torch.Tensor", "torch.nn.Module"):
        return "certain"
    if isinstance(receiver, ast.Call):
        name = view.kinds.called(receiver) or ""
        return "certain" if name.startswith("torch.") else "likely"
    if isinstance(receiver, ast.Name):
        values = [binding.value for binding in view.module.bindings(receiver)]
        if values and all(
            isinstance(value, ast.Call) and (view.kinds.called(value) or "").startswith("torch.")
            for value in values
        ):
            return "certain"
    return "likely"


def _definition(node: ast.FunctionDef, view: View) -> Changes:
    class_node = view.module.parent(node)
    if node.name != "cuda" or not isinstance(class_node, ast.ClassDef):
        return
    if any(
        isinstance(member, ast.FunctionDef) and member.name == "npu" for member in class_node.body
    ):
        return
    start, _ = view.module.span(node)
    head = _DEF.match(view.module.text, start)
    if head is None or not view.module.text.startswith("cuda", head.end()):
        return
    change = Replacement(start=head.end(), end=head.end() + len("cuda"), text="npu")
    yield view.rewrite(node, change, reason=_OWN, confidence="likely", imports=IMPORT)
