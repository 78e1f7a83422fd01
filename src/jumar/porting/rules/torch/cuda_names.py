"""`torch.cuda.X` becomes `torch.npu.X`."""

import ast

from jumar.porting.rewriting import Changes, Leave, Remark, Text, View, rule
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
_BY_HAND = Remark(
    en="torch.cuda is in an f-string, for whose parts Python's parser reports no positions",
    zh="torch.cuda 位于 f-string 中，解析器未给出其准确位置",
    todo_en="change it to torch.npu by hand",
    todo_zh="请在此处手工改为 torch.npu",
    severity="blocking",
)


_GRAPH = Remark(
    en="torch_npu captures graphs for inference only, not for training",
    zh="torch_npu 的图捕获当前仅支持推理场景，不支持训练场景",
    todo_en="do not capture graphs in training; in inference, check the arguments (npu_graph=...)",
    todo_zh="训练中去掉图捕获；推理中检查参数（如 npu_graph=...）",
    severity="blocking",
)
_MARKS = Remark(
    en="NVTX ranges need NVIDIA's tools",
    zh="NVTX 打点依赖 NVIDIA 工具",
    todo_en="remove them, or use torch_npu.npu.mstx.range_start and range_end",
    todo_zh="删除，或改用 torch_npu.npu.mstx.range_start 与 range_end",
    severity="blocking",
)
_REMARKS = {
    "get_device_capability": Remark(
        en="it returns None on an NPU unless TORCH_NPU_DEVICE_CAPABILITY is set; the number "
        "says nothing about the device",
        zh="未设置 TORCH_NPU_DEVICE_CAPABILITY 时返回 None，且该值不代表 NPU 硬件能力",
        todo_en="query the feature that is needed instead: torch.npu.is_bf16_supported(), or "
        "torch.npu.get_device_name()",
        todo_zh="改为直接查询所需能力：torch.npu.is_bf16_supported() 或 "
        "torch.npu.get_device_name()",
        severity="blocking",
    ),
    "get_device_properties": Remark(
        en="an NPU's properties are name, total_memory, L2_cache_size, cube_core_num and "
        "vector_core_num; CUDA's other fields are empty",
        zh="NPU 仅有 name、total_memory、L2_cache_size、cube_core_num、vector_core_num 属性，"
        "CUDA 的其余字段为空",
        todo_en="check which fields are read",
        todo_zh="检查读取了哪些字段",
    ),
    "CUDAGraph": _GRAPH,
    "graph": _GRAPH,
    "graphs": _GRAPH,
    "make_graphed_callables": _GRAPH,
    "nvtx": _MARKS,
    "OutOfMemoryError": Remark(
        en="out of memory raises torch.OutOfMemoryError, a RuntimeError; torch.npu has no "
        "such name",
        zh="显存不足异常为 torch.OutOfMemoryError（RuntimeError 的子类），torch.npu 下无此名称",
        todo_en="use torch.OutOfMemoryError, or RuntimeError for torch before 2.5",
        todo_zh="改为 torch.OutOfMemoryError；torch 2.5 之前用 RuntimeError",
    ),
    "nccl": Remark(
        en="there is no NCCL on an NPU",
        zh="NPU 上没有 NCCL",
        todo_en="use torch.distributed with hccl",
        todo_zh="改用 torch.distributed 与 hccl",
        severity="blocking",
    ),
    "DoubleTensor": Remark(
        en="NPUs compute float64 slowly or not at all",
        zh="NPU 上 float64 很慢或不支持",
        todo_en="use torch.npu.FloatTensor",
        todo_zh="改用 torch.npu.FloatTensor",
        severity="speed",
    ),
}
_MISSING = Remark(
    en="torch.npu has no '{name}'",
    zh="torch.npu 中没有 '{name}'",
    todo_en="remove it, or skip it if torch.npu.is_available()",
    todo_zh="删除该用法，或用 torch.npu.is_available() 加以保护",
    severity="blocking",
)
_NEWER = Remark(
    en="'{name}' is in torch_npu 2.13 but not in 2.6",
    zh="'{name}' 在 torch_npu 2.13 中有，2.6 中没有",
    todo_en="check which release of torch_npu is used",
    todo_zh="检查所用 torch_npu 的版本",
)


@rule(
    "cuda-names",
    title=Text(en="torch.cuda becomes torch.npu", zh="torch.cuda 改为 torch.npu"),
    source="torch_npu 2.6.0 and 2.13.0 (names of torch_npu.npu); API list of Ascend/pytorch",
    language="torch",
    references=("torch.cuda",),
)
def cuda_names(node: ast.expr, view: View) -> Changes:
    """Rename the module in references to it and to its members."""
    chain, dotted = _chain(node, view)
    if is_handled(view.module, node):
        yield Leave(node=chain, reason=HANDLED)
        return
    counterpart = npu_counterpart(dotted)
    first = dotted.partition(".")[0]
    remark = _REMARKS.get(first)
    if remark is not None:
        yield view.notice(chain, remark)
    elif counterpart is None:
        yield view.notice(chain, _MISSING.filled(name=first if first != "amp" else dotted))
    elif first in NEWER_NAMES:
        yield view.notice(chain, _NEWER.filled(name=first))
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
        yield view.notice(node, _BY_HAND)
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
