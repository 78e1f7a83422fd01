"""A script as a list of statements, so that two versions of it can be laid side by side."""

import ast
import copy
import warnings
from dataclasses import dataclass

from jumar.porting.python2.conversion import to_python3


@dataclass(frozen=True)
class Statement:
    """A simple statement, or the head of a compound one.

    Args:
        text: As Python writes it: comments, spaces and line breaks do not count.
        first: Its first line, counted from 1.
        last: Its last line.
        scope: Names of the functions and classes around it, outermost first.
    """

    text: str
    first: int
    last: int
    scope: tuple[str, ...]


def statements(text: str) -> list[Statement] | None:
    """All statements of a script in the order of its lines; None if it cannot be parsed.

    A script of Python 2 is read as its syntax converted to Python 3, line by line.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            tree = ast.parse(text)
        except (SyntaxError, ValueError, RecursionError):
            converted = to_python3(text)
            try:
                tree = ast.parse(converted.text) if converted else None
            except (SyntaxError, ValueError, RecursionError):
                tree = None
    if tree is None:
        return None
    found: list[Statement] = []
    _collect(tree.body, (), found)
    return found


def _collect(body: list[ast.stmt], scope: tuple[str, ...], found: list[Statement]) -> None:
    for node in body:
        if _is_text(node):
            continue
        blocks = [
            block
            for name in ("body", "handlers", "orelse", "finalbody")
            if isinstance(block := getattr(node, name, None), list)
        ]
        if not blocks:
            last = node.end_lineno or node.lineno
            found.append(Statement(ast.unparse(node), node.lineno, last, scope))
            continue
        inner = scope
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            inner = (*scope, node.name)
        first = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", []))])
        found.append(Statement(_head(node), first, node.lineno, inner))
        for block in blocks:
            for handler in block:
                if isinstance(handler, ast.ExceptHandler):
                    text = f"except {ast.unparse(handler.type) if handler.type else ''}:"
                    found.append(Statement(text, handler.lineno, handler.lineno, inner))
                    _collect(handler.body, inner, found)
            _collect([stmt for stmt in block if isinstance(stmt, ast.stmt)], inner, found)


def _is_text(node: ast.stmt) -> bool:
    """Whether a statement is a text that nobody reads: a docstring, or code put out of use."""
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )


def _head(node: ast.stmt) -> str:
    """A compound statement without its blocks."""
    if isinstance(node, ast.Try):
        return "try:"
    bare = copy.copy(node)
    for name in ("handlers", "orelse", "finalbody"):
        if hasattr(bare, name):
            setattr(bare, name, [])
    setattr(bare, "body", [ast.Pass(lineno=1, col_offset=0)])  # noqa: B010
    return ast.unparse(bare).removesuffix("pass").rstrip()
