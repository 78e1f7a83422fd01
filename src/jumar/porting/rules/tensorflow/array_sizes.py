"""The number of samples in an array that a script creates or loads, if it is visible."""

import ast

from jumar.porting.rewriting import View
from jumar.porting.rewriting.editing import argument, literal

_DATA_SETS = {
    "boston_housing": (404, 102),
    "cifar10": (50000, 10000),
    "cifar100": (50000, 10000),
    "fashion_mnist": (60000, 10000),
    "imdb": (25000, 25000),
    "mnist": (60000, 10000),
    "reuters": (8982, 2246),
}
"""The number of training and test samples in the data sets of Keras."""
_FILTERABLE = frozenset({"imdb", "reuters", "boston_housing"})
"""Data sets whose `load_data` has arguments that exclude samples."""
_CREATED_WITH_SHAPE = frozenset(
    f"numpy.{name}" for name in ("zeros", "ones", "empty", "random.random", "random.random_sample")
)
_CREATED_WITH_SIZES = frozenset({"numpy.random.rand", "numpy.random.randn"})
_KEEPING_METHODS = frozenset({"astype", "copy"})
_KEEPING_FUNCTIONS = frozenset(
    {
        *("numpy.asarray", "numpy.array", "numpy.expand_dims"),
        *("keras.utils.to_categorical", "tensorflow.keras.utils.to_categorical"),
        *("keras.utils.np_utils.to_categorical", "keras.preprocessing.sequence.pad_sequences"),
        "tensorflow.keras.preprocessing.sequence.pad_sequences",
    }
)
_ARITHMETIC = (ast.Div, ast.Mult, ast.Add, ast.Sub)
_MAX_DEPTH = 12


def samples_in(node: ast.expr, view: View) -> int | None:
    """The size of an array's first axis; None if it is not certain."""
    return _samples(node, view, 0, frozenset())


def integer_value(node: ast.expr | None, view: View) -> int | None:
    """The value of an integer expression; None if it is not certain."""
    if isinstance(node, ast.Name):
        node = view.module.assigned_value(node)
    value = literal(node)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _samples(node: ast.expr, view: View, depth: int, visited: frozenset[str]) -> int | None:
    if depth > _MAX_DEPTH:
        return None
    if isinstance(node, ast.Name):
        return _of_name(node, view, depth, visited)
    if isinstance(node, ast.List | ast.Tuple):
        sizes = {_samples(part, view, depth + 1, visited) for part in node.elts}
        return sizes.pop() if len(sizes) == 1 else None
    if isinstance(node, ast.BinOp) and isinstance(node.op, _ARITHMETIC):
        # An array and a number: `x / 255.0`.
        if isinstance(literal(node.right), int | float):
            return _samples(node.left, view, depth + 1, visited)
        return None
    if isinstance(node, ast.Call):
        return _of_call(node, view, depth, visited)
    return None


def _of_call(call: ast.Call, view: View, depth: int, visited: frozenset[str]) -> int | None:
    name = view.module.name_of(call.func) or ""
    if name in _CREATED_WITH_SIZES or name in _CREATED_WITH_SHAPE:
        first = call.args[0] if call.args else argument(call, "shape")
        if name in _CREATED_WITH_SHAPE and isinstance(first, ast.Tuple):
            first = first.elts[0] if first.elts else None
        return integer_value(first, view)
    if name in _KEEPING_FUNCTIONS and call.args:
        if name == "numpy.expand_dims" and literal(argument(call, "axis", 1)) in (0, None):
            return None
        return _samples(call.args[0], view, depth + 1, visited)
    if not name and isinstance(call.func, ast.Attribute):
        if call.func.attr in _KEEPING_METHODS or _keeps_samples(call):
            return _samples(call.func.value, view, depth + 1, visited)
        if call.func.attr == "reshape":
            size = integer_value(_first_axis(call), view)
            return size if size is not None and size > 0 else None
    return None


def _first_axis(call: ast.Call) -> ast.expr | None:
    """The size of the first axis that is passed to `reshape`."""
    shape = call.args[0] if call.args else None
    if isinstance(shape, ast.Tuple | ast.List):
        return shape.elts[0] if shape.elts else None
    return shape


def _keeps_samples(call: ast.Call) -> bool:
    """Whether a call is `x.reshape(len(x), ...)` or `x.reshape(x.shape[0], ...)`."""
    if not isinstance(call.func, ast.Attribute) or call.func.attr != "reshape":
        return False
    first, name = _first_axis(call), ast.unparse(call.func.value)
    return first is not None and ast.unparse(first) in (f"len({name})", f"{name}.shape[0]")


def _of_name(node: ast.Name, view: View, depth: int, visited: frozenset[str]) -> int | None:
    """The size on which all bindings of a name agree; `x = x / 255` is ignored."""
    bindings = view.module.bindings(node)
    if not bindings or node.id in visited:
        return None
    sizes: set[int | None] = set()
    for binding in bindings:
        parent = view.module.parent(binding.node)
        if isinstance(parent, ast.AugAssign):
            continue
        if binding.kind == "assignment" and binding.value is not None:
            if _keeps_size(binding.value, node.id, view):
                continue
            sizes.add(_samples(binding.value, view, depth + 1, visited | {node.id}))
        else:
            sizes.add(_of_data_set(binding.node, view))
    return sizes.pop() if len(sizes) == 1 else None


def _keeps_size(value: ast.expr, name: str, view: View) -> bool:
    """Whether a value is the array of that name with the same number of samples."""
    current = value
    while True:
        if isinstance(current, ast.Name):
            return current.id == name
        if isinstance(current, ast.BinOp) and isinstance(current.op, _ARITHMETIC):
            if not isinstance(literal(current.right), int | float):
                return False
            current = current.left
        elif isinstance(current, ast.Call) and isinstance(current.func, ast.Attribute):
            function = view.module.name_of(current.func) or ""
            if function in _KEEPING_FUNCTIONS and function != "numpy.expand_dims" and current.args:
                current = current.args[0]
            elif not function and (
                current.func.attr in _KEEPING_METHODS or _keeps_samples(current)
            ):
                current = current.func.value
            else:
                return False
        else:
            return False


def _of_data_set(target: ast.AST, view: View) -> int | None:
    """The number of samples in an array bound by `(x, y), (a, b) = mnist.load_data()`."""
    pair = view.module.parent(target)
    pairs = view.module.parent(pair) if isinstance(pair, ast.Tuple) else None
    statement = view.module.parent(pairs) if isinstance(pairs, ast.Tuple) else None
    if not (
        isinstance(pair, ast.Tuple)
        and isinstance(pairs, ast.Tuple)
        and len(pairs.elts) == 2
        and isinstance(statement, ast.Assign)
        and isinstance(statement.value, ast.Call)
    ):
        return None
    parts = (view.module.name_of(statement.value.func) or "").split(".")
    if parts[0] not in ("keras", "tensorflow") or "datasets" not in parts[:-2]:
        return None
    data_set, load = parts[-2:]
    if load != "load_data" or data_set not in _DATA_SETS:
        return None
    has_arguments = bool(statement.value.args or statement.value.keywords)
    if has_arguments and data_set in _FILTERABLE:
        return None
    return _DATA_SETS[data_set][pairs.elts.index(pair)]
