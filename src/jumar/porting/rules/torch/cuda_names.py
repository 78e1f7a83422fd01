"""`torch.cuda.X` becomes `torch.npu.X`."""

import ast
from collections.abc import Iterator
from typing import NamedTuple

from jumar.porting.edits import Severity, Text
from jumar.porting.rewriting.changes import Change, Leave
from jumar.porting.rewriting.registry import rule
from jumar.porting.rewriting.view import View
from jumar.porting.torch.names import NEWER_NAMES, npu_counterpart
from jumar.porting.torch.scripts import HANDLED, IMPORT, is_handled, replace_last_name

_SAME = Text(
    en="torch.npu has the same functions for Ascend devices",
    zh="torch.npu 为昇腾设备提供同名接口",
)
_WHOLE = Text(
    en="the module itself is passed on; how it is used later is unknown",
    zh="此处传递的是模块本身，后续从中取用的接口无法在此判断",
)
_BY_HAND = Text(
    en="torch.cuda is in an f-string, for whose parts Python's parser reports no positions",
    zh="torch.cuda 位于 f-string 中，解析器未给出其准确位置",
)
_BY_HAND_ADVICE = Text(en="change it to torch.npu by hand", zh="请在此处手工改为 torch.npu")


class _Remark(NamedTuple):
    """Names that need a person's attention even though torch_npu has them."""

    reason: Text
    todo: Text
    severity: Severity


_GRAPH = _Remark(
    Text(
        en="torch_npu captures graphs for inference only, not for training",
        zh="torch_npu 的图捕获当前仅支持推理场景，不支持训练场景",
    ),
    Text(
        en="do not capture graphs in training; in inference, check the arguments (npu_graph=...)",
        zh="训练中去掉图捕获；推理中检查参数（如 npu_graph=...）",
    ),
    "blocking",
)
_MARKS = _Remark(
    Text(en="NVTX ranges need NVIDIA's tools", zh="NVTX 打点依赖 NVIDIA 工具"),
    Text(
        en="remove them, or use torch_npu.npu.mstx.range_start and range_end",
        zh="删除，或改用 torch_npu.npu.mstx.range_start 与 range_end",
    ),
    "blocking",
)
_REMARKS = {
    "get_device_capability": _Remark(
        Text(
            en="it returns None on an NPU unless TORCH_NPU_DEVICE_CAPABILITY is set; the number "
            "says nothing about the device",
            zh="未设置 TORCH_NPU_DEVICE_CAPABILITY 时返回 None，且该值不代表 NPU 硬件能力",
        ),
        Text(
            en="query the feature that is needed instead: torch.npu.is_bf16_supported(), or "
            "torch.npu.get_device_name()",
            zh="改为直接查询所需能力：torch.npu.is_bf16_supported() 或 torch.npu.get_device_name()",
        ),
        "blocking",
    ),
    "get_device_properties": _Remark(
        Text(
            en="an NPU's properties are name, total_memory, L2_cache_size, cube_core_num and "
            "vector_core_num; CUDA's other fields are empty",
            zh="NPU 仅有 name、total_memory、L2_cache_size、cube_core_num、vector_core_num 属性，"
            "CUDA 的其余字段为空",
        ),
        Text(en="check which fields are read", zh="检查读取了哪些字段"),
        "look",
    ),
    "CUDAGraph": _GRAPH,
    "graph": _GRAPH,
    "graphs": _GRAPH,
    "make_graphed_callables": _GRAPH,
    "nvtx": _MARKS,
    "OutOfMemoryError": _Remark(
        Text(
            en="out of memory raises torch.OutOfMemoryError, a RuntimeError; torch.npu has no "
            "such name",
            zh="显存不足异常为 torch.OutOfMemoryError（RuntimeError 的子类），torch.npu 下无此名称",
        ),
        Text(
            en="use torch.OutOfMemoryError, or RuntimeError for torch before 2.5",
            zh="改为 torch.OutOfMemoryError；torch 2.5 之前用 RuntimeError",
        ),
        "look",
    ),
    "nccl": _Remark(
        Text(en="there is no NCCL on an NPU", zh="NPU 上没有 NCCL"),
        Text(en="use torch.distributed with hccl", zh="改用 torch.distributed 与 hccl"),
        "blocking",
    ),
    "DoubleTensor": _Remark(
        Text(en="NPUs compute float64 slowly or not at all", zh="NPU 上 float64 很慢或不支持"),
        Text(en="use torch.npu.FloatTensor", zh="改用 torch.npu.FloatTensor"),
        "speed",
    ),
}
_MISSING = Text(
    en="torch.npu has no '{name}'",
    zh="torch.npu 中没有 '{name}'",
)
_MISSING_ADVICE = Text(
    en="remove it, or skip it if torch.npu.is_available()",
    zh="删除该用法，或用 torch.npu.is_available() 加以保护",
)
_NEWER = Text(
    en="'{name}' is in torch_npu 2.13 but not in 2.6",
    zh="'{name}' 在 torch_npu 2.13 中有，2.6 中没有",
)
_NEWER_ADVICE = Text(en="check which release of torch_npu is used", zh="检查所用 torch_npu 的版本")


@rule(
    "cuda-names",
    title=Text(en="torch.cuda becomes torch.npu", zh="torch.cuda 改为 torch.npu"),
    source="torch_npu 2.6.0 and 2.13.0 (names of torch_npu.npu); API list of Ascend/pytorch",
    language="torch",
    references=("torch.cuda",),
)
def cuda_names(node: ast.expr, view: View) -> Iterator[Change]:
    """Rename the module in references to it and to its members."""
    chain, dotted = _chain(node, view)
    if is_handled(view.module, node):
        yield Leave(node=chain, reason=HANDLED)
        return
    counterpart = npu_counterpart(dotted)
    first = dotted.partition(".")[0]
    remark = _REMARKS.get(first)
    if remark is not None:
        yield view.notice(chain, reason=remark.reason, todo=remark.todo, severity=remark.severity)
    elif counterpart is None:
        yield view.notice(
            chain,
            reason=_MISSING.filled(name=first if first != "amp" else dotted),
            todo=_MISSING_ADVICE,
            severity="blocking",
        )
    elif first in NEWER_NAMES:
        yield view.notice(chain, reason=_NEWER.filled(name=first), todo=_NEWER_ADVICE)
    if counterpart is None or not isinstance(node, ast.Attribute):
        return
    change = replace_last_name(view.module, node, "cuda", "npu")
    member = view.module.parent(node)
    new_first = counterpart.partition(".")[0]
    member_change = None
    if change is not None and new_first != first and isinstance(member, ast.Attribute):
        member_change = replace_last_name(view.module, member, first, new_first)
        change = change if member_change is not None else None
    if change is None:
        yield view.notice(node, reason=_BY_HAND, todo=_BY_HAND_ADVICE, severity="blocking")
        return
    yield view.rewrite(
        chain,
        *((change, member_change) if member_change is not None else (change,)),
        reason=_SAME if dotted else _WHOLE,
        confidence="certain" if dotted else "likely",
        imports=IMPORT,
    )


def _chain(node: ast.expr, view: View) -> tuple[ast.expr, str]:
    """The whole dotted name that begins with `torch.cuda`, and the part below it."""
    names: list[str] = []
    current = node
    while True:
        parent = view.module.parent(current)
        if not (isinstance(parent, ast.Attribute) and parent.value is current):
            return current, ".".join(names)
        names.append(parent.attr)
        current = parent
