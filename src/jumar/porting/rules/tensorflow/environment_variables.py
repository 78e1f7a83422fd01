"""Environment variables that a script sets or reads."""

import ast

from jumar.porting.rewriting import View


def assigned_variable(node: ast.AST, view: View) -> tuple[str, ast.expr] | None:
    """The name and value of an environment variable that a statement sets.

    Recognised are `os.environ[name] = value`, `os.environ.setdefault(name, value)` and
    `os.putenv(name, value)`.
    """
    if isinstance(node, ast.Assign) and len(node.targets) == 1:
        target = node.targets[0]
        if isinstance(target, ast.Subscript) and _is_environ(target.value, view):
            return _named(target.slice, node.value)
        return None
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        call = node.value
        if (
            len(call.args) == 2
            and isinstance(call.func, ast.Attribute)
            and view.module.name_of(call.func) in ("os.putenv", "os.environ.setdefault")
        ):
            return _named(call.args[0], call.args[1])
    return None


def read_variable(node: ast.AST, view: View) -> str | None:
    """The name of an environment variable that an expression reads."""
    if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load):
        return _constant(node.slice) if _is_environ(node.value, view) else None
    if not isinstance(node, ast.Call) or not node.args:
        return None
    is_read = view.module.name_of(node.func) in ("os.getenv", "os.environ.get", "os.environ.pop")
    return _constant(node.args[0]) if is_read else None


def _is_environ(node: ast.expr, view: View) -> bool:
    return view.module.name_of(node) == "os.environ"


def _named(name: ast.expr, value: ast.expr) -> tuple[str, ast.expr] | None:
    text = _constant(name)
    return (text, value) if text is not None else None


def _constant(node: ast.expr) -> str | None:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None
