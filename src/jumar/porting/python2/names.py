"""Findings for Python 2 code that Python 3 parses, but that fails or changes its meaning."""

import ast
import builtins
import re
from collections.abc import Callable, Iterator
from dataclasses import replace

from jumar.porting.edits import Confidence, Finding, Place, Remark
from jumar.porting.python2.guards import Survey
from jumar.porting.python2.whole_numbers import divisions_of_integers
from jumar.porting.script.expressions import imported_names, last_name

SOURCE = "Python: What's New In Python 3.0"

BUILTINS = {
    "apply": "function(*arguments)",
    "basestring": "str",
    "buffer": "memoryview",
    "cmp": "(a > b) - (a < b)",
    "coerce": "",
    "execfile": "exec(open(path).read())",
    "file": "open",
    "intern": "sys.intern",
    "long": "int",
    "raw_input": "input",
    "reduce": "functools.reduce",
    "reload": "importlib.reload",
    "unichr": "chr",
    "unicode": "str",
    "xrange": "range",
}
"""Builtin names that Python 3 lacks, with their replacements."""

MODULES = {
    "__builtin__": "builtins",
    "BaseHTTPServer": "http.server",
    "cPickle": "pickle",
    "ConfigParser": "configparser",
    "Cookie": "http.cookies",
    "cookielib": "http.cookiejar",
    "commands": "subprocess",
    "copy_reg": "copyreg",
    "cStringIO": "io",
    "dummy_thread": "_dummy_thread",
    "HTMLParser": "html.parser",
    "httplib": "http.client",
    "md5": "hashlib",
    "Queue": "queue",
    "sets": "set",
    "sha": "hashlib",
    "SimpleHTTPServer": "http.server",
    "SocketServer": "socketserver",
    "StringIO": "io",
    "thread": "_thread",
    "Tkinter": "tkinter",
    "tkMessageBox": "tkinter.messagebox",
    "urllib2": "urllib.request",
    "urlparse": "urllib.parse",
    "xmlrpclib": "xmlrpc.client",
}

METHODS = {
    "has_key": "in",
    "iteritems": "items",
    "iterkeys": "keys",
    "itervalues": "values",
    "viewitems": "items",
    "viewkeys": "keys",
    "viewvalues": "values",
}
"""Dictionary methods that Python 3 has removed, with their replacements."""

ATTRIBUTES = {
    "itertools.ifilter": "filter",
    "itertools.imap": "map",
    "itertools.izip": "zip",
    "itertools.izip_longest": "itertools.zip_longest",
    "os.getcwdu": "os.getcwd",
    "string.join": "str.join",
    "string.letters": "string.ascii_letters",
    "string.lowercase": "string.ascii_lowercase",
    "string.maketrans": "str.maketrans",
    "string.uppercase": "string.ascii_uppercase",
    "sys.maxint": "sys.maxsize",
    "urllib.quote": "urllib.parse.quote",
    "urllib.unquote": "urllib.parse.unquote",
    "urllib.urlencode": "urllib.parse.urlencode",
    "urllib.urlopen": "urllib.request.urlopen",
    "urllib.urlretrieve": "urllib.request.urlretrieve",
}

COMPATIBLE = {"six", "future", "past", "builtins"}
"""Libraries whose functions have the old names: `six.iteritems` is not a dictionary method."""

