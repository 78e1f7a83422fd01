"""Device strings: 'cuda', 'cuda:0', f'cuda:{rank}' become 'npu', 'npu:0', f'npu:{rank}'."""

import ast
from dataclasses import replace

from jumar.porting.rewriting import Changes, Leave, Remark, Text, View, rule
from jumar.porting.torch.devices import device_text, is_device, verdict
from jumar.porting.torch.scripts import (
    HANDLED,
    IMPORT,
    is_handled,
    may_use_torch,
    replace_in_literal,
    uses_torch,
)

_WHY = Text(en="the device type of torch_npu is npu", zh="torch_npu 的设备名为 npu")
_UNCLEAR = Remark(
    en="'{text}' could be a device, but the context does not confirm it",
    zh="'{text}' 可能是设备名，但上下文无法确认",
    todo_en="change it to 'npu' if it is a device",
    todo_zh="若为设备名，请改为 'npu'",
    confidence="unsure",
)
_TABLE = replace(
    _UNCLEAR,
    en="'{text}' is in a table or names an attribute; whether it is a device depends on the code "
    "that reads it",
    zh="'{text}' 位于字典或属性名中，是否为设备取决于读取它的代码",
)
_ELSEWHERE = replace(
    _UNCLEAR,
    en="'{text}' looks like a device, but the script does not import PyTorch",
    zh="'{text}' 疑似设备名，但该脚本未导入 PyTorch",
)
_SAVED = Remark(
    en="checkpoints that were saved on a GPU record 'cuda:N' as the device of their tensors",
    zh="在 GPU 上保存的权重文件中，张量位置仍记录为 'cuda:N'",
    todo_en="load them with map_location='cpu', then move the model to the NPU",
    todo_zh="用 map_location='cpu' 加载，之后再把模型移到 NPU",
)
_MESSAGE = Text(en="text for people, not a device", zh="提示文字，不是设备名")


@rule(
    "device-strings",
    title=Text(en="Device strings name the NPU", zh="设备字符串改为 npu"),
    source="torch_npu (device type npu); transfer_to_npu of Ascend/pytorch",
    language="torch",
    nodes=(ast.Constant, ast.JoinedStr),
)
def device_strings(node: ast.Constant | ast.JoinedStr, view: View) -> Changes:
    """Replace 'cuda' in strings that are devices; report strings that may be."""
    module = view.module
    text = device_text(node)
    if text is None or not is_device(text) or isinstance(module.parent(node), ast.JoinedStr):
        return
    if not may_use_torch(module):
        return
    certainty = verdict(module, node, text)
    torch = uses_torch(module)
    if certainty != "no" and is_handled(module, node):
        yield Leave(node=node, reason=HANDLED)
    elif certainty == "no":
        if torch:
            yield Leave(node=node, reason=_MESSAGE)
    elif certainty in ("table", "unclear"):
        if torch:
            remark = _TABLE if certainty == "table" else _UNCLEAR
            yield view.notice(node, remark.filled(text=text))
    elif not torch:
        yield view.notice(node, _ELSEWHERE.filled(text=text))
    else:
        change = replace_in_literal(module, node, "cuda", "npu")
        if change is None:
            yield view.notice(node, _UNCLEAR.filled(text=text), confidence="certain")
            return
        if isinstance(module.parent(node), ast.Dict):
            yield view.notice(node, _SAVED)
        confidence = "certain" if certainty == "certain" else "likely"
        yield view.rewrite(node, change, reason=_WHY, confidence=confidence, imports=IMPORT)
