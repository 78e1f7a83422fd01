"""Shared by the PyTorch rules: whether a script uses PyTorch, and edits of names in its text."""

import ast
import re
from typing import Literal, get_args
from weakref import WeakKeyDictionary

from jumar.porting.edits import Text
from jumar.porting.rewriting.changes import Replacement
from jumar.porting.rewriting.view import View
from jumar.porting.script.expressions import last_name
from jumar.porting.script.module import Module

HANDLED = Text(
    en="the script already handles NPUs separately", zh="脚本已在别处单独处理 NPU，此处不改动"
)
"""Why a CUDA construct is left unchanged if `is_handled` is true."""

IMPORT = ("torch_npu:",)
"""The imports of a rewrite whose new code needs the device that torch_npu registers."""

_FAMILY = (
    "torch|torchvision|torchaudio|torchtext|torch_npu|pytorch_lightning|lightning|accelerate|"
    "transformers|diffusers|peft|timm|apex|fairseq|ignite|mmcv|mmengine|monai|kornia|deepspeed|"
    "torch_geometric|torchmetrics"
)
_RIVALS = (
    "tensorflow|jax|numba|cupy|pycuda|paddle|mxnet|mindspore|chainer|theano|keras|cudf|cuml|dgl"
)
_IMPORTS = re.compile(
    rf"(?m)^\s*(?:from|import)\s+(?:[\w.]+\s*(?:as\s+\w+\s*)?,\s*)*(?:{_FAMILY})\b"
)
_RIVAL_IMPORTS = re.compile(
    rf"(?m)^\s*(?:from|import)\s+(?:[\w.]+\s*(?:as\s+\w+\s*)?,\s*)*(?:{_RIVALS})\b"
)
_NPU = re.compile(r"(?<![A-Za-z0-9])(?:torch_)?npu(?![A-Za-z0-9])")
_LITERAL = re.compile(r"[A-Za-z]{0,2}(?:\"\"\"|'''|\"|')")
_MESSAGE_METHODS = frozenset(
    "print warn warning info debug error critical exception log write fail skip skipif "  # noqa: SIM905
    "getLogger print_rank_0".split()
)
_MESSAGE_FUNCTIONS = re.compile(r"(?i)log|warn|print|error|exception|parser\.error")


Guard = Literal["try", "condition", "function"]
"""An import that may fail, one under a condition, and one in a function that need not be called."""
_IMPORT_ERRORS = frozenset({"ImportError", "ModuleNotFoundError", "Exception", "BaseException"})

_USES_TORCH: "WeakKeyDictionary[Module, bool]" = WeakKeyDictionary()


def uses_torch(module: Module) -> bool:
    """Whether a script uses PyTorch, directly or through a module of the tree."""
    if module not in _USES_TORCH:
        _USES_TORCH[module] = bool(_IMPORTS.search(module.text)) or any(
            _IMPORTS.search(imported_module.text) for imported_module in _imported_modules(module)
        )
    return _USES_TORCH[module]


def may_use_torch(module: Module) -> bool:
    """Whether a script in a PyTorch tree may use PyTorch: it does, or imports no other library."""
    return not _RIVAL_IMPORTS.search(module.text) or uses_torch(module)


def replace_last_name(module: Module, node: ast.AST, old: str, new: str) -> Replacement | None:
    """Replace the last part of a dotted name.

    Returns None if the text there differs: until Python 3.11, the parser reports wrong positions
    for expressions in multi-line f-strings.
    """
    _, end = module.span(node)
    start = end - len(old)
    if module.text[start:end] != old:
        return None
    return Replacement(start=start, end=end, text=new)


def replace_import(module: Module, node: ast.ImportFrom, lines: list[str]) -> Replacement | None:
    """Replace an import by other lines.

    Returns None if there are comments within its parentheses, which would be separated from the
    names they belong to.
    """
    if "#" in module.source(node):
        return None
    start, end = module.span(node)
    text = f"{module.lines.newline}{module.lines.indent(start)}".join(lines)
    return Replacement(start=start, end=end, text=text)


def replace_in_literal(module: Module, node: ast.AST, old: str, new: str) -> Replacement | None:
    """Replace the beginning of a string literal; return None if it begins differently."""
    start, end = module.span(node)
    quote = _LITERAL.match(module.text, start, end)
    if quote is None or not module.text.startswith(old, quote.end()):
        return None
    return Replacement(start=quote.end(), end=quote.end() + len(old), text=new)