_REMOVED = Remark(
    en="`{name}` exists only in Python 2.",
    zh="`{name}` 是 Python 2 的名称，Python 3 中不存在。",
    todo_en="Use `{instead}` instead.",
    todo_zh="改用 `{instead}`。",
    severity="blocking",
)
_GONE = replace(_REMOVED, todo_en="Rewrite this call.", todo_zh="请改写此调用。")
_LAZY = Remark(
    en="`{name}` does not return a list in Python 3: its result cannot be indexed, sorted in "
    "place or concatenated.",
    zh="`{name}` 在 Python 3 中不返回列表，不能取下标、排序或相加。",
    todo_en="Wrap the call in list(...).",
    todo_zh="在调用外加 list(...)。",
    severity="blocking",
    confidence="likely",
)
_DIVISION = Remark(
    en="Dividing integers with / rounds down in Python 2, but not in Python 3.",
    zh="Python 2 中整数相除会向下取整，Python 3 不会。",
    todo_en="Use // if both sides are integers, such as a number of steps or a size.",
    todo_zh="两侧均为整数（如步数、尺寸）时改用 //。",
    severity="accuracy",
    confidence="unsure",
)
_FLOAT = Remark(
    en="In Python 3, / returns a float even for integers, but this result is used in range or a "
    "slice, which only accept integers.",
    zh="Python 3 中整数相除也得到浮点数，而 range 或切片边界不接受浮点数。",
    todo_en="Use //, which rounds down like / in Python 2.",
    todo_zh="改用 //：与 Python 2 的 / 一样向下取整。",
    severity="blocking",
    confidence="likely",
)


def python2_findings(
    survey: Survey, text: str, before: Callable[[Place], Place], *, divisions: bool = True
) -> tuple[Finding, ...]:
    """Findings for a source that was written for Python 2.

    Args:
        survey: The survey of the source, as Python 3 parses it.
        text: That source.
        before: Maps a position in the text to one in the original source.
        divisions: Whether to report divisions that may round down: only if the source certainly is
            Python 2.
    """
    return tuple(_Search(survey, text, before, divisions=divisions).findings())


