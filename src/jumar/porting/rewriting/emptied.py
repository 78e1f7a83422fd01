"""`if` statements that do nothing."""

import ast

from jumar.porting.script.nodes import walk


def is_empty(node: ast.If) -> bool:
    """Whether all branches of an `if` are empty, and its test has no side effects."""
    return (
        _passes(node.body)
        and (
            not node.orelse
            or _passes(node.orelse)
            or (
                len(node.orelse) == 1
                and isinstance(node.orelse[0], ast.If)
                and is_empty(node.orelse[0])
            )
        )
        and not any(
            isinstance(part, ast.Call | ast.Await | ast.Yield | ast.YieldFrom | ast.NamedExpr)
            for part in walk(node.test)
        )
    )


def empty_branches(tree: ast.Module) -> frozenset[str]:
    """The tests of all `if` statements that do nothing, as `ast.unparse` writes them."""
    return frozenset(
        ast.unparse(node.test) for node in walk(tree) if isinstance(node, ast.If) and is_empty(node)
    )


def _passes(block: list[ast.stmt]) -> bool:
    return bool(block) and all(isinstance(statement, ast.Pass) for statement in block)
