"""Decide by context which strings of a PyTorch script are devices."""

import ast
import re
from typing import Literal

from jumar.porting.script.expressions import last_name
from jumar.porting.script.module import Module
from jumar.porting.script.nodes import walk
from jumar.porting.torch.scripts import is_message

Verdict = Literal["certain", "likely", "table", "unclear", "no"]
"""`table`: in a dictionary, whose keys and values are read by other code. `unclear`: the bare word,
and the context does not suggest a device. `no`: text for people, or another kind of name."""

_DEVICE = re.compile(r"cuda(?::(?:\d+|%d|%s|%i|\{[^{}]*\})?)?")
_DEVICE_NAME = re.compile(r"(?i)device|(?:^|_)dev(?:$|_)|map_location|(?:^|_)loc(?:$|_)")
_DEVICES = frozenset(
    {
        "cpu",
        "cuda",
        "npu",
        "xpu",
        "mps",
        "meta",
        "hpu",
        "xla",
        "mlu",
        "musa",
        "ipu",
        "vulkan",
        "hip",
    }
)
_NAME_FUNCTIONS = frozenset({"getattr", "hasattr", "setattr", "delattr", "import_module", "join"})
"""Functions whose string arguments are names or parts of paths rather than devices."""
_DEVICE_CALLS = frozenset(
    {
        "torch.device",
        "torch.set_default_device",
        "torch.get_device_module",
        "torch.Generator",
        "torch.load",
        "torch.amp.autocast",
        "torch.amp.GradScaler",
        "torch.amp.custom_fwd",
        "torch.amp.custom_bwd",
        "torch.is_autocast_enabled",
        "torch.get_autocast_dtype",
        "torch.distributed.device_mesh.init_device_mesh",
        "torch.distributed.init_device_mesh",
    }
)
_MOVES = frozenset({"to", "to_empty", "pin_memory"})


def device_text(node: ast.expr) -> str | None:
    """The text of a string, with `{}` for an f-string's expressions; None for other expressions."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else None
    if not isinstance(node, ast.JoinedStr):
        return None
    parts = [
        part.value if isinstance(part, ast.Constant) and isinstance(part.value, str) else "{}"
        for part in node.values
    ]
    return "".join(parts)


def is_device(text: str) -> bool:
    """Whether a text is a CUDA device: `cuda`, `cuda:0`, or a format string for one."""
    return bool(_DEVICE.fullmatch(text))


def verdict(module: Module, node: ast.expr, text: str) -> Verdict:
    """Decide whether a string that could be a device is one.

    Args:
        module: The script.
        node: The string.
        text: The result of `device_text` for it.
    """
    if is_message(module, node):
        return "no"
    inner, parent, beside_cpu = _value(module, node)
    if is_message(module, inner):
        return "no"
    if isinstance(parent, ast.FormattedValue) or _is_among_other_strings(module, node):
        return "table"
    by_context = _by_context(module, inner, parent)
    if by_context != "unclear":
        return by_context
    # A string with a number, or an alternative to 'cpu', can hardly be anything else.
    return "likely" if beside_cpu or ":" in text else "unclear"


def _value(module: Module, node: ast.expr) -> tuple[ast.expr, ast.AST | None, bool]:
    """The expression that a string's value becomes, its parent, and whether 'cpu' is next to it."""
    beside_cpu = False
    while True:
        parent = module.parent(node)
        if isinstance(parent, ast.IfExp) and node is not parent.test:
            beside_cpu = beside_cpu or _is_cpu(parent.body) or _is_cpu(parent.orelse)
        elif isinstance(parent, ast.List | ast.Tuple | ast.Set):
            beside_cpu = beside_cpu or any(map(_is_cpu, parent.elts))
        elif isinstance(parent, ast.FormattedValue):
            f_string = module.parent(parent)
            if not isinstance(f_string, ast.JoinedStr) or not _begins_device(f_string, parent):
                return node, parent, beside_cpu
            node = f_string
            continue
        elif isinstance(parent, ast.BinOp) and isinstance(parent.op, ast.Add | ast.Mod):
            if node is not parent.left:
                return node, parent, beside_cpu
        elif isinstance(parent, ast.Attribute) and parent.attr == "format":
            call = module.parent(parent)
            if isinstance(call, ast.Call) and call.func is parent:
                node = call
                continue
            return node, parent, beside_cpu
        elif not isinstance(parent, ast.BoolOp | ast.Starred | ast.NamedExpr):
            return node, parent, beside_cpu
        node = parent


def _begins_device(f_string: ast.JoinedStr, part: ast.FormattedValue) -> bool:
    """Whether a part of an f-string can be the device type: `{...}`, or `{...}:` and a number."""
    if f_string.values[0] is not part:
        return False
    rest = f_string.values[1:]
    return not rest or (isinstance(rest[0], ast.Constant) and rest[0].value == ":")


def _is_among_other_strings(module: Module, node: ast.expr) -> bool:
    """Whether the list around a string also has strings that are no devices: 'gpu', 'auto'."""
    parent = module.parent(node)
    if not isinstance(parent, ast.List | ast.Tuple | ast.Set):
        return False
    values = [element.value for element in parent.elts if isinstance(element, ast.Constant)]
    return any(
        isinstance(value, str) and not is_device(value) and value.partition(":")[0] not in _DEVICES
        for value in values
    )


def _by_context(module: Module, node: ast.expr, parent: ast.AST | None) -> Verdict:
    if isinstance(parent, ast.keyword):
        return _as_keyword(module, parent)
    if isinstance(parent, ast.Call):
        return _as_argument(module, node, parent)
    if isinstance(parent, ast.Compare):
        return _compared(module, node, parent)
    if isinstance(parent, ast.Dict):
        return _in_table(module, parent)
    if isinstance(parent, ast.Subscript | ast.MatchValue):
        return "table"
    if _DEVICE_NAME.search(_target(module, node, parent)):
        return "likely"
    names = parent.targets if isinstance(parent, ast.Assign) else []
    is_device_elsewhere = any(_is_device_variable(module, name, node) for name in names)
    return "likely" if is_device_elsewhere else "unclear"