def is_message(module: Module, node: ast.AST) -> bool:
    """Whether an expression is only text for people: printed, logged, raised, or a docstring."""
    parent = module.parent(node)
    while isinstance(parent, ast.BinOp | ast.JoinedStr | ast.FormattedValue | ast.IfExp):
        node, parent = parent, module.parent(parent)
    if isinstance(parent, ast.Expr):
        return True
    if isinstance(parent, ast.keyword):
        return parent.arg in ("help", "description", "title", "label", "reason")
    if isinstance(parent, ast.Attribute) and parent.attr in ("format", "join"):
        call = module.parent(parent)
        return isinstance(call, ast.Call) and is_message(module, call)
    if not isinstance(parent, ast.Call) or node is parent.func:
        return False
    callee = parent.func
    if isinstance(module.parent(parent), ast.Raise):
        return True
    if isinstance(callee, ast.Attribute):
        return callee.attr in _MESSAGE_METHODS
    return isinstance(callee, ast.Name) and bool(_MESSAGE_FUNCTIONS.search(callee.id))


def is_handled(module: Module, node: ast.AST) -> bool:
    """Whether the script already handles NPUs next to a CUDA construct.

    This is the case if another branch of the same `if`, another part of the same condition, or
    another element of the same list names the NPU: porting would only duplicate it.
    """
    inner: ast.AST = node
    for enclosing in module.scopes.ancestors(node):
        alternatives: list[ast.AST] = []
        if isinstance(enclosing, ast.BoolOp):
            alternatives = [value for value in enclosing.values if value is not inner]
        elif isinstance(enclosing, ast.List | ast.Tuple | ast.Set):
            alternatives = [value for value in enclosing.elts if value is not inner]
        elif isinstance(enclosing, ast.Dict) and inner in enclosing.keys:
            alternatives = [key for key in enclosing.keys if key is not None and key is not inner]
        elif isinstance(enclosing, ast.If):
            alternatives = _other_tests(module, enclosing)
        if any(_NPU.search(module.source(alternative)) for alternative in alternatives):
            return True
        inner = enclosing
    return False


def _other_tests(module: Module, node: ast.If) -> list[ast.AST]:
    """The tests of a chain of `if` and `elif`, except that of one branch."""
    head = node
    parent = module.parent(head)
    while isinstance(parent, ast.If) and parent.orelse == [head]:
        head, parent = parent, module.parent(parent)
    tests: list[ast.AST] = []
    current: ast.stmt | None = head
    while isinstance(current, ast.If):
        if current is not node:
            tests.append(current.test)
        current = current.orelse[0] if len(current.orelse) == 1 else None
    return tests


def is_outermost(module: Module, node: ast.expr) -> bool:
    """Whether a dotted name is not the start of a longer one."""
    parent = module.parent(node)
    return not (isinstance(parent, ast.Attribute) and parent.value is node)


def is_imported_name(module: Module, node: ast.expr) -> bool:
    """Whether an expression refers to a member of a library directly, not through a variable.

    After `previous = cudnn.allow_tf32`, `previous` resolves to the same name, but must not be
    replaced.
    """
    if isinstance(node, ast.Attribute):
        return is_imported_name(module, node.value)
    if not isinstance(node, ast.Name):
        return False
    bindings = module.bindings(node)
    return bool(bindings) and all(binding.kind == "import" for binding in bindings)


def guard(view: View, node: ast.stmt) -> Guard | None:
    """What lets a script run without an import: the strongest of those around it."""
    guards: set[Guard] = set()
    inner: ast.AST = node
    for enclosing in view.module.scopes.ancestors(node):
        if isinstance(enclosing, ast.Try):
            if inner in enclosing.body and any(map(_catches_import_error, enclosing.handlers)):
                guards.add("try")
        elif isinstance(enclosing, ast.If):
            guards.add("condition")
        elif isinstance(enclosing, ast.FunctionDef | ast.AsyncFunctionDef):
            guards.add("function")
        inner = enclosing
    return next((name for name in get_args(Guard) if name in guards), None)


def _catches_import_error(handler: ast.ExceptHandler) -> bool:
    caught = handler.type
    kinds = caught.elts if isinstance(caught, ast.Tuple) else [caught]
    return any(kind is None or last_name(kind) in _IMPORT_ERRORS for kind in kinds)


def _imported_modules(module: Module) -> list[Module]:
    paths = [
        module.project.find(binding.module, module.path)
        for bindings in module.scopes.module.bindings.values()
        for binding in bindings
        if binding.kind == "import"
    ]
    modules = [module.project.module(path) for path in paths if path]
    return [imported for imported in modules if imported is not None and imported is not module]
