"""Traversal of syntax trees, twice as fast as `ast.walk`: every script is walked often."""

import ast

_PLAIN = frozenset({"ctx", "id", "attr", "kind", "type_comment", "lineno", "level", "module"})
"""Fields that contain no nodes, and `ctx`, which is read from the name itself."""


class _Fields(dict[type[ast.AST], tuple[str, ...]]):
    """The fields of each type of node that may contain nodes."""

    def __missing__(self, kind: type[ast.AST]) -> tuple[str, ...]:
        fields = () if kind is ast.Constant else kind._fields
        self[kind] = tuple(field for field in fields if field not in _PLAIN)
        return self[kind]


_FIELDS = _Fields()


def children(node: ast.AST) -> list[ast.AST]:
    """The nodes directly below a node in the order of its fields, without `ast.expr_context`."""
    nodes: list[ast.AST] = []
    for name in _FIELDS[node.__class__]:
        value = getattr(node, name, None)
        if isinstance(value, list):
            nodes += [part for part in value if isinstance(part, ast.AST)]
        elif isinstance(value, ast.AST):
            nodes.append(value)
    return nodes


def walk(*roots: ast.AST) -> list[ast.AST]:
    """The nodes of one or several trees, breadth first, without `ast.expr_context`."""
    nodes = list(roots)
    for node in nodes:
        nodes += children(node)
    return nodes
