"""`x.cuda()` becomes `x.npu()`."""

import ast
import re
from collections.abc import Iterator

from jumar.porting.edits import Confidence, Text
from jumar.porting.rewriting.changes import Change, Leave, Replacement
from jumar.porting.rewriting.registry import Example, rule
from jumar.porting.rewriting.view import View
from jumar.porting.torch.scripts import HANDLED, IMPORT, TORCH, concerns_torch, is_handled, token

_MOVE = Text(
    en="torch_npu gives tensors, modules and storages a method npu() with the same arguments",
    zh="torch_npu 为张量、模块与存储提供参数相同的 npu() 方法",
)
_OWN = Text(
    en="calls of cuda() are calls of npu() now; a class with its own cuda() answers to that name",
    zh="cuda() 的调用已改为 npu()，自定义的 cuda() 方法随之改名",
)
_DEF = re.compile(r"(?:async\s+)?def\s+")


@rule(
    "cuda-method",
    title=Text(en="x.cuda() becomes x.npu()", zh="x.cuda() 改为 x.npu()"),
    source="torch_npu (Tensor.npu, Module.npu); transfer_to_npu of Ascend/pytorch",
    language="torch",
    nodes=(ast.Call, ast.FunctionDef),
    references=("torch.Tensor.cuda", "torch.nn.Module.cuda"),
    examples=(
        Example(
            before="import torch\n\nmodel = torch.nn.Linear(2, 2).cuda()\n"
            "x = x.cuda(args.gpu, non_blocking=True)\n",
            after="import torch\nimport torch_npu\n\nmodel = torch.nn.Linear(2, 2).npu()\n"
            "x = x.npu(args.gpu, non_blocking=True)\n",
            options=TORCH,
        ),
        Example(
            before="from torch import nn\n\nclass Net(nn.Module):\n"
            "    def cuda(self, device=None):\n        return super().cuda(device)\n",
            after="from torch import nn\nimport torch_npu\n\nclass Net(nn.Module):\n"
            "    def npu(self, device=None):\n        return super().npu(device)\n",
            options=TORCH,
        ),
        Example(
            before="import torch\n\nbatch = list(map(torch.Tensor.cuda, batch))\n",
            after="import torch\nimport torch_npu\n\nbatch = list(map(torch.Tensor.npu, batch))\n",
            options=TORCH,
        ),
        Example(
            before="import torch\n\n"
            "state = torch.load(path, map_location=lambda s, _: s.cuda(0))\n",
            after="import torch\nimport torch_npu\n\n"
            "state = torch.load(path, map_location=lambda s, _: s.npu(0))\n",
            options=TORCH,
        ),
    ),
    untouched=(
        "import torch\n\nif kind == 'npu':\n    x.npu()\nelif kind == 'cuda':\n    x.cuda()\n",
        "import torch\n\nif args.cuda:\n    print('on the GPU')\n",
        "import torch\n\nargs.cuda = not args.no_cuda\n",
        "import mylib\nimport torch\n\nmylib.cuda()\n",
        "import numpy\n\nx = wrapper.cuda()\n",
        "import torch\n\ndef cuda(x):\n    return x\n\ny = cuda(1)\n",
        "import torch\n\nx.npu()\n",
        "import torch\n\nx = torch.zeros(3).to('cpu')\n",
        "import tensorflow as tf\n\nthing.cuda()\n",
        "import torch\n\nsettings = {'cuda': 1}\nsettings['cuda']\n",
        "import torch\n\nprint('x.cuda()')  # x.cuda()\n",
    ),
)
def cuda_method(node: ast.AST, view: View) -> Iterator[Change]:
    """Rename the call, and methods of that name."""
    if not concerns_torch(view.module):
        return
    if isinstance(node, ast.FunctionDef):
        yield from _definition(node, view)
        return
    function = node.func if isinstance(node, ast.Call) else node
    if not isinstance(function, ast.Attribute) or function.attr != "cuda":
        return
    name = view.module.name_of(function)
    if name is not None and not name.startswith(("torch.Tensor", "torch.nn.Module", "tree:")):
        return
    if isinstance(node, ast.Call) and name is not None and not name.startswith("tree:"):
        # Seen as a reference, too.
        return
    if name is not None and name.startswith("tree:") and view.module.definition(name)[1]:
        return
    change = token(view.module, function, "cuda", "npu")
    if change is not None and is_handled(view.module, node):
        yield Leave(node=node, reason=HANDLED)
    elif change is not None:
        yield view.rewrite(
            function if not isinstance(node, ast.Call) else node,
            change,
            reason=_MOVE,
            confidence=_confidence(function.value, view),
            imports=IMPORT,
        )


def _confidence(receiver: ast.expr, view: View) -> Confidence:
    """Certain where the receiver is made by PyTorch, or by a module class of the tree."""
    if view.module.name_of(receiver) in ("torch.Tensor", "torch.nn.Module"):
        return "certain"
    if isinstance(receiver, ast.Call):
        name = view.kinds.called(receiver) or ""
        return "certain" if name.startswith("torch.") else "likely"
    if isinstance(receiver, ast.Name):
        _, bindings = view.module.scopes.lookup(receiver)
        made = [binding.value for binding in bindings]
        if made and all(
            isinstance(value, ast.Call) and (view.kinds.called(value) or "").startswith("torch.")
            for value in made
        ):
            return "certain"
    return "likely"


def _definition(node: ast.FunctionDef, view: View) -> Iterator[Change]:
    holder = view.module.parent(node)
    if node.name != "cuda" or not isinstance(holder, ast.ClassDef):
        return
    if any(isinstance(other, ast.FunctionDef) and other.name == "npu" for other in holder.body):
        return
    start, _ = view.module.span(node)
    head = _DEF.match(view.module.text, start)
    if head is None or not view.module.text.startswith("cuda", head.end()):
        return
    change = Replacement(start=head.end(), end=head.end() + len("cuda"), text="npu")
    yield view.rewrite(node, change, reason=_OWN, confidence="likely", imports=IMPORT)
