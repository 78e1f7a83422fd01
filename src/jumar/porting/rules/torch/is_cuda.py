"""`x.is_cuda` becomes `x.is_npu`."""

import ast
from collections.abc import Iterator

from jumar.porting.edits import Text
from jumar.porting.rewriting.changes import Change, Leave
from jumar.porting.rewriting.registry import Example, rule
from jumar.porting.rewriting.view import View
from jumar.porting.torch.scripts import HANDLED, IMPORT, TORCH, concerns_torch, is_handled, token

_WHY = Text(
    en="is_cuda is False for tensors on an NPU; is_npu tells",
    zh="NPU 张量的 is_cuda 为 False，应使用 is_npu",
)
_OWN = Text(en="the script sets or defines is_cuda itself", zh="脚本自行定义或赋值 is_cuda，不改动")
_SETTINGS = frozenset(
    {"args", "opt", "opts", "cfg", "config", "flags", "hparams", "FLAGS", "params"}
)


@rule(
    "is-cuda",
    title=Text(en="x.is_cuda becomes x.is_npu", zh="x.is_cuda 改为 x.is_npu"),
    source="torch_npu (Tensor.is_npu); transfer_to_npu of Ascend/pytorch",
    language="torch",
    nodes=(ast.Attribute,),
    examples=(
        Example(
            before="import torch\n\nif x.is_cuda:\n    y = torch.zeros(3)\n",
            after="import torch\nimport torch_npu\n\nif x.is_npu:\n    y = torch.zeros(3)\n",
            options=TORCH,
        ),
        Example(
            before="import torch\n\non = next(self.parameters()).is_cuda\n",
            after="import torch\nimport torch_npu\n\non = next(self.parameters()).is_npu\n",
            options=TORCH,
        ),
        Example(
            before="from torch import nn\n\nassert a.is_cuda and not b.is_cuda, 'x.is_cuda'\n",
            after="from torch import nn\nimport torch_npu\n\n"
            "assert a.is_npu and not b.is_npu, 'x.is_cuda'\n",
            options=TORCH,
        ),
    ),
    untouched=(
        "import torch\n\nif x.is_cuda or x.is_npu:\n    pass\n",
        "import torch\n\nif args.is_cuda:\n    pass\n",
        "import torch\n\nself.is_cuda = True\nprint(self.is_cuda)\n",
        "import torch\n\nclass Batch:\n    def is_cuda(self):\n        return False\n\n"
        "print(batch.is_cuda)\n",
        "import numpy\n\nprint(x.is_cuda)\n",
        "import torch\n\nprint(x.is_npu)\n",
        "import torch\n\nis_cuda = True\nprint(is_cuda)\n",
        "import torch\n\nprint(cfg['is_cuda'])\n",
    ),
)
def is_cuda(node: ast.Attribute, view: View) -> Iterator[Change]:
    """Rename the attribute, unless it is one of the script's own."""
    if node.attr != "is_cuda" or not isinstance(node.ctx, ast.Load):
        return
    if not concerns_torch(view.module):
        return
    if isinstance(node.value, ast.Name) and node.value.id in _SETTINGS:
        return
    if _is_own(view) or is_handled(view.module, node):
        yield Leave(node=node, reason=_OWN if _is_own(view) else HANDLED)
        return
    change = token(view.module, node, "is_cuda", "is_npu")
    if change is not None:
        yield view.rewrite(node, change, reason=_WHY, confidence="likely", imports=IMPORT)


def _is_own(view: View) -> bool:
    return any(
        (isinstance(other, ast.FunctionDef) and other.name == "is_cuda")
        or (
            isinstance(other, ast.Attribute)
            and other.attr == "is_cuda"
            and not isinstance(other.ctx, ast.Load)
        )
        for other in view.module.scopes.nodes
    )
