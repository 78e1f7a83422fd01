"""Hand-written GELU functions become the NPU's fused operator."""

import ast
import math
import operator
from collections.abc import Callable

from jumar.porting.rewriting import Changes, Remark, Replacement, Text, View, rule
from jumar.porting.script.expressions import last_name
from jumar.porting.script.module import Module
from jumar.porting.script.nodes import walk

_REASON = Text(
    en="the function computes the tanh approximation of GELU of a single tensor, for which the NPU "
    "has a fused operator with its own gradient",
    zh="该函数对唯一的张量计算 GELU 的 tanh 近似，NPU 有带梯度的融合算子",
)
_ERF = Remark(
    en="this computes GELU with the error function; the NPU's fused operator is the tanh "
    "approximation, which differs by up to 5e-4",
    zh="这是用 erf 计算的 GELU；NPU 融合算子是 tanh 近似，最大相差约 5e-4",
    todo_en="keep it for identical results, or use npu_unary_ops.gelu(x) for speed",
    todo_zh="需要数值一致则保留；追求速度可改用 npu_unary_ops.gelu(x)",
    severity="speed",
)
_OTHER = Remark(
    en="this function is named gelu, but was not recognised as the tanh approximation for one "
    "tensor",
    zh="名为 gelu 的函数，但未能识别为单个张量的 tanh 近似",
    todo_en="compare it with npu_unary_ops.gelu(x), the tanh approximation, before replacing it",
    todo_zh="替换前请与 npu_unary_ops.gelu(x)（tanh 近似）比较",
    severity="speed",
    confidence="unsure",
)
_POINTS = (-2.5, -1.0, -0.3, 0.0, 0.7, 1.9)
_CONSTANTS = {"math.pi": math.pi, "numpy.pi": math.pi}
_OPERATORS: dict[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: operator.pow,
}


def _square(x: float) -> float:
    return x * x


_UNARY: dict[str, Callable[[float], float]] = {
    "tanh": math.tanh,
    "erf": math.erf,
    "sqrt": math.sqrt,
    "square": _square,
    "identity": float,
    "constant": float,
    "cast": float,
    "convert_to_tensor": float,
}
_BINARY: dict[str, Callable[[float, float], float]] = {
    "pow": operator.pow,
    "power": operator.pow,
    "multiply": operator.mul,
    "add": operator.add,
    "subtract": operator.sub,
    "divide": operator.truediv,
}
_NONLINEAR = ("tanh", "erf")
_LIBRARIES = ("tensorflow.", "tensorflow.math.", "tensorflow.nn.", "numpy.", "math.")


@rule(
    "gelu",
    title=Text(
        en="Hand-written GELU becomes npu_unary_ops.gelu", zh="手写 GELU 改为 npu_unary_ops.gelu"
    ),
    source="npu_unary_ops.py of Ascend/tensorflow; defect of convert_tf2npu that replaces methods "
    "by name",
    nodes=(ast.FunctionDef,),
    minimal=False,
)
def gelu(function: ast.FunctionDef, view: View) -> Changes:
    """Replace the body of a function that computes the same as the operator."""
    is_named_gelu = "gelu" in function.name.lower()
    is_method = isinstance(view.module.parent(function), ast.ClassDef)
    body = [part for part in function.body if not _is_docstring(part)]
    if not body or is_method or not isinstance(body[-1], ast.Return):
        return
    if not (is_named_gelu or _is_nonlinear(function)) or not _calls_tensorflow(function, view):
        return
    arguments = function.args
    has_one_parameter = len(arguments.args) == 1 and not (
        arguments.posonlyargs or arguments.kwonlyargs or arguments.vararg or arguments.kwarg
    )
    parameter = arguments.args[0].arg if arguments.args else ""
    values = _values(body, parameter, view.module) if has_one_parameter else None
    if values is not None and _are_close(values, _gelu_tanh):
        start, _ = view.module.span(body[0])
        _, end = view.module.span(body[-1])
        text = f"return {view.npu('npu_unary_ops')}.gelu({parameter})"
        yield view.rewrite(
            function,
            Replacement(start=start, end=end, text=text),
            reason=_REASON,
            imports=("npu_unary_ops",),
        )
    elif values is not None and _are_close(values, _gelu_erf):
        yield view.notice(body[-1], _ERF)
    elif is_named_gelu:
        yield view.notice(body[-1], _OTHER)