def _is_device_variable(module: Module, name: ast.expr, ignored: ast.expr | None = None) -> bool:
    """Whether a variable is a device, judging by its uses and by values other than `ignored`.

    A value and the strings that it is compared with have to be rewritten together: otherwise, a
    branch of the script would never be taken again.
    """
    if not isinstance(name, ast.Name):
        return False
    values = [binding.value for binding in module.bindings(name) if binding.value is not ignored]
    if any(_is_device_value(module, value) for value in values if value is not None):
        return True
    return any(_is_use(module, use) for use in module.uses(name))


def _is_device_value(module: Module, value: ast.expr) -> bool:
    for inner in walk(value):
        if isinstance(inner, ast.Constant | ast.JoinedStr):
            text = device_text(inner) or ""
            if text in _DEVICES - {"cuda", "meta", "hip"} or text.startswith("npu:"):
                return not is_message(module, inner)
            if is_device(text) and not isinstance(module.parent(inner), ast.JoinedStr):
                _, parent, beside_cpu = _value(module, inner)
                if beside_cpu or _DEVICE_NAME.search(_target(module, inner, parent)):
                    return True
    return False


def _is_use(module: Module, use: ast.Name) -> bool:
    """Whether a variable is passed to PyTorch as a device."""
    parent = module.parent(use)
    if isinstance(parent, ast.keyword):
        return _as_keyword(module, parent) != "unclear"
    if isinstance(parent, ast.Call) and use in parent.args:
        name = module.name_of(parent.func) or ""
        return name in _DEVICE_CALLS - {"torch.load"} or last_name(parent.func) in _MOVES
    return False


def _target(module: Module, node: ast.expr, parent: ast.AST | None) -> str:
    """The name that a value is bound to, by assignment, default, loop or `return`; else empty."""
    if isinstance(parent, ast.Assign):
        return " ".join(map(module.source, parent.targets))
    if isinstance(
        parent, ast.AnnAssign | ast.AugAssign | ast.For | ast.NamedExpr | ast.comprehension
    ):
        return module.source(parent.target)
    if isinstance(parent, ast.Return):
        function = module.function(parent)
        return function.name if function is not None else ""
    if isinstance(parent, ast.arguments):
        plain = [*parent.posonlyargs, *parent.args]
        pairs = dict(zip(parent.defaults[::-1], plain[::-1], strict=False))
        pairs |= {
            default: argument
            for argument, default in zip(parent.kwonlyargs, parent.kw_defaults, strict=True)
            if default is not None
        }
        return pairs[node].arg if node in pairs else ""
    return ""


def _as_keyword(module: Module, passed: ast.keyword) -> Verdict:
    call = module.parent(passed)
    name = (module.name_of(call.func) or "") if isinstance(call, ast.Call) else ""
    if passed.arg is None:
        return "unclear"
    if name == "torch.device" or _DEVICE_NAME.search(passed.arg):
        return "certain" if name.startswith("torch.") else "likely"
    if passed.arg in ("default", "choices", "const") and isinstance(call, ast.Call):
        first = call.args[0] if call.args else None
        option = first.value if isinstance(first, ast.Constant) else ""
        is_likely = passed.arg == "default" or (isinstance(option, str) and "dev" in option.lower())
        return "likely" if is_likely else "unclear"
    return "unclear"


def _as_argument(module: Module, node: ast.expr, call: ast.Call) -> Verdict:
    name = module.name_of(call.func) or ""
    if name in _DEVICE_CALLS:
        return "certain"
    last = last_name(call.func)
    if last in _MOVES:
        return "certain"
    if last in ("startswith", "endswith", "split") and isinstance(call.func, ast.Attribute):
        return _by_comparison(module.source(call.func.value))
    if last in _NAME_FUNCTIONS or name.startswith("argparse"):
        return "table" if last != "join" else "no"
    if last in ("get", "setdefault", "getenv", "pop") and len(call.args) > 1:
        first = device_text(call.args[0])
        return "likely" if first and node is call.args[1] and "dev" in first.lower() else "table"
    if last == "parametrize" and call.args:
        first = device_text(call.args[0]) or ""
        return "likely" if _DEVICE_NAME.search(first) else "unclear"
    if name.startswith("torch.") and name != "torch.tensor":
        return "likely"
    return "likely" if "device" in last.lower() else "unclear"


def _compared(module: Module, node: ast.expr, compare: ast.Compare) -> Verdict:
    sides = [compare.left, *compare.comparators]
    for side in sides:
        if side is node:
            continue
        if isinstance(side, ast.Attribute) and side.attr == "type":
            return "certain"
        if _by_comparison(module.source(side)) == "likely" or _is_device_variable(module, side):
            return "likely"
    return "unclear"


def _in_table(module: Module, table: ast.Dict) -> Verdict:
    """The verdict for a dictionary: torch.load reads `map_location`, the script reads others."""
    parent = module.parent(table)
    if isinstance(parent, ast.keyword) and parent.arg == "map_location":
        return "likely"
    if isinstance(parent, ast.Assign) and "map_location" in _target(module, table, parent):
        return "likely"
    return "table"


def _by_comparison(source: str) -> Verdict:
    """The verdict for a string that is compared with an expression, given its source."""
    return "likely" if re.search(r"(?i)dev|location|\.type\b|\bloc\b", source) else "unclear"


def _is_cpu(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value in _DEVICES - {"cuda"}
