"""Code that itself chooses between the names of several releases."""

import ast
import re

from jumar.porting.rewriting import View
from jumar.porting.script.nodes import walk

_RELEASE_TEST = re.compile(
    r"__version__|\btf\.VERSION\b|(?i:tf_?version)|\b(?:hasattr|dir)\((?:tf|tensorflow)\b"
)
_FALLBACKS = (
    *("AttributeError", "ImportError", "ModuleNotFoundError"),
    *("Exception", "BaseException"),
)
_NO_FALLBACKS = ("tensorflow.errors.", "tensorflow.gfile.", "tensorflow.logging.")


def chooses_release(node: ast.AST, view: View) -> bool:
    """Whether a script checks the release around a node, or has a fallback if it fails."""
    child = node
    for enclosing in view.module.scopes.ancestors(node):
        if isinstance(enclosing, ast.If | ast.IfExp) and child is not enclosing.test:
            if _RELEASE_TEST.search(view.module.source(enclosing.test)):
                return True
        elif (
            isinstance(enclosing, ast.Try)
            and (child in enclosing.body or child in enclosing.handlers)
            and any(_falls_back(handler, node, view) for handler in enclosing.handlers)
        ):
            return True
        child = enclosing
    return False


def _falls_back(handler: ast.ExceptHandler, guarded: ast.AST, view: View) -> bool:
    """Whether a handler catches a missing name and provides a fallback.

    Handlers around a whole training run may catch the same exceptions to log them, or to start a
    debugger.
    """
    if handler.type is not None and not any(
        isinstance(node, ast.Name) and node.id in _FALLBACKS for node in walk(handler.type)
    ):
        return False
    nodes = [node for statement in handler.body for node in walk(statement)]
    if isinstance(guarded, ast.Import | ast.ImportFrom):
        return any(isinstance(node, ast.Import | ast.ImportFrom) for node in nodes)
    names = [view.module.name_of(node) or "" for node in nodes if isinstance(node, ast.Attribute)]
    return any(
        name.startswith("tensorflow.") and not f"{name}.".startswith(_NO_FALLBACKS)
        for name in names
    )
