"""The syntax trees of files, parsed once for all tests of a file."""

import ast
from functools import cache
from pathlib import Path


@cache
def parsed(path: Path) -> ast.Module:
    """The tree of a file; nobody may change it."""
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
def code(path: Path) -> str:
    """A file's code alone: comments and docstrings may speak of what the code must not name."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list):
            node.body = [
                statement
                for statement in body
                if not (
                    isinstance(statement, ast.Expr)
                    and isinstance(statement.value, ast.Constant)
                    and isinstance(statement.value.value, str)
                )
            ] or [ast.Pass()]
    return ast.unparse(tree)


def forget() -> None:
    """Free the trees: the garbage collector would visit them in each later test of the process."""
    parsed.cache_clear()
    code.cache_clear()
