"""Device strings: 'cuda', 'cuda:0', f'cuda:{rank}' become 'npu', 'npu:0', f'npu:{rank}'."""

import ast
from collections.abc import Iterator

from jumar.porting.edits import Text
from jumar.porting.rewriting.changes import Change, Leave
from jumar.porting.rewriting.registry import Example, rule
from jumar.porting.rewriting.view import View
from jumar.porting.torch.devices import device_text, is_device, verdict
from jumar.porting.torch.scripts import (
    HANDLED,
    IMPORT,
    TORCH,
    concerns_torch,
    in_literal,
    is_handled,
    may_concern_torch,
)

_WHY = Text(en="torch_npu calls its devices npu", zh="torch_npu 的设备名为 npu")
_TABLE = Text(
    en="'{text}' stands in a table or names an attribute; its reader decides what it is",
    zh="'{text}' 位于字典或属性名中，是否为设备取决于读取它的代码",
)
_UNCLEAR = Text(
    en="'{text}' could be a device; nothing around it says so",
    zh="'{text}' 可能是设备名，但上下文无法确认",
)
_ELSEWHERE = Text(
    en="'{text}' looks like a device, in a script that imports no PyTorch",
    zh="'{text}' 疑似设备名，但该脚本未导入 PyTorch",
)
_TODO = Text(en="write 'npu' if it is a device", zh="若为设备名，请改为 'npu'")
_SAVED = Text(
    en="checkpoints that were saved on a GPU carry 'cuda:N' as the place of their tensors",
    zh="在 GPU 上保存的权重文件中，张量位置仍记录为 'cuda:N'",
)
_SAVED_TODO = Text(
    en="load them with map_location='cpu' and move the model to the NPU after that",
    zh="用 map_location='cpu' 加载，之后再把模型移到 NPU",
)
_TOLD = Text(en="told to people, not a device", zh="提示文字，不是设备名")


