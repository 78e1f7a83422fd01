"""Names of Python 2 that have one meaning under another name in Python 3, rewritten by span."""

import ast
import re
from collections.abc import Callable

from jumar.porting.python2.guards import Survey
from jumar.porting.python2.rewrites import Change, Rewrite, applied
from jumar.porting.script.source import Lines

_BUILTINS = {
    "basestring": "str",
    "long": "int",
    "raw_input": "input",
    "unichr": "chr",
    "unicode": "str",
    "xrange": "range",
}
_MODULES = {
    "__builtin__": "builtins",
    "ConfigParser": "configparser",
    "cPickle": "pickle",
    "copy_reg": "copyreg",
    "Queue": "queue",
}
"""Modules that kept the names within them."""
_ATTRIBUTES = {
    "itertools.ifilter": "filter",
    "itertools.imap": "map",
    "itertools.izip": "zip",
    "itertools.izip_longest": "itertools.zip_longest",
    "os.getcwdu": "os.getcwd",
    "string.letters": "string.ascii_letters",
    "string.lowercase": "string.ascii_lowercase",
    "string.uppercase": "string.ascii_uppercase",
    "sys.maxint": "sys.maxsize",
}
_METHODS = {"iteritems": "items", "iterkeys": "keys", "itervalues": "values"}
_COMPATIBLE = frozenset({"six", "future", "past", "builtins"})
_PLAIN = (ast.Name, ast.Attribute, ast.Constant, ast.Subscript, ast.Call)


def renames(survey: Survey, text: str, own: Callable[[str], bool]) -> list[Rewrite]:
    """The certain renames: names that the file neither defines nor uses for Python 2 alone.

    Args:
        survey: The survey of the text, as Python 3 parses it.
        text: The source, without line ends that are a lone carriage return.
        own: Whether a module's name is that of a file of the tree.
    """
    return list(_Renaming(survey, text, own).rewrites())


class _Renaming:
    """One walk over a file."""

    def __init__(self, survey: Survey, text: str, own: Callable[[str], bool]) -> None:
        self._nodes = survey.nodes
        self._text = text
        self._own = own
        self._lines = Lines(text)
        self._bound = survey.bound
        self._guarded = set(survey.guarded)
        self._modules = survey.modules
        self._rewrites: list[Rewrite] = []

    def rewrites(self) -> list[Rewrite]:
        questions: list[ast.Call] = []
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
                if _is_question(node) and "has_key" not in self._bound:
                    questions.append(node)
        # Inner calls first: the outer ones contain their text.
        for call in reversed(questions):
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
                # It decodes bytes, which str() of a text refuses.
                self._guarded.add(function)
            return
        if not isinstance(function, ast.Attribute) or node.args or node.keywords:
            return
        new = _METHODS.get(function.attr)
        owner = function.value.id if isinstance(function.value, ast.Name) else ""
        if new and owner not in _COMPATIBLE and function.attr not in self._bound:
            _, end = self._span(function)
            change = Change(start=end - len(function.attr), end=end, text=new)
            self._put("python2-dictionary", node, change)

    def _import(self, node: ast.Import | ast.ImportFrom) -> None:
        if isinstance(node, ast.ImportFrom):
            new = _MODULES.get(node.module or "")
            if new and not node.level and not self._own(node.module or ""):
                start, end = self._span(node)
                head = re.compile(r"from\s+").match(self._text, start, end)
                if head and self._text.startswith(node.module or "", head.end()):
                    stop = head.end() + len(node.module or "")
                    self._put("python2-module", node, Change(start=head.end(), end=stop, text=new))
            return
        for alias in node.names:
            new = _MODULES.get(alias.name)
            if new and not self._own(alias.name):
                local = alias.asname or alias.name
                self._add("python2-module", alias, new if local == new else f"{new} as {local}")

    def _has_key(self, call: ast.Call) -> None:
        assert isinstance(call.func, ast.Attribute)
        key, holder = (self._renamed(part) for part in (call.args[0], call.func.value))
        text = f"({key} in {holder})"
        start, end = self._span(call)
        self._rewrites = [
            rewrite
            for rewrite in self._rewrites
            if not (start <= rewrite.start and rewrite.end <= end)
        ]
        self._put("python2-dictionary", call, Change(start=start, end=end, text=text))

    def _renamed(self, node: ast.expr) -> str:
        """The new text of an expression, in parentheses where `in` needs them."""
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


def _is_question(node: ast.Call) -> bool:
    """Whether a call is `x.has_key(key)`."""
    return (
        isinstance(node.func, ast.Attribute)
        and node.func.attr == "has_key"
        and len(node.args) == 1
        and not node.keywords
        and not isinstance(node.args[0], ast.Starred)
    )
