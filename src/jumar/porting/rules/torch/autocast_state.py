"""Functions that read or set autocast's state get the NPU as device."""

import ast

from jumar.porting.rewriting import Changes, Replacement, Text, View, rule
from jumar.porting.rewriting.editing import open_parenthesis
from jumar.porting.torch.scripts import IMPORT, is_imported_name, replace_last_name

_WHY = Text(
    en="without a device argument, these functions refer to CUDA's autocast",
    zh="不指定设备时，这些函数查询的是 CUDA 的 autocast 状态",
)
_CALLS = {
    "torch.is_autocast_enabled": ("is_autocast_enabled", 0),
    "torch.get_autocast_gpu_dtype": ("get_autocast_dtype", 0),
    "torch.set_autocast_enabled": ("set_autocast_enabled", 1),
    "torch.set_autocast_gpu_dtype": ("set_autocast_dtype", 1),
}
"""The variant of each function with a device argument, and its number of other arguments."""


@rule(
    "autocast-state",
    title=Text(en="Autocast's state is the NPU's", zh="autocast 状态针对 NPU 查询"),
    source="PyTorch 2.4 and later (torch.get_autocast_dtype); torch_npu/npu/autocast_utils.py",
    language="torch",
    calls=tuple(_CALLS),
)
def autocast_state(call: ast.Call, view: View) -> Changes:
    """Add the device as the first argument."""
    name, count = _CALLS.get(view.module.name_of(call.func) or "", ("", -1))
    if not name or len(call.args) != count or call.keywords:
        return
    if not isinstance(call.func, ast.Attribute) or not is_imported_name(view.module, call.func):
        return
    rename = replace_last_name(view.module, call.func, call.func.attr, name)
    if rename is None:
        return
    position = open_parenthesis(view.module, call) + 1
    text = "'npu', " if call.args else "'npu'"
    device = Replacement(start=position, end=position, text=text)
    changes = (rename, device) if rename.text != call.func.attr else (device,)
    yield view.rewrite(call, *changes, reason=_WHY, imports=IMPORT)