@rule(
    "device-strings",
    title=Text(en="Device strings name the NPU", zh="设备字符串改为 npu"),
    source="torch_npu (device type npu); transfer_to_npu of Ascend/pytorch",
    language="torch",
    nodes=(ast.Constant, ast.JoinedStr),
    examples=(
        Example(
            before="import torch\n\n"
            "device = torch.device('cuda:0' if torch.cuda.is_available() else 'cpu')\n"
            'x = x.to("cuda", non_blocking=True)\n',
            after="import torch\nimport torch_npu\n\n"
            "device = torch.device('npu:0' if torch.npu.is_available() else 'cpu')\n"
            'x = x.to("npu", non_blocking=True)\n',
            options=TORCH,
        ),
        Example(
            before="import torch\n\ndevice = f'cuda:{rank}'\nother = 'cuda:%d' % rank\n"
            "third = 'cuda:{}'.format(rank)\nfourth = 'cuda:' + str(rank)\n",
            after="import torch\nimport torch_npu\n\ndevice = f'npu:{rank}'\n"
            "other = 'npu:%d' % rank\nthird = 'npu:{}'.format(rank)\nfourth = 'npu:' + str(rank)\n",
            options=TORCH,
        ),
        Example(
            before="import argparse\nimport torch\n\nparser = argparse.ArgumentParser()\n"
            "parser.add_argument('--device', default='cuda', help='cuda or cpu')\n",
            after="import argparse\nimport torch\nimport torch_npu\n\n"
            "parser = argparse.ArgumentParser()\n"
            "parser.add_argument('--device', default='npu', help='cuda or cpu')\n",
            options=TORCH,
        ),
        Example(
            before="import torch\n\nkind = 'cuda' if 'cuda' in device else 'cpu'\n"
            "if x.device.type == 'cuda':\n    torch.autocast(device_type='cuda')\n",
            after="import torch\nimport torch_npu\n\nkind = 'npu' if 'npu' in device else 'cpu'\n"
            "if x.device.type == 'npu':\n    torch.autocast(device_type='npu')\n",
            options=TORCH,
        ),
        Example(
            before="import torch\n\ng = torch.Generator(device='cuda')\n"
            "state = torch.load(path, map_location={'cuda:0': 'cuda:%d' % rank})\n",
            after="import torch\nimport torch_npu\n\ng = torch.Generator(device='npu')\n"
            "state = torch.load(path, map_location={'npu:0': 'npu:%d' % rank})\n",
            options=TORCH,
        ),
        Example(
            before="import torch\n\ndef build(device='cuda', *, where: str = 'cuda:1'):\n"
            "    loader = torch.utils.data.DataLoader(data, pin_memory_device='cuda')\n",
            after="import torch\nimport torch_npu\n\n"
            "def build(device='npu', *, where: str = 'npu:1'):\n"
            "    loader = torch.utils.data.DataLoader(data, pin_memory_device='npu')\n",
            options=TORCH,
        ),
        Example(
            before="import torch\n\nwhere = f\"{'cuda' if on else 'cpu'}:{rank}\"\n"
            "kinds = ['cpu', 'cuda']\n",
            after="import torch\nimport torch_npu\n\n"
            "where = f\"{'npu' if on else 'cpu'}:{rank}\"\nkinds = ['cpu', 'npu']\n",
            options=TORCH,
        ),
        Example(
            before="import torch\n\nkind = 'cuda' if on else 'cpu'\nif kind == 'cuda':\n"
            "    where = 'cuda'\nx = x.to(where)\n",
            after="import torch\nimport torch_npu\n\nkind = 'npu' if on else 'cpu'\n"
            "if kind == 'npu':\n    where = 'npu'\nx = x.to(where)\n",
            options=TORCH,
        ),
        Example(
            before="import torch\n\nsettings = {'device': 'cuda'}\n",
            after="import torch\n\nsettings = {'device': 'cuda'}\n",
            options=TORCH,
        ),
    ),
    untouched=(
        "import torch\n\nmode = 'cuda'\nif mode == 'cuda':\n    build(mode)\n",
        "import torch\n\nACCELERATORS = ('cpu', 'gpu', 'cuda', 'auto')\n",
        "import torch\n\ncolumn = f\"{'cuda' if on else 'cpu'}_time_total\"\n",
        "import torch\n\nif device.type in ('cuda', 'npu', 'xpu'):\n    pass\n",
        "import torch\n\nnames = {'cuda': 'a', 'npu': 'b'}\n",
        "import torch\n\nif has_npu:\n    device = 'npu'\nelif has_cuda:\n    device = 'cuda'\n",
        "import torch\n\nprint('cuda')\nprint(f'cuda:{rank}')\n",
        "import logging\nimport torch\n\nlogging.info('cuda:0 is used')\nlogging.info('cuda')\n",
        "import torch\n\npath = 'kernels/cuda/op.cu'\n",
        "import torch\n\nif hasattr(torch, 'cuda'):\n    pass\n",
        "import torch\n\nparser.add_argument('--cuda', action='store_true', help='cuda')\n",
        "import torch\n\nraise ValueError('cuda')\n",
        "import torch\n\ndef f():\n    '''cuda'''\n",
        "'cuda'\nimport torch\n",
        "import torch\n\nextension = 'lightconv_cuda'\nname = 'cuda_rng_state'\n",
        "import torch\n\ndevice = 'npu:0'\nother = torch.device('npu')\n",
        "import numpy as np\n\ndevice = 'cuda'\n",
        "import tensorflow as tf\n\ndevice = 'cuda:0'\n",
        "from numba import cuda\n\ntarget = 'cuda'\n",
        "import torch\n\nvalue = settings['cuda']\n",
        "import torch\n\nimport_module('cuda')\nextras = ['cuda', 'docs']\n",
        "import torch\n\nassert device, 'cuda is missing'\n",
        "import torch\n\nfor name in ('model', 'cuda'):\n    pass\n",
    ),
)
def device_strings(node: ast.Constant | ast.JoinedStr, view: View) -> Iterator[Change]:
    """Replace the word in strings that are devices; ask about those that may be."""
    module = view.module
    text = device_text(node)
    if text is None or not is_device(text) or isinstance(module.parent(node), ast.JoinedStr):
        return
    if not may_concern_torch(module):
        return
    found = verdict(module, node, text)
    torch = concerns_torch(module)
    if found != "no" and is_handled(module, node):
        yield Leave(node=node, reason=HANDLED)
    elif found == "no":
        if torch:
            yield Leave(node=node, reason=_TOLD)
    elif found in ("table", "unclear"):
        if torch:
            reason = _TABLE if found == "table" else _UNCLEAR
            yield view.notice(
                node, reason=reason.filled(text=text), todo=_TODO, confidence="unsure"
            )
    elif not torch:
        yield view.notice(
            node, reason=_ELSEWHERE.filled(text=text), todo=_TODO, confidence="unsure"
        )
    else:
        change = in_literal(module, node, "cuda", "npu")
        if change is None:
            yield view.notice(node, reason=_UNCLEAR.filled(text=text), todo=_TODO)
            return
        if isinstance(module.parent(node), ast.Dict):
            yield view.notice(node, reason=_SAVED, todo=_SAVED_TODO, severity="look")
        confidence = "certain" if found == "certain" else "likely"
        yield view.rewrite(node, change, reason=_WHY, confidence=confidence, imports=IMPORT)