def _is_docstring(part: ast.stmt) -> bool:
    return (
        isinstance(part, ast.Expr)
        and isinstance(part.value, ast.Constant)
        and isinstance(part.value.value, str)
    )


def _is_nonlinear(function: ast.FunctionDef) -> bool:
    """Whether a function calls tanh or erf at all."""
    return any(
        isinstance(node, ast.Call) and last_name(node.func) in _NONLINEAR for node in walk(function)
    )


def _calls_tensorflow(function: ast.FunctionDef, view: View) -> bool:
    return any(
        isinstance(node, ast.Call)
        and (view.module.name_of(node.func) or "").startswith("tensorflow.")
        for node in walk(function)
    )


def _gelu_tanh(x: float) -> float:
    return 0.5 * x * (1 + math.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


def _gelu_erf(x: float) -> float:
    return 0.5 * x * (1 + math.erf(x / math.sqrt(2)))


def _are_close(values: list[float], formula: Callable[[float], float]) -> bool:
    return all(
        abs(value - formula(point)) <= 1e-6 for value, point in zip(values, _POINTS, strict=True)
    )


def _values(body: list[ast.stmt], parameter: str, module: Module) -> list[float] | None:
    """Evaluate a function of one number at `_POINTS`; None if it cannot be evaluated.

    Called functions are looked up in tables by their qualified names: no code of the script is run.
    """
    values: list[float] = []
    for point in _POINTS:
        variables: dict[str, float] = {parameter: point}
        for statement in body[:-1]:
            if not (
                isinstance(statement, ast.Assign)
                and len(statement.targets) == 1
                and isinstance(statement.targets[0], ast.Name)
            ):
                return None
            value = _value(statement.value, variables, module)
            if value is None:
                return None
            variables[statement.targets[0].id] = value
        last = body[-1]
        assert isinstance(last, ast.Return)
        value = _value(last.value, variables, module) if last.value is not None else None
        if value is None:
            return None
        values.append(value)
    return values


def _value(node: ast.expr, variables: dict[str, float], module: Module) -> float | None:
    """Evaluate a numeric expression; None if it cannot be evaluated."""
    if isinstance(node, ast.Constant):
        return float(node.value) if isinstance(node.value, int | float) else None
    if isinstance(node, ast.Name) and node.id in variables:
        return variables[node.id]
    if isinstance(node, ast.Name | ast.Attribute):
        return _CONSTANTS.get(module.name_of(node) or "")
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        value = _value(node.operand, variables, module)
        return None if value is None else -value
    if isinstance(node, ast.BinOp):
        left, right = (_value(part, variables, module) for part in (node.left, node.right))
        function = _OPERATORS.get(type(node.op))
        if left is None or right is None or function is None:
            return None
        return _computed(function, left, right)
    if isinstance(node, ast.Call):
        return _value_of_call(node, variables, module)
    return None


def _value_of_call(call: ast.Call, variables: dict[str, float], module: Module) -> float | None:
    """Evaluate a call of a TensorFlow, NumPy or math function that is in the tables."""
    name = module.name_of(call.func) or ""
    library, _, function = name.rpartition(".")
    if f"{library}." not in _LIBRARIES or not call.args:
        return None
    if any(passed.arg not in ("name", "dtype") for passed in call.keywords):
        return None
    if function in _UNARY:
        value = _value(call.args[0], variables, module)
        return None if value is None else _computed(_UNARY[function], value)
    if function in _BINARY and len(call.args) == 2:
        left, right = (_value(part, variables, module) for part in call.args)
        if left is not None and right is not None:
            return _computed(_BINARY[function], left, right)
    return None


def _computed(function: Callable[..., float], *values: float) -> float | None:
    try:
        result = function(*values)
    except (ArithmeticError, ValueError, TypeError):
        return None
    return result if isinstance(result, float) else None
