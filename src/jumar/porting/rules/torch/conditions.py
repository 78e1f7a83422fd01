"""Conditions under which PyTorch rules report a node."""

import ast

from jumar.porting.rewriting import View
from jumar.porting.rewriting.editing import keyword, literal
from jumar.porting.script.expressions import method_name
from jumar.porting.torch.scripts import guard, is_imported_name, is_outermost, uses_torch

_COMPLEX = (
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
_CUDA_ERRORS = (
    "cuda out of memory",
    "cuda error",
    "cublas",
    "cudnn",
    "cuda runtime error",
    "nccl error",
)
_TO_SPARSE = frozenset(
    {"to_sparse", "to_sparse_csr", "to_sparse_csc", "to_sparse_bsr", "to_sparse_bsc", "sparse_mask"}
)


def is_read(node: ast.Name | ast.Attribute, _: View) -> bool:
    """Whether a name or attribute is read, not assigned."""
    return isinstance(node.ctx, ast.Load)


def is_not_assigned_name(node: ast.Name | ast.Attribute, _: View) -> bool:
    """Whether a node is anything but a variable that is being assigned."""
    return not isinstance(node, ast.Name) or isinstance(node.ctx, ast.Load)


def is_direct_reference(node: ast.expr, view: View) -> bool:
    """Whether a node refers to PyTorch directly, not through a variable of the script."""
    return is_imported_name(view.module, node)


def continues_without_import(node: ast.stmt, view: View) -> bool:
    """Whether the script may run without an import."""
    return guard(view, node) in ("try", "condition")


def is_complex(node: ast.Attribute, view: View) -> bool:
    """Whether a name is a complex dtype, or a function that creates complex tensors."""
    name = view.module.name_of(node) or ""
    return name in _COMPLEX or (name.startswith("torch.fft.") and is_outermost(view.module, node))


def is_cuda_error_text(node: ast.Constant, view: View) -> bool:
    """Whether a string is the text of a CUDA error, in a comparison or a list."""
    if not isinstance(node.value, str) or not node.value.lower().startswith(_CUDA_ERRORS):
        return False
    parent = view.module.parent(node)
    is_compared = isinstance(parent, ast.Compare | ast.List | ast.Tuple | ast.Set)
    return is_compared and uses_torch(view.module)


def casts_to_double(call: ast.Call, view: View) -> bool:
    """Whether a call is `x.double()` and `x` may be a tensor."""
    return (
        method_name(call) == "double"
        and not call.args
        and not call.keywords
        and view.module.name_of(call.func) is None
        and uses_torch(view.module)
    )


def is_sparse(call: ast.Call, view: View) -> bool:
    """Whether a call creates sparse tensors or sparse gradients."""
    name = view.module.name_of(call.func) or ""
    if name.startswith(("torch.sparse.", "torch.sparse_")):
        return True
    if method_name(call) in _TO_SPARSE and not name and uses_torch(view.module):
        return True
    sparse = keyword(call, "sparse") if name.startswith("torch.nn.Embedding") else None
    return sparse is not None and literal(sparse.value) is not False
