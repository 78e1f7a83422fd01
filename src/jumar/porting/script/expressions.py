"""Properties of an expression by its form alone, regardless of what its names refer to."""

import ast

from jumar.porting.script.nodes import walk


def is_none(node: ast.AST | None) -> bool:
    """Whether an expression is the constant `None`."""
    return isinstance(node, ast.Constant) and node.value is None


def last_name(node: ast.AST | None) -> str:
    """The last name of `a.b.c`; empty for anything else."""
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def names_within(node: ast.AST) -> list[str]:
    """All names of variables and attributes in a node."""
    return [name for name in map(last_name, walk(node)) if name]


def is_omitted(node: ast.AST | None) -> bool:
    """Whether an argument is omitted or `None`."""
    return node is None or is_none(node)


def method_name(node: ast.AST | None) -> str:
    """The method that an expression calls: `run` of `session.run(x)`; empty for anything else."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        return node.func.attr
    return ""


def argument_values(call: ast.Call) -> list[ast.expr]:
    """The values that a call passes, by position and by keyword."""
    return [*call.args, *(passed.value for passed in call.keywords)]


def imported_names(node: ast.Import | ast.ImportFrom) -> list[str]:
    """The dotted names that a statement imports; none of modules of the script's own package."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    return [] if node.level else [f"{node.module}.{alias.name}" for alias in node.names]
