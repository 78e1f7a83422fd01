"""The names that a file binds, and its parts that only run in one version of Python."""

import ast
from collections.abc import Sequence
from dataclasses import dataclass

from jumar.porting.script.nodes import walk

_VERSIONS = frozenset({"version_info", "version", "PY2", "PY3", "hexversion", "python_version"})
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_IMPORTS = (ast.Import, ast.ImportFrom)
_GUARDS = (ast.If, ast.IfExp, ast.Try)
_ERRORS = frozenset({"ImportError", "ModuleNotFoundError", "NameError", "AttributeError"})


@dataclass(frozen=True, kw_only=True)
class Survey:
    """The results of one walk over a file.

    Attributes:
        nodes: The nodes of its syntax tree, breadth first.
        bound: The names that it binds anywhere, including those of methods.
        modules: The modules that it imports under their own names.
        guarded: The nodes below a test of Python's version, or in a `try` that handles missing
            names.
    """

    nodes: Sequence[ast.AST]
    bound: frozenset[str]
    modules: frozenset[str]
    guarded: frozenset[ast.AST]


def survey(tree: ast.Module) -> Survey:
    """Collect the facts about a file that renames and findings depend on."""
    nodes = walk(tree)
    bound_names: set[str] = set()
    modules: set[str] = set()
    guarded: set[ast.AST] = set()
    for node in nodes:
        if isinstance(node, ast.Name):
            if isinstance(node.ctx, ast.Store):
                bound_names.add(node.id)
        elif isinstance(node, _DEFINITIONS):
            bound_names.add(node.name)
        elif isinstance(node, ast.arg):
            bound_names.add(node.arg)
        elif isinstance(node, _IMPORTS):
            bound_names.update(alias.asname or alias.name.partition(".")[0] for alias in node.names)
            if isinstance(node, ast.Import):
                modules.update(
                    alias.name for alias in node.names if alias.asname in (None, alias.name)
                )
        elif isinstance(node, _GUARDS):
            guarded.update(_guarded_by(node))
    return Survey(
        nodes=nodes,
        bound=frozenset(bound_names),
        modules=frozenset(modules),
        guarded=frozenset(guarded),
    )


def _guarded_by(node: ast.If | ast.IfExp | ast.Try) -> list[ast.AST]:
    if not isinstance(node, ast.Try):
        return walk(node) if _tests_version(node.test) else []
    if any(_handles_missing_name(handler) for handler in node.handlers):
        handler_bodies = (statement for handler in node.handlers for statement in handler.body)
        return walk(*node.body, *handler_bodies)
    return []


def _tests_version(test: ast.expr) -> bool:
    return any(
        (isinstance(node, ast.Attribute) and node.attr in _VERSIONS)
        or (isinstance(node, ast.Name) and node.id in _VERSIONS)
        or (isinstance(node, ast.Constant) and node.value in ("unicode", "xrange", "cPickle"))
        for node in walk(test)
    )


def _handles_missing_name(handler: ast.ExceptHandler) -> bool:
    return handler.type is None or any(
        isinstance(node, ast.Name) and node.id in _ERRORS for node in walk(handler.type)
    )
