"""Branches that a port has left empty."""

import ast

from jumar.porting.rewriting import Changes, Text, View, rule
from jumar.porting.rewriting.editing import delete
from jumar.porting.rewriting.emptied import is_empty

_EMPTY = Text(en="the port has removed everything in this branch", zh="移植后该分支已没有任何内容")


@rule(
    "emptied-branches",
    title=Text(en="Branches emptied by a port are removed", zh="删除移植后变空的分支"),
    source="jumar",
    nodes=(ast.If,),
)
def emptied_branches(node: ast.If, view: View) -> Changes:
    """Delete an empty branch, unless it was empty before or contains a comment."""
    parent = view.module.parent(node)
    if isinstance(parent, ast.If) and node in parent.orelse and is_empty(parent):
        # This `elif` is removed together with its `if`.
        return
    if not is_empty(node) or ast.unparse(node.test) in view.originally_empty:
        return
    source = view.module.source(node)
    if isinstance(parent, ast.If) and parent.orelse == [node] and source.startswith("elif"):
        return
    if "#" not in source:
        yield view.rewrite(node, delete(view.module, node), reason=_EMPTY)
