"""Sparse tensors are a finding."""

import ast
from collections.abc import Iterator

from jumar.porting.edits import Text
from jumar.porting.rewriting.changes import Change
from jumar.porting.rewriting.editing import keyword, literal
from jumar.porting.rewriting.registry import rule
from jumar.porting.rewriting.view import View
from jumar.porting.torch.scripts import concerns_torch

_WHY = Text(
    en="few operators take sparse tensors on an NPU, and only in the COO layout",
    zh="NPU 上只有少数算子支持稀疏张量，且仅支持 COO 格式",
)
_TODO = Text(
    en="use dense tensors, index_add_ or scatter, or keep this part on the CPU",
    zh="改用稠密张量、index_add_ 或 scatter，或将该部分保留在 CPU 上",
)
_METHODS = frozenset(
    {"to_sparse", "to_sparse_csr", "to_sparse_csc", "to_sparse_bsr", "to_sparse_bsc", "sparse_mask"}
)
_FUNCTIONS = ("torch.sparse.", "torch.sparse_")


@rule(
    "torch-sparse",
    title=Text(en="Sparse tensors", zh="稀疏张量"),
    source="API support list of Ascend/pytorch for PyTorch 2.13 (torch.sparse); Ascend/op-plugin",
    language="torch",
    nodes=(ast.Call,),
)
def torch_sparse(call: ast.Call, view: View) -> Iterator[Change]:
    """Report what makes sparse tensors or sparse gradients."""
    name = view.module.name_of(call.func) or ""
    method = isinstance(call.func, ast.Attribute) and call.func.attr in _METHODS
    sparse = keyword(call, "sparse") if name.startswith("torch.nn.Embedding") else None
    if (
        name.startswith(_FUNCTIONS)
        or (method and not name and concerns_torch(view.module))
        or (sparse is not None and literal(sparse.value) is not False)
    ):
        yield view.notice(call, reason=_WHY, todo=_TODO, severity="look", confidence="likely")
