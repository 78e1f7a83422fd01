"""Reads constants, in any notation, and locations from code."""

import ast
import json
import math

from jumar.porting.edits import Finding
from jumar.porting.npu.options import OptionProblem, Plain
from jumar.porting.script.expressions import last_name
from jumar.porting.script.module import Module

_MAX_DEPTH = 8
"""Depth of names assigned to names, and of nested calls."""

_MAX_SHOWN_LENGTH = 160


def constant(module: Module, node: ast.expr, depth: int = 0) -> Plain | None:
    """Return the constant value of an expression, or None.

    Follows names that are bound once, `tf.compat.as_bytes`, `.encode()`, `bytes`, `str`,
    `json.dumps` of plain values, and arithmetic on numbers.
    """
    if depth > _MAX_DEPTH:
        return None
    if isinstance(node, ast.Constant):
        value = node.value
        return value if isinstance(value, bool | int | float | str | bytes) else None
    if isinstance(node, ast.Name):
        bound_value = bound_once(module, node)
        return constant(module, bound_value, depth + 1) if bound_value is not None else None
    if isinstance(node, ast.Call):
        return _value_of_call(module, node, depth + 1)
    if isinstance(node, ast.BinOp):
        return _computed(module, node, depth + 1)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        operand = constant(module, node.operand, depth + 1)
        return -operand if isinstance(operand, int | float) else None
    return None


def bound_once(module: Module, name: ast.Name) -> ast.expr | None:
    """Return the value assigned to a name, if nothing else binds the name."""
    bindings = module.bindings(name)
    if len(bindings) != 1 or bindings[0].kind != "assignment":
        return None
    node = bindings[0].node
    is_single_target = isinstance(node, ast.AnnAssign) or (
        isinstance(node, ast.Assign)
        and all(isinstance(target, ast.Name) for target in node.targets)
    )
    return bindings[0].value if is_single_target else None


def is_npu(module: Module, node: ast.expr, name: str) -> bool:
    """Return whether an expression is the given name of npu_bridge.

    A name that nothing binds counts: code is often shown without its imports.
    """
    if last_name(node) != name and not isinstance(node, ast.Name):
        return False
    full_name = module.name_of(node)
    if full_name is None:
        return last_name(node) == name and not _is_bound(module, node)
    return full_name.startswith("npu_bridge.") and full_name.rpartition(".")[2] == name


def finding(module: Module, node: ast.AST, problem: OptionProblem, source: str) -> Finding:
    """Locate a problem in the script; the code of an argument includes its name."""
    parent = module.parent(node)
    if isinstance(parent, ast.keyword):
        node = parent
    start, end = module.span(node)
    code = " ".join(module.text[start:end].split())
    if len(code) > _MAX_SHOWN_LENGTH:
        code = code[: _MAX_SHOWN_LENGTH - 1] + "…"
    return problem.finding(
        rule=problem.rule,
        place=module.lines.place(start),
        place_after=None,
        code=code,
        source=source,
    )


def never_both(module: Module, first: ast.AST, second: ast.AST) -> bool:
    """Return whether two statements are in different branches, so that no run reaches both."""
    enclosing = {id(node): node for node in [first, *module.scopes.ancestors(first)]}
    below: ast.AST = second
    for node in module.scopes.ancestors(second):
        if isinstance(node, ast.If) and id(node) in enclosing:
            first_branch = [
                branch
                for branch in (node.body, node.orelse)
                if any(id(statement) in enclosing for statement in branch)
            ]
            return bool(first_branch) and below not in first_branch[0] and below is not node.test
        below = node
    return False


def _is_bound(module: Module, node: ast.expr) -> bool:
    while isinstance(node, ast.Attribute):
        node = node.value
    return not isinstance(node, ast.Name) or bool(module.bindings(node))


def _value_of_call(module: Module, call: ast.Call, depth: int) -> Plain | None:
    name = last_name(call.func)
    if name == "encode" and isinstance(call.func, ast.Attribute):
        text = constant(module, call.func.value, depth)
        return text.encode() if isinstance(text, str) else None
    if not call.args:
        return None
    if name == "dumps" and module.name_of(call.func) == "json.dumps":
        return _dumped(module, call.args[0], depth)
    value = constant(module, call.args[0], depth)
    if name in ("as_bytes", "bytes"):
        return value.encode() if isinstance(value, str) else value
    if name in ("as_str", "as_text", "as_str_any") and isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if name == "str" and value is not None and not isinstance(value, bytes):
        return str(value)
    return value if name in ("as_str", "as_text", "as_str_any") else None


def _dumped(module: Module, node: ast.expr, depth: int) -> str | None:
    """Return the JSON text of a dictionary literal, if all values are known."""
    if isinstance(node, ast.Name):
        node = bound_once(module, node) or node
    if not isinstance(node, ast.Dict):
        return None
    content: dict[str, object] = {}
    for key, value in zip(node.keys, node.values, strict=True):
        name = constant(module, key, depth) if key is not None else None
        if not isinstance(name, str):
            return None
        plain_value = constant(module, value, depth)
        if plain_value is None or isinstance(plain_value, bytes):
            return None
        content[name] = plain_value
    return json.dumps(content)


def _computed(module: Module, node: ast.BinOp, depth: int) -> Plain | None:
    left = constant(module, node.left, depth)
    right = constant(module, node.right, depth)
    if isinstance(node.op, ast.Add):
        if isinstance(left, str) and isinstance(right, str):
            return left + right
        if isinstance(left, bytes) and isinstance(right, bytes):
            return left + right
    if not (isinstance(left, int | float) and isinstance(right, int | float)):
        return None
    try:
        if isinstance(node.op, ast.Add):
            return left + right
        if isinstance(node.op, ast.Sub):
            return left - right
        if isinstance(node.op, ast.Mult):
            return left * right
        # A script may contain 9**9**9, which would take too long.
        if isinstance(node.op, ast.Pow) and isinstance(right, int) and 0 <= right <= 64:
            return _power(left, right) if abs(left) <= 1024 else None
    except OverflowError:
        # A float and an integer that is too large for a float.
        return None
    return None


def _power(base: float, exponent: int) -> float:
    """Return a power, which is an integer if the base is."""
    return math.prod([base] * exponent)
