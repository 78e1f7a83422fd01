"""Rewrites of Python 2 names that Python 3 has only renamed."""

import ast
import re
from collections.abc import Callable

from jumar.porting.python2.guards import Survey
from jumar.porting.python2.names import ATTRIBUTES, BUILTINS, COMPATIBLE, METHODS, MODULES
from jumar.porting.python2.rewrites import Change, Rewrite, applied
from jumar.porting.script.source import Lines

_BUILTINS = {
    name: BUILTINS[name]
    for name in ("basestring", "long", "raw_input", "unichr", "unicode", "xrange")
}
_MODULES = {
    name: MODULES[name] for name in ("__builtin__", "ConfigParser", "cPickle", "copy_reg", "Queue")
}
"""Modules whose members have kept their names."""
_ATTRIBUTES = {
    name: current
    for name, current in ATTRIBUTES.items()
    if not name.startswith("urllib.") and name not in ("string.join", "string.maketrans")
}
_METHODS = {name: METHODS[name] for name in ("iteritems", "iterkeys", "itervalues")}

_PLAIN = (ast.Name, ast.Attribute, ast.Constant, ast.Subscript, ast.Call)


def renames(survey: Survey, text: str, is_in_tree: Callable[[str], bool]) -> list[Rewrite]:
    """The certain renames: of names that the file neither defines nor uses only in Python 2.

    Args:
        survey: The survey of the text, as Python 3 parses it.
        text: The source, without line endings that are a lone carriage return.
        is_in_tree: Whether a module name refers to a file of the tree that is ported.
    """
    return _Renaming(survey, text, is_in_tree).rewrites()


class _Renaming:
    """A search for renames in one file."""

    def __init__(self, survey: Survey, text: str, is_in_tree: Callable[[str], bool]) -> None:
        self._nodes = survey.nodes
        self._text = text
        self._is_in_tree = is_in_tree
        self._lines = Lines(text)
        self._bound = survey.bound
        self._guarded = set(survey.guarded)
        self._modules = survey.modules
        self._rewrites: list[Rewrite] = []

    def rewrites(self) -> list[Rewrite]:
        has_key_calls: list[ast.Call] = []
        for node in self._nodes:
            if node in self._guarded:
                continue
            if isinstance(node, ast.Name):
                self._builtin(node)
            elif isinstance(node, ast.Attribute):
                self._attribute(node)
            elif isinstance(node, ast.Import | ast.ImportFrom):
                self._import(node)
            elif isinstance(node, ast.Call):
                self._call(node)
                if _is_has_key(node) and "has_key" not in self._bound:
                    has_key_calls.append(node)
        # Inner calls first: outer ones include their new text.
        for call in reversed(has_key_calls):
            self._has_key(call)
        return self._rewrites

    def _builtin(self, node: ast.Name) -> None:
        new = _BUILTINS.get(node.id)
        if new and isinstance(node.ctx, ast.Load) and not {node.id, new} & self._bound:
            self._add("python2-builtin", node, new)

    def _attribute(self, node: ast.Attribute) -> None:
        if not isinstance(node.value, ast.Name) or node.value.id not in self._modules:
            return
        new = _ATTRIBUTES.get(f"{node.value.id}.{node.attr}")
        if new and ("." in new or new not in self._bound):
            self._add("python2-attribute", node, new)

    def _call(self, node: ast.Call) -> None:
        function = node.func
        if isinstance(function, ast.Name) and function.id == "unicode":
            if len(node.args) + len(node.keywords) > 1:
                # It decodes bytes; str() raises TypeError if the first argument is text.
                self._guarded.add(function)
            return
        if not isinstance(function, ast.Attribute) or node.args or node.keywords:
            return
        new = _METHODS.get(function.attr)
        owner = function.value.id if isinstance(function.value, ast.Name) else ""
        if new and owner not in COMPATIBLE and function.attr not in self._bound:
            _, end = self._span(function)
            change = Change(start=end - len(function.attr), end=end, text=new)
            self._put("python2-dictionary", node, change)

    def _import(self, node: ast.Import | ast.ImportFrom) -> None:
        if isinstance(node, ast.ImportFrom):
            new = _MODULES.get(node.module or "")
            if new and not node.level and not self._is_in_tree(node.module or ""):
                start, end = self._span(node)
                head = re.compile(r"from\s+").match(self._text, start, end)
                if head and self._text.startswith(node.module or "", head.end()):
                    stop = head.end() + len(node.module or "")
                    self._put("python2-module", node, Change(start=head.end(), end=stop, text=new))
            return
        for alias in node.names:
            new = _MODULES.get(alias.name)
            if new and not self._is_in_tree(alias.name):
                local = alias.asname or alias.name
                self._add("python2-module", alias, new if local == new else f"{new} as {local}")

    def _has_key(self, call: ast.Call) -> None:
        assert isinstance(call.func, ast.Attribute)
        key, dictionary = (self._renamed(part) for part in (call.args[0], call.func.value))
        text = f"({key} in {dictionary})"
        start, end = self._span(call)
        self._rewrites = [
            rewrite
            for rewrite in self._rewrites
            if not (start <= rewrite.start and rewrite.end <= end)
        ]
        self._put("python2-dictionary", call, Change(start=start, end=end, text=text))

    def _renamed(self, node: ast.expr) -> str:
        """The new text of an expression, in parentheses if `in` requires them."""
        start, end = self._span(node)
        changes = [
            Change(start=change.start - start, end=change.end - start, text=change.text)
            for rewrite in self._rewrites
            for change in rewrite.changes
            if start <= change.start and change.end <= end
        ]
        text = applied(self._text[start:end], changes)
        return text if isinstance(node, _PLAIN) else f"({text})"

    def _span(self, node: ast.expr | ast.stmt | ast.alias) -> tuple[int, int]:
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        return (
            self._lines.offset(node.lineno, node.col_offset),
            self._lines.offset(node.end_lineno, node.end_col_offset),
        )

    def _add(self, rule: str, node: ast.expr | ast.alias, text: str) -> None:
        start, end = self._span(node)
        self._put(rule, node, Change(start=start, end=end, text=text))

    def _put(self, rule: str, node: ast.expr | ast.stmt | ast.alias, change: Change) -> None:
        start, end = self._span(node)
        self._rewrites.append(Rewrite(rule=rule, start=start, end=end, changes=(change,)))


def _is_has_key(node: ast.Call) -> bool:
    """Whether a call is `x.has_key(key)`."""
    return (
        isinstance(node.func, ast.Attribute)
        and node.func.attr == "has_key"
        and len(node.args) == 1
        and not node.keywords
        and not isinstance(node.args[0], ast.Starred)
    )
