"""Scripts that look for 'CUDA out of memory' in an error's text."""

import ast
from collections.abc import Iterator

from jumar.porting.edits import Text
from jumar.porting.rewriting.changes import Change
from jumar.porting.rewriting.registry import rule
from jumar.porting.rewriting.view import View
from jumar.porting.torch.scripts import concerns_torch

_WHY = Text(
    en="an NPU's errors have other texts: 'NPU out of memory', and numbers of ACL and HCCL",
    zh="NPU 的报错文本不同：'NPU out of memory'，以及 ACL、HCCL 错误码",
)
_TODO = Text(
    en="catch torch.OutOfMemoryError, or look for 'out of memory' alone",
    zh="捕获 torch.OutOfMemoryError，或只匹配 'out of memory'",
)
_WORDS = ("cuda out of memory", "cuda error", "cublas", "cudnn", "cuda runtime error", "nccl error")


@rule(
    "torch-error-texts",
    title=Text(en="Texts of CUDA's errors", zh="CUDA 报错文本"),
    source="NPUCachingAllocator.cpp of Ascend/pytorch",
    language="torch",
    nodes=(ast.Constant,),
)
def torch_error_texts(node: ast.Constant, view: View) -> Iterator[Change]:
    """Report texts of CUDA's errors that are compared with, or stand in lists of such texts."""
    if not isinstance(node.value, str) or not node.value.lower().startswith(_WORDS):
        return
    parent = view.module.parent(node)
    compared = isinstance(parent, ast.Compare | ast.List | ast.Tuple | ast.Set)
    if compared and concerns_torch(view.module):
        yield view.notice(node, reason=_WHY, todo=_TODO, confidence="likely")
