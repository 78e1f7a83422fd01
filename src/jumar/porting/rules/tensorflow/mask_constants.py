"""Very large negative constants, as in masks, which float16 cannot represent."""

import ast

from jumar.porting.rewriting import View
from jumar.porting.rewriting.editing import literal

_MAX_FLOAT16 = 65504.0
_NAMES = {
    "numpy.inf": "inf",
    "numpy.Inf": "inf",
    "numpy.NINF": "-inf",
    "math.inf": "inf",
    "tensorflow.float32.min": "min",
}
_FULL_PRECISION = ("force_fp32", "must_keep_origin_dtype")
_LIBRARIES = ("tensorflow.",)


def is_mask_beyond_float16(node: ast.UnaryOp | ast.Call | ast.Attribute, view: View) -> bool:
    """Whether a node is a number that float16 cannot represent, combined with a tensor."""
    return (
        _may_be_large(node)
        and _is_large(node, view)
        and view.module.imports("tensorflow")
        and _is_combined_with_tensor(node, view)
    )


def keeps_float32(_: ast.AST, view: View) -> bool:
    """Whether the port leaves numbers in float32."""
    return view.options.precision in _FULL_PRECISION


def _may_be_large(node: ast.expr) -> bool:
    """A quick check by name, which excludes most calls and attributes."""
    if isinstance(node, ast.Call):
        return isinstance(node.func, ast.Name) and node.func.id == "float"
    return not isinstance(node, ast.Attribute) or node.attr in ("min", "inf", "Inf", "NINF")


def _is_large(node: ast.expr, view: View) -> bool:
    if isinstance(node, ast.UnaryOp):
        if not isinstance(node.op, ast.USub):
            return False
        value = literal(node)
        if isinstance(value, int | float):
            return value < -_MAX_FLOAT16
        if isinstance(node.operand, ast.BinOp):
            # As in `-2**32 + 1`.
            return _power(node.operand) > _MAX_FLOAT16
        name = view.module.name_of(node.operand)
        return _NAMES.get(name or "") == "inf" or _is_infinity(node.operand, view, "inf")
    if isinstance(node, ast.Call):
        return _is_infinity(node, view, "-inf")
    constant = (
        _NAMES.get(view.module.name_of(node) or "") if isinstance(node, ast.Attribute) else ""
    )
    return constant in ("-inf", "min")


def _power(node: ast.BinOp) -> float:
    base, exponent = literal(node.left), literal(node.right)
    if (
        isinstance(node.op, ast.Pow)
        and isinstance(base, int | float)
        and isinstance(exponent, int)
        and 0 < base <= 16
        and 0 < exponent <= 64
    ):
        return float(base**exponent)
    return 0.0


def _is_infinity(node: ast.expr, view: View, text: str) -> bool:
    return (
        isinstance(node, ast.Call)
        and view.module.name_of(node.func) == "builtins.float"
        and len(node.args) == 1
        and str(literal(node.args[0])).lower() in (text, text.replace("inf", "infinity"))
    )


def _is_combined_with_tensor(node: ast.expr, view: View) -> bool:
    """Whether a constant is multiplied, added or selected in a TensorFlow expression."""
    statement = view.module.statement(node)
    is_operand = False
    for enclosing in view.module.scopes.ancestors(node):
        if enclosing is statement:
            break
        if isinstance(enclosing, ast.BinOp) and isinstance(
            enclosing.op, ast.Mult | ast.Add | ast.Sub
        ):
            is_operand = True
        if isinstance(enclosing, ast.Call):
            name = view.module.name_of(enclosing.func) or ""
            if name.startswith(_LIBRARIES):
                return True
            if name.startswith(("numpy.", "builtins.")):
                return False
    is_default = isinstance(view.module.parent(node), ast.arguments)
    return is_operand or is_default
