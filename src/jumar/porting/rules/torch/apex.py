"""NVIDIA apex: there is an apex for Ascend with the same amp; other parts are findings."""

import ast
from collections.abc import Iterator
from typing import NamedTuple

from jumar.porting.edits import Severity, Text
from jumar.porting.rewriting.changes import Change
from jumar.porting.rewriting.registry import rule
from jumar.porting.rewriting.view import View
from jumar.porting.torch.scripts import is_guarded


class _Part(NamedTuple):
    """What there is on an NPU in place of a part of apex."""

    reason: Text
    todo: Text
    severity: Severity


_AMP = _Part(
    Text(
        en="apex.amp on an NPU is that of Ascend's own build of apex",
        zh="NPU 上的 apex.amp 来自昇腾适配版 apex",
    ),
    Text(
        en="install apex for Ascend (it takes combine_grad=True as well), or use torch.amp with "
        "torch.amp.GradScaler(device='npu')",
        zh="安装昇腾适配版 apex（支持 combine_grad=True），或改用 torch.amp 与 "
        "torch.amp.GradScaler(device='npu')",
    ),
    "look",
)
_PARTS = {
    "amp": _AMP,
    "parallel": _Part(
        Text(
            en="apex.parallel is written for NCCL and CUDA",
            zh="apex.parallel 基于 NCCL 与 CUDA 实现",
        ),
        Text(
            en="use torch.nn.parallel.DistributedDataParallel and torch.nn.SyncBatchNorm",
            zh="改用 torch.nn.parallel.DistributedDataParallel 与 torch.nn.SyncBatchNorm",
        ),
        "blocking",
    ),
    "optimizers": _Part(
        Text(en="apex's fused optimizers are CUDA kernels", zh="apex 的融合优化器是 CUDA 核"),
        Text(
            en="use torch_npu.optim.NpuFusedAdam and its kin, or those of apex for Ascend",
            zh="改用 torch_npu.optim.NpuFusedAdam 等，或昇腾适配版 apex 的 apex.optimizers",
        ),
        "blocking",
    ),
    "normalization": _Part(
        Text(en="apex's layer norms are CUDA kernels", zh="apex 的归一化层是 CUDA 核"),
        Text(
            en="use torch.nn.LayerNorm, or torch_npu.npu_rms_norm",
            zh="改用 torch.nn.LayerNorm 或 torch_npu.npu_rms_norm",
        ),
        "blocking",
    ),
}
_OTHER = _Part(
    Text(en="this part of apex is a CUDA extension", zh="apex 的该部分是 CUDA 扩展"),
    Text(en="use PyTorch's own", zh="改用 PyTorch 自带实现"),
    "blocking",
)


@rule(
    "apex",
    title=Text(en="NVIDIA apex", zh="NVIDIA apex"),
    source="Ascend/apex; torch_npu/optim of Ascend/pytorch",
    language="torch",
    nodes=(ast.Import, ast.ImportFrom),
)
def apex(node: ast.Import | ast.ImportFrom, view: View) -> Iterator[Change]:
    """Say for each part of apex what to use."""
    for part in _parts(node):
        found = _PARTS.get(part, _OTHER) if part else _AMP
        severity = "look" if is_guarded(view, node) else found.severity
        yield view.notice(node, reason=found.reason, todo=found.todo, severity=severity)


def _parts(node: ast.Import | ast.ImportFrom) -> list[str]:
    """The parts of apex that a statement imports; the empty one for the package itself."""
    if isinstance(node, ast.Import):
        names = [alias.name for alias in node.names]
    elif node.level or not node.module:
        return []
    else:
        names = [f"{node.module}.{alias.name}" for alias in node.names]
    parts = [name.split(".")[1:2] for name in names if name.split(".")[0] == "apex"]
    return list(dict.fromkeys("".join(part) for part in parts))
