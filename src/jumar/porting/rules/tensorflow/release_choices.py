"""Places where a script itself chooses between the names of several releases."""

import ast
import re

from jumar.porting.rewriting.view import View

_ASKS = re.compile(r"__version__|\bVERSION\b|(?i:tf_?version)|hasattr\(|\bdir\(")
_FALLBACKS = (
    *("AttributeError", "ImportError", "ModuleNotFoundError"),
    *("Exception", "BaseException"),
)


def chooses_release(node: ast.AST, view: View) -> bool:
    """Whether a script asks for the release around a node, or has another way where it fails."""
    child = node
    for around in view.module.scopes.ancestors(node):
        if isinstance(around, ast.If | ast.IfExp) and child is not around.test:
            if _ASKS.search(view.module.source(around.test)):
                return True
        elif (
            isinstance(around, ast.Try)
            and (child in around.body or child in around.handlers)
            and any(_falls_back(handler, view) for handler in around.handlers)
        ):
            return True
        child = around
    return False


def _falls_back(handler: ast.ExceptHandler, view: View) -> bool:
    """Whether a handler catches the missing name, and imports or uses something else."""
    if handler.type is not None and not any(
        isinstance(node, ast.Name) and node.id in _FALLBACKS for node in ast.walk(handler.type)
    ):
        return False
    return any(
        isinstance(node, ast.Import | ast.ImportFrom)
        or (
            isinstance(node, ast.Attribute)
            and (view.module.name_of(node) or "").startswith("tensorflow.")
        )
        for statement in handler.body
        for node in ast.walk(statement)
    )
