"""Gradient scalers get their device, and `enabled` by name."""

import ast

from jumar.porting.rewriting import Changes, Text, View, rule
from jumar.porting.rewriting.editing import add_argument, argument, is_open, wrap
from jumar.porting.torch.scripts import IMPORT

_DEVICE = Text(
    en="without a device argument, torch.amp.GradScaler is for 'cuda', and disabled on an NPU",
    zh="torch.amp.GradScaler 默认设备为 'cuda'，不指定设备时在 NPU 上会被禁用",
)
_ENABLED = Text(
    en="the fifth parameter of torch_npu's GradScaler is dynamic, not enabled",
    zh="torch_npu 的 GradScaler 第五个参数是 dynamic，不是 enabled",
)
_POSITION = 4


@rule(
    "grad-scaler",
    title=Text(en="Gradient scalers work on the NPU", zh="GradScaler 适配 NPU"),
    source="torch_npu/npu/amp/grad_scaler.py of Ascend/pytorch; torch.amp.GradScaler",
    language="torch",
    calls=(
        "torch.amp.GradScaler",
        "torch.cuda.amp.GradScaler",
        "torch.npu.amp.GradScaler",
        "torch_npu.npu.amp.GradScaler",
    ),
)
def grad_scaler(call: ast.Call, view: View) -> Changes:
    """Add the device, or pass `enabled` by name: its position in torch_npu differs."""
    name = view.kinds.called(call)
    if name == "torch.amp.GradScaler":
        if argument(call, "device", 0) is None and not is_open(call):
            change = add_argument(view.module, call, "device='npu'")
            yield view.rewrite(call, change, reason=_DEVICE, imports=IMPORT)
    elif len(call.args) > _POSITION and not is_open(call):
        change = wrap(view.module, call.args[_POSITION], "enabled=", "")
        yield view.rewrite(call, *change[:1], reason=_ENABLED, imports=IMPORT)
