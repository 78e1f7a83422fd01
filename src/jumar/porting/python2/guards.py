"""What a file binds itself, and the parts of it that only one version of Python runs."""

import ast
from collections.abc import Iterator

_VERSIONS = frozenset({"version_info", "version", "PY2", "PY3", "hexversion", "python_version"})
_ERRORS = frozenset({"ImportError", "ModuleNotFoundError", "NameError", "AttributeError"})


def bound_names(tree: ast.Module) -> frozenset[str]:
    """The names that a file binds anywhere, methods among them."""
    return frozenset(name for node in ast.walk(tree) for name in _binds(node))


def imported_modules(tree: ast.Module) -> frozenset[str]:
    """The modules that a file imports under their own names."""
    return frozenset(
        alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.Import)
        for alias in node.names
        if alias.asname in (None, alias.name)
    )


def guarded_nodes(tree: ast.Module) -> set[ast.AST]:
    """The nodes below a test of Python's version, or below a `try` for names that it lacks."""
    guarded: set[ast.AST] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.If | ast.IfExp) and _asks_version(node.test):
            guarded.update(ast.walk(node))
        elif isinstance(node, ast.Try) and any(_takes_missing(one) for one in node.handlers):
            lines = [*node.body, *(line for handler in node.handlers for line in handler.body)]
            guarded.update(inner for line in lines for inner in ast.walk(line))
    return guarded


def _asks_version(test: ast.expr) -> bool:
    return any(
        (isinstance(node, ast.Attribute) and node.attr in _VERSIONS)
        or (isinstance(node, ast.Name) and node.id in _VERSIONS)
        or (isinstance(node, ast.Constant) and node.value in ("unicode", "xrange", "cPickle"))
        for node in ast.walk(test)
    )


def _takes_missing(handler: ast.ExceptHandler) -> bool:
    return handler.type is None or any(
        isinstance(node, ast.Name) and node.id in _ERRORS for node in ast.walk(handler.type)
    )


def _binds(node: ast.AST) -> Iterator[str]:
    """The names that a node binds."""
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
        yield node.id
    elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        yield node.name
    elif isinstance(node, ast.arg):
        yield node.arg
    elif isinstance(node, ast.alias):
        yield node.asname or node.name.partition(".")[0]