class _Search:
    """A search for findings in one file."""

    def __init__(
        self, survey: Survey, text: str, before: Callable[[Place], Place], *, divisions: bool
    ) -> None:
        self._nodes = survey.nodes
        self._lines = [line.encode("utf-8", "surrogatepass") for line in text.split("\n")]
        self._before = before
        self._bound = survey.bound
        self._modules = survey.modules
        self._guarded = survey.guarded
        self._integer_divisions = divisions_of_integers(survey.nodes)
        self._reports_divisions = divisions and not any(
            isinstance(node, ast.ImportFrom)
            and node.module == "__future__"
            and any(alias.name == "division" for alias in node.names)
            for node in survey.nodes
        )

    def findings(self) -> list[Finding]:
        """The findings in the order of their positions."""
        findings = [finding for node in self._nodes for finding in self._findings_at(node)]
        return sorted(findings, key=lambda finding: (finding.place, finding.rule))

    def _findings_at(self, node: ast.AST) -> Iterator[Finding]:
        if node in self._guarded:
            return
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            is_missing = node.id in BUILTINS and not hasattr(builtins, node.id)
            if is_missing and node.id not in self._bound:
                yield self._removed("python2-builtin", node, node.id, BUILTINS[node.id], "certain")
        elif isinstance(node, ast.Import | ast.ImportFrom):
            yield from self._imports(node)
        elif isinstance(node, ast.Attribute):
            yield from self._attributes(node)
        elif isinstance(node, ast.Subscript | ast.BinOp):
            yield from self._operators(node)

    def _imports(self, node: ast.Import | ast.ImportFrom) -> Iterator[Finding]:
        if isinstance(node, ast.ImportFrom):
            if node.level:
                return
            for full_name in imported_names(node):
                if full_name in ATTRIBUTES:
                    yield self._removed(
                        "python2-attribute", node, full_name, ATTRIBUTES[full_name], "certain"
                    )
        modules = [node.module or ""] if isinstance(node, ast.ImportFrom) else imported_names(node)
        for name in modules:
            if name in MODULES:
                yield self._removed("python2-module", node, name, MODULES[name], "certain")

    def _attributes(self, node: ast.Attribute) -> Iterator[Finding]:
        owner = node.value.id if isinstance(node.value, ast.Name) else ""
        full_name = f"{owner}.{node.attr}"
        if full_name in ATTRIBUTES and owner in self._modules:
            yield self._removed(
                "python2-attribute", node, full_name, ATTRIBUTES[full_name], "likely"
            )
        elif node.attr in METHODS and owner not in COMPATIBLE:
            yield self._removed(
                "python2-dictionary", node, f".{node.attr}", METHODS[node.attr], "likely"
            )

    def _operators(self, node: ast.Subscript | ast.BinOp) -> Iterator[Finding]:
        if isinstance(node, ast.Subscript):
            name = self._lazy_call(node.value)
        elif isinstance(node.op, ast.Div):
            fraction = _is_fraction(node.left) or _is_fraction(node.right)
            if node in self._integer_divisions and not fraction:
                yield self._finding("python2-division", node, _FLOAT)
            elif self._reports_divisions and _is_count(node.left) and not fraction:
                yield self._finding("python2-division", node, _DIVISION)
            return
        else:
            adds = isinstance(node.op, ast.Add)
            name = (self._lazy_call(node.left) or self._lazy_call(node.right)) if adds else ""
        if name:
            yield self._finding("python2-list", node, _LAZY.filled(name=name))

    def _lazy_call(self, node: ast.expr) -> str:
        """The function of a call that returns a list only in Python 2; empty for others."""
        if not isinstance(node, ast.Call):
            return ""
        function = node.func
        if isinstance(function, ast.Name):
            lazy = function.id in ("map", "filter", "zip") and function.id not in self._bound
            return function.id if lazy else ""
        if isinstance(function, ast.Attribute) and not node.args and not node.keywords:
            return f".{function.attr}" if function.attr in ("keys", "values", "items") else ""
        return ""

    def _removed(
        self, rule: str, node: ast.expr | ast.stmt, name: str, instead: str, confidence: Confidence
    ) -> Finding:
        remark = (_REMOVED if instead else _GONE).filled(name=name, instead=instead)
        return self._finding(rule, node, replace(remark, confidence=confidence))

    def _finding(self, rule: str, node: ast.expr | ast.stmt, remark: Remark) -> Finding:
        line = self._lines[node.lineno - 1]
        column = len(line[: node.col_offset].decode("utf-8", "surrogatepass"))
        place = Place(line=node.lineno, column=column + 1)
        return remark.finding(
            rule=rule,
            place=self._before(place),
            place_after=place,
            code=line.decode("utf-8", "surrogatepass").strip(),
            source=SOURCE,
        )


_COUNTS = re.compile(
    r"(?:^|_)(?:n|num|number|count|size|steps?|batch|batches|epochs?|width|height|len|length|total"
    r"|samples|examples|rows|cols|columns|dim|h|w)(?:_|$)",
    re.IGNORECASE,
)
"""Names of counts: arrays and tensors, which are divided far more often, have other names."""


def _is_count(node: ast.expr) -> bool:
    """Whether a value looks like an integer."""
    if isinstance(node, ast.Constant):
        return isinstance(node.value, int)
    if isinstance(node, ast.Name | ast.Attribute):
        return _COUNTS.search(last_name(node)) is not None
    if isinstance(node, ast.Subscript):
        return isinstance(node.value, ast.Attribute) and node.value.attr == "shape"
    if isinstance(node, ast.Call):
        return isinstance(node.func, ast.Name) and node.func.id in ("len", "int", "sum")
    if isinstance(node, ast.BinOp):
        return _is_count(node.left) and _is_count(node.right)
    return False


def _is_fraction(node: ast.expr) -> bool:
    """Whether a value is certainly not an integer."""
    if isinstance(node, ast.Constant):
        return isinstance(node.value, float | complex)
    if isinstance(node, ast.Call):
        return isinstance(node.func, ast.Name) and node.func.id == "float"
    if isinstance(node, ast.UnaryOp):
        return _is_fraction(node.operand)
    if isinstance(node, ast.BinOp):
        return _is_fraction(node.left) or _is_fraction(node.right)
    return False
