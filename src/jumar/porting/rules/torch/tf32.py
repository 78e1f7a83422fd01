"""TF32 switches become HF32 switches."""

import ast

from jumar.porting.rewriting import Changes, Remark, Text, View, rule
from jumar.porting.rewriting.editing import replace
from jumar.porting.torch.scripts import IMPORT, is_imported_name, is_outermost

_SWITCHES = {
    "torch.backends.cuda.matmul.allow_tf32": "torch_npu.npu.matmul.allow_hf32",
    "torch.backends.cudnn.allow_tf32": "torch_npu.npu.conv.allow_hf32",
}
_WHY = Text(
    en="HF32 (11 bits of mantissa, not on Ascend 910) is the NPU's counterpart of TF32; by default "
    "it is on for convolutions and off for matrix products",
    zh="HF32（尾数 11 位，Ascend 910 不支持）是 NPU 上与 TF32 对应的格式；默认卷积开启、矩阵乘关闭",
)
_PRECISION = Remark(
    en="on an NPU, torch_npu.npu.matmul.allow_hf32 sets the precision of float32 matrix products",
    zh="NPU 上 float32 矩阵乘的精度由 torch_npu.npu.matmul.allow_hf32 决定",
    todo_en="set torch_npu.npu.matmul.allow_hf32 = True for 'high' and 'medium', False for "
    "'highest'",
    todo_zh="'high' 与 'medium' 对应 torch_npu.npu.matmul.allow_hf32 = True，'highest' 对应 False",
    severity="speed",
)
_NONE = Remark(
    en="{name} has no effect on an NPU",
    zh="{name} 在 NPU 上不起作用",
    todo_en="remove it; for attention, use torch.nn.functional.scaled_dot_product_attention or "
    "torch_npu.npu_fusion_attention",
    todo_zh="删除；注意力使用 torch.nn.functional.scaled_dot_product_attention 或 "
    "torch_npu.npu_fusion_attention",
)


@rule(
    "tf32",
    title=Text(en="TF32 switches become HF32 switches", zh="TF32 开关改为 HF32 开关"),
    source="torch_npu/npu/npu_config.py of Ascend/pytorch",
    language="torch",
    nodes=(ast.Attribute, ast.Name),
)
def tf32(node: ast.Attribute | ast.Name, view: View) -> Changes:
    """Replace the switch; report settings of CUDA's matrix products and attention."""
    name = view.module.name_of(node)
    if name is None or not name.startswith("torch.") or not is_imported_name(view.module, node):
        return
    if name in _SWITCHES:
        yield view.rewrite(
            node,
            replace(view.module, node, _SWITCHES[name]),
            reason=_WHY,
            confidence="likely",
            imports=IMPORT,
        )
    elif name == "torch.set_float32_matmul_precision":
        yield view.notice(node, _PRECISION)
    elif name.startswith("torch.backends.cuda.") and is_outermost(view.module, node):
        yield view.notice(node, _NONE.filled(name=name))
