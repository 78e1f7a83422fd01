"""torch.compile and TorchScript are findings: they need other back ends on an NPU."""

import ast
from collections.abc import Iterator
from typing import NamedTuple

from jumar.porting.edits import Severity, Text
from jumar.porting.rewriting.changes import Change
from jumar.porting.rewriting.registry import rule
from jumar.porting.rewriting.view import View


class _Case(NamedTuple):
    """What is different for one compiler."""

    reason: Text
    todo: Text
    severity: Severity


_COMPILE = _Case(
    Text(
        en="torch.compile generates Triton code by default, which an NPU runs only with "
        "triton-ascend",
        zh="torch.compile 默认生成 Triton 代码，NPU 上需要 triton-ascend",
    ),
    Text(
        en="train eagerly first; then try backend=torchair.get_npu_backend() or "
        "backend='npugraphs'",
        zh="先用 eager 模式训练；之后再尝试 backend=torchair.get_npu_backend() 或 "
        "backend='npugraphs'",
    ),
    "speed",
)
_SCRIPT = _Case(
    Text(
        en="TorchScript runs on an NPU without CUDA's fuser; what it fused is slower",
        zh="TorchScript 在 NPU 上没有 CUDA 融合器，原先融合的部分会变慢",
    ),
    Text(
        en="compare outputs and speed with the plain function, and leave the decorator away if "
        "it does not help",
        zh="与普通函数比较输出与速度，无收益时去掉该装饰器",
    ),
    "speed",
)
_FUSER = _Case(
    Text(en="this chooses a fuser of CUDA", zh="此处选择的是 CUDA 融合器"),
    Text(en="remove it", zh="删除"),
    "look",
)
_CASES = {
    "torch.compile": _COMPILE,
    "torch.jit.script": _SCRIPT,
    "torch.jit.script_method": _SCRIPT,
    "torch.jit.fuser": _FUSER,
    "torch._C._jit_set_nvfuser_enabled": _FUSER,
    "torch._C._jit_override_can_fuse_on_gpu": _FUSER,
    "torch._C._jit_set_texpr_fuser_enabled": _FUSER,
    "torch._C._jit_set_profiling_executor": _FUSER,
    "torch._C._jit_set_profiling_mode": _FUSER,
}


@rule(
    "torch-compilers",
    title=Text(en="torch.compile and TorchScript", zh="torch.compile 与 TorchScript"),
    source="API support list of Ascend/pytorch for PyTorch 2.13 (torch.compile); transfer_to_npu",
    language="torch",
    references=tuple(_CASES),
)
def torch_compilers(node: ast.expr, view: View) -> Iterator[Change]:
    """Say what each compiler needs on an NPU."""
    if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
        return
    case = _CASES[view.module.name_of(node) or ""]
    yield view.notice(node, reason=case.reason, todo=case.todo, severity=case.severity)
