"""Very large negative constants of masks, which float16 cannot hold, are said."""

import ast
from collections.abc import Iterator

from jumar.porting.edits import Text
from jumar.porting.rewriting.changes import Change
from jumar.porting.rewriting.editing import literal
from jumar.porting.rewriting.registry import rule
from jumar.porting.rewriting.view import View

_LARGEST = 65504.0
_REASON = Text(
    en="{code} is minus infinity in float16: in mixed precision a softmax over a row that is all "
    "masked, or a product with 0, gives NaN",
    zh="{code} 在 float16 中为负无穷：混合精度下整行被 mask 的 softmax，或与 0 相乘，会得到 NaN",
)
_TODO = Text(
    en="use -65504.0 or less in magnitude (BERT: -10000.0, an NMT of the zoo: -65500.0), or keep "
    "this layer in float32 by a mixlist or keep_dtype_scope",
    zh="改用 -65504.0 或绝对值更小的数（BERT 用 -10000.0，ModelZoo 的 NMT 用 -65500.0），"
    "或用混合精度名单、"
    "keep_dtype_scope 使该层保持 float32",
)
_NAMES = {
    "numpy.inf": "inf",
    "numpy.Inf": "inf",
    "numpy.NINF": "-inf",
    "math.inf": "inf",
    "tensorflow.float32.min": "min",
}
_FULL = ("force_fp32", "must_keep_origin_dtype")
_LIBRARIES = ("tensorflow.",)


@rule(
    "mask-constants",
    title=Text(en="Mask constants beyond float16", zh="超出 float16 范围的 mask 常量"),
    source="NMT_ID0512 of ModelZoo-TensorFlow",
    nodes=(ast.UnaryOp, ast.Call, ast.Attribute),
)
def mask_constants(node: ast.UnaryOp | ast.Call | ast.Attribute, view: View) -> Iterator[Change]:
    """A finding where such a constant meets a tensor."""
    if (
        not _may_be_large(node)
        or not _is_large(node, view)
        or not view.module.imports("tensorflow")
    ):
        return
    if not _meets_tensor(node, view):
        return
    code = view.module.source(node)
    yield view.notice(
        node,
        reason=_REASON.filled(code=code),
        todo=_TODO,
        severity="accuracy" if view.options.precision not in _FULL else "look",
        confidence="likely",
    )


def _may_be_large(node: ast.expr) -> bool:
    """A look at the words alone: most calls and attributes are none of these."""
    if isinstance(node, ast.Call):
        return isinstance(node.func, ast.Name) and node.func.id == "float"
    return not isinstance(node, ast.Attribute) or node.attr in ("min", "inf", "Inf", "NINF")


def _is_large(node: ast.expr, view: View) -> bool:
    if isinstance(node, ast.UnaryOp):
        if not isinstance(node.op, ast.USub):
            return False
        value = literal(node)
        if isinstance(value, int | float):
            return value < -_LARGEST
        if isinstance(node.operand, ast.BinOp):
            # `-2**32 + 1`.
            return _power(node.operand) > _LARGEST
        name = view.module.name_of(node.operand)
        return _NAMES.get(name or "") == "inf" or _is_infinity(node.operand, view, "inf")
    if isinstance(node, ast.Call):
        return _is_infinity(node, view, "-inf")
    found = _NAMES.get(view.module.name_of(node) or "") if isinstance(node, ast.Attribute) else ""
    return found in ("-inf", "min")


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


def _meets_tensor(node: ast.expr, view: View) -> bool:
    """Whether a constant is multiplied, added or selected in an expression of TensorFlow."""
    statement = view.module.statement(node)
    joined = False
    for around in view.module.scopes.ancestors(node):
        if around is statement:
            break
        if isinstance(around, ast.BinOp) and isinstance(around.op, ast.Mult | ast.Add | ast.Sub):
            joined = True
        if isinstance(around, ast.Call):
            name = view.module.name_of(around.func) or ""
            if name.startswith(_LIBRARIES):
                return True
            if name.startswith(("numpy.", "builtins.")):
                return False
    default = isinstance(view.module.parent(node), ast.arguments)
    return joined or default
