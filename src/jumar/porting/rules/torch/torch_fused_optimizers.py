"""Report fused and foreach optimizers: torch_npu has its own fused ones."""

import ast
from dataclasses import replace

from jumar.porting.rewriting import Changes, Remark, Text, View, rule
from jumar.porting.rewriting.editing import keyword, literal

_FUSED = Remark(
    en="fused=True selects kernels that exist for CUDA and the CPU",
    zh="fused=True 使用的是 CUDA 与 CPU 上的融合核",
    todo_en="omit the argument",
    todo_zh="去掉该参数",
    severity="speed",
)
_FOREACH = replace(
    _FUSED,
    en="foreach kernels exist for few operators on an NPU; others fall back to loops",
    zh="NPU 上只有部分算子支持 foreach，其余会退化为循环",
)
_ADVICE = Text(
    en="omit the argument, or use torch_npu.optim.NpuFused{name} and clip with its "
    "clip_grad_norm_fused_",
    zh="去掉该参数，或改用 torch_npu.optim.NpuFused{name}，并使用其 clip_grad_norm_fused_",
)
_FUSED_IN_TORCH_NPU = frozenset({"SGD", "Adadelta", "Adam", "AdamW", "RMSprop"})


@rule(
    "torch-fused-optimizers",
    title=Text(en="CUDA's fused optimizers", zh="CUDA 融合优化器"),
    source="torch_npu/optim of Ascend/pytorch",
    language="torch",
    calls=("torch.optim.*", "builtins.dict"),
)
def torch_fused_optimizers(call: ast.Call, view: View) -> Changes:
    """Report arguments that select CUDA's kernels."""
    name = (view.kinds.called(call) or "").rpartition(".")[2]
    todo = _ADVICE.filled(name=name) if name in _FUSED_IN_TORCH_NPU else None
    if name == "dict" and not view.module.imports("torch"):
        return
    for argument, remark in (("fused", _FUSED), ("foreach", _FOREACH)):
        passed = keyword(call, argument)
        if passed is None or (isinstance(passed.value, ast.Constant) and not passed.value.value):
            continue
        certain = literal(passed.value) is True
        if certain or name != "dict":
            yield view.notice(
                passed,
                remark,
                todo=todo,
                confidence="certain" if certain else "unsure",
            )
