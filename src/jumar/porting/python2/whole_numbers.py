"""Divisions whose result must be an integer, which fail with Python 3's `/`."""

import ast
from collections.abc import Iterator, Sequence

from jumar.porting.script.nodes import children, walk

_RANGES = ("range", "xrange")
_KEEP_INTEGERS = ast.Add | ast.Sub | ast.Mult | ast.FloorDiv | ast.Mod
_Scope = ast.Module | ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef


def divisions_of_integers(tree_nodes: Sequence[ast.AST]) -> set[ast.BinOp]:
    """The divisions whose result is an argument of `range` or a bound of a slice.

    Neither accepts a float, so the operands must have been integers, and `/` rounded down. The
    result may pass through sums and products, and through a variable to which the function assigns
    nothing else.

    Args:
        tree_nodes: The nodes of a script as Python 3 parses it, breadth first.
    """
    divisions: set[ast.BinOp] = set()
    if not any(isinstance(node, ast.Div) for node in tree_nodes):
        return divisions
    for scope, nodes in _scopes(tree_nodes[0]):
        values_by_name = _assigned(scope, nodes)
        for node in nodes:
            for value in _integer_expressions(node):
                for operand in _operands(value):
                    divisions.update(_divisions(operand, values_by_name))
    return divisions


def _scopes(tree: ast.AST) -> Iterator[tuple[ast.AST, list[ast.AST]]]:
    """Each scope with its nodes, except those of nested scopes."""
    pending_scopes: list[ast.AST] = [tree]
    while pending_scopes:
        scope = pending_scopes.pop()
        nodes: list[ast.AST] = []
        pending = children(scope)
        while pending:
            node = pending.pop()
            nodes.append(node)
            if isinstance(node, _Scope):
                pending_scopes.append(node)
            else:
                pending += children(node)
        yield scope, nodes


def _assigned(scope: ast.AST, nodes: list[ast.AST]) -> dict[str, list[ast.expr | None]]:
    """The values assigned to each name of a scope; None for values that are not expressions."""
    values_by_name: dict[str, list[ast.expr | None]] = {}
    arguments = getattr(scope, "args", None)
    if isinstance(arguments, ast.arguments):
        for node in walk(arguments):
            if isinstance(node, ast.arg):
                values_by_name.setdefault(node.arg, []).append(None)
    plain_targets: set[ast.expr] = set()
    for node in nodes:
        if isinstance(node, ast.Assign):
            for target in node.targets:
                if isinstance(target, ast.Name):
                    plain_targets.add(target)
                    values_by_name.setdefault(target.id, []).append(node.value)
    for node in nodes:
        if (
            isinstance(node, ast.Name)
            and not isinstance(node.ctx, ast.Load)
            and node not in plain_targets
        ):
            values_by_name.setdefault(node.id, []).append(None)
        elif isinstance(node, ast.Global | ast.Nonlocal):
            for name in node.names:
                values_by_name.setdefault(name, []).append(None)
    return values_by_name


def _integer_expressions(node: ast.AST) -> list[ast.expr]:
    """The expressions in a node that must be integers."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _RANGES:
        return node.args
    if isinstance(node, ast.Slice):
        return [part for part in (node.lower, node.upper, node.step) if part is not None]
    return []


def _operands(value: ast.expr) -> Iterator[ast.expr]:
    """The operands of sums and products in a value, which are integers if the value is one."""
    if isinstance(value, ast.BinOp) and isinstance(value.op, _KEEP_INTEGERS):
        yield from _operands(value.left)
        yield from _operands(value.right)
    elif isinstance(value, ast.UnaryOp):
        yield from _operands(value.operand)
    else:
        yield value


def _divisions(
    operand: ast.expr, values_by_name: dict[str, list[ast.expr | None]]
) -> list[ast.BinOp]:
    values = values_by_name.get(operand.id, []) if isinstance(operand, ast.Name) else [operand]
    divisions = [
        value for value in values if isinstance(value, ast.BinOp) and isinstance(value.op, ast.Div)
    ]
    return divisions if len(divisions) == len(values) else []
