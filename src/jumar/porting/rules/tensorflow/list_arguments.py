"""Ranges and maps passed to TensorFlow become lists, as they were in Python 2."""

import ast

from jumar.porting.rewriting import Changes, Text, View, rule
from jumar.porting.rewriting.editing import wrap

_LAZY = frozenset(
    f"{module}.{name}"
    for module in ("builtins", "six.moves")
    for name in ("range", "xrange", "map", "filter", "zip")
)
_NO_TENSORS = (
    "tensorflow.app.",
    "tensorflow.data.Dataset.from_generator",
    "tensorflow.flags.",
    "tensorflow.gfile.",
    "tensorflow.logging.",
)
_REASON = Text(
    en="TensorFlow 1.15 cannot convert the object that Python 3 returns here to a tensor or a list "
    "of tensors; in Python 2, it was a list",
    zh="Python 3 在此返回的对象不能被 TensorFlow 1.15 转为张量或张量列表；在 Python 2 中它是列表",
)


@rule(
    "list-arguments",
    title=Text(
        en="Ranges and maps that become tensors are converted to lists",
        zh="传给 TensorFlow 的 range 与 map 改为列表",
    ),
    source="TensorFlow 1.15 under Python 3.7",
    nodes=(ast.Call,),
)
def list_arguments(call: ast.Call, view: View) -> Changes:
    """Wrap an argument, or the value of the variable passed as one, in `list(...)`."""
    arguments = [*call.args, *(passed.value for passed in call.keywords if passed.arg)]
    lazy = [argument for value in arguments if (argument := _lazy(value, view)) is not None]
    if not lazy:
        return
    name = view.module.name_of(call.func) or ""
    if not name.startswith("tensorflow.") or name.startswith(_NO_TENSORS):
        return
    for value in lazy:
        yield view.rewrite(value, *wrap(view.module, value, "list(", ")"), reason=_REASON)


def _lazy(value: ast.expr, view: View) -> ast.expr | None:
    """The call of `range` or similar that creates a value, inline or in its only assignment."""
    if isinstance(value, ast.Name):
        assigned_value = _assigned(value, view)
        if assigned_value is None:
            return None
        value = assigned_value
    inner = value
    if isinstance(inner, ast.Subscript) and isinstance(inner.slice, ast.Slice):
        # `range(3)[::-1]` is a range as well.
        inner = inner.value
    if not isinstance(inner, ast.Call):
        return None
    return value if view.module.name_of(inner.func) in _LAZY else None


def _assigned(name: ast.Name, view: View) -> ast.expr | None:
    """The value of a variable that is assigned once; None if the script passes it to `next`."""
    bindings = view.module.bindings(name)
    statement = bindings[0].node if len(bindings) == 1 else None
    if not (
        isinstance(statement, ast.Assign)
        and len(statement.targets) == 1
        and isinstance(statement.targets[0], ast.Name)
    ):
        return None
    outer = [view.module.parent(use) for use in view.module.uses(name)]
    is_stepped = any(
        isinstance(call, ast.Call) and view.module.name_of(call.func) == "builtins.next"
        for call in outer
    )
    return None if is_stepped else statement.value
