"""Python 2 sources: what is rewritten before a port, and what is not.

Only code with one meaning in both languages is rewritten, by span: every other byte, including
comments and line ends, stays as it is. A file in which anything else is left is not converted.
Names that Python 3 has renamed are also rewritten in files that it can parse.
"""

import ast
import re
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from jumar.porting.edits import Confidence, Edit, Finding, Place, Text
from jumar.porting.python2.guards import Survey, survey
from jumar.porting.python2.names import python2_findings
from jumar.porting.python2.renames import renames
from jumar.porting.python2.rewrites import Change, Rewrite, applied, by_place

SOURCE = "Python: What's New In Python 3.0"

_LONGEST_SHOWN = 160
"""Characters of a statement that an edit quotes; a reader finds the rest by its line."""

REASONS: dict[str, tuple[Text, Confidence]] = {
    "python2-print": (
        Text(en="print is a function in Python 3.", zh="print 在 Python 3 中是函数。"),
        "certain",
    ),
    "python2-except": (
        Text(
            en="Python 3 names a caught exception with `as`.",
            zh="Python 3 用 as 为捕获的异常命名。",
        ),
        "certain",
    ),
    "python2-raise": (
        Text(
            en="Python 3 raises an exception object; the value becomes its argument.",
            zh="Python 3 只能抛出异常对象；原来的值成为其参数。",
        ),
        "likely",
    ),
    "python2-exec": (
        Text(en="exec is a function in Python 3.", zh="exec 在 Python 3 中是函数。"),
        "certain",
    ),
    "python2-ne": (
        Text(en="Python 3 writes != for <>.", zh="Python 3 中 <> 写作 !=。"),
        "certain",
    ),
    "python2-repr": (
        Text(en="Python 3 has repr() for backquotes.", zh="Python 3 用 repr() 代替反引号。"),
        "certain",
    ),
    "python2-number": (
        Text(
            en="Python 3 writes octal numbers with 0o and has no suffix for long ones.",
            zh="Python 3 的八进制数写作 0o，长整数没有后缀。",
        ),
        "certain",
    ),
    "python2-string": (
        Text(
            en="Strings in Python 3 are Unicode already.",
            zh="Python 3 的字符串已经是 Unicode。",
        ),
        "certain",
    ),
    "python2-builtin": (
        Text(en="Python 3 has this under another name.", zh="Python 3 中该名称已更换。"),
        "certain",
    ),
    "python2-module": (
        Text(en="Python 3 has this module under another name.", zh="Python 3 中该模块已更名。"),
        "certain",
    ),
    "python2-attribute": (
        Text(en="Python 3 has this under another name.", zh="Python 3 中该名称已更换。"),
        "certain",
    ),
    "python2-dictionary": (
        Text(
            en="This method of dictionaries is gone in Python 3.",
            zh="Python 3 的字典不再有该方法。",
        ),
        "likely",
    ),
    "python2-tabs": (
        Text(
            en="Python 3 refuses this mixture of tabs and spaces; in Python 2 a tab reaches to "
            "the next multiple of 8.",
            zh="Python 3 不接受制表符与空格混用的缩进；Python 2 中制表符对齐到 8 的倍数。",
        ),
        "certain",
    ),
}


_NAMES = re.compile(
    r"\b(?:xrange|unicode|unichr|basestring|raw_input|long|execfile|reload|reduce|cmp|file|apply"
    r"|buffer|coerce|intern|has_key|iteritems|iterkeys|itervalues|view(?:items|keys|values)"
    r"|izip|imap|ifilter|izip_longest|maxint|getcwdu|cPickle|cStringIO|StringIO|Queue|ConfigParser"
    r"|__builtin__|copy_reg|urllib2?|urlparse|commands|httplib|thread|sets|md5|sha|Tkinter"
    r"|string\.(?:letters|lowercase|uppercase|maketrans|join))\b"
    r"|(?:keys|values|items)\(\)\s*\[|\b(?:map|filter|zip)\(.*\)\s*\["
    # A division that is a whole value, an argument of `range`, or within brackets.
    r"|(?:^\s*\w+\s*=|\brange\(|\[)[^\n'\"#]*[\w)\]] ?/ ?[\w(]",
    re.MULTILINE,
)
"""A file without any of these has no Python 2 code that Python 3 parses."""


class _Lines:
    """Offsets of a text as lines and columns."""

    def __init__(self, text: str) -> None:
        self._starts = [0, *(match.end() for match in re.finditer("\n", text))]

    def place(self, offset: int) -> Place:
        line = bisect_right(self._starts, offset)
        return Place(line=line, column=offset - self._starts[line - 1] + 1)

    def offset(self, place: Place) -> int:
        return self._starts[min(place.line, len(self._starts)) - 1] + place.column - 1


class PositionMap:
    """How far changes move the rest of the text; one line may become two."""

    def __init__(self, old: str, new: str, changes: Sequence[Change]) -> None:
        self._old, self._new = _Lines(old), _Lines(new)
        self._spans: list[tuple[int, int, int, int]] = []
        shift = 0
        for change in sorted(changes, key=by_place):
            start = change.start + shift
            shift += len(change.text) - (change.end - change.start)
            self._spans.append((change.start, change.end, start, change.end + shift))

    def place(self, offset: int) -> Place:
        """The position of an offset in the source."""
        return self._old.place(offset)

    def after(self, offset: int) -> Place:
        """The offset in the new text of an offset in the source."""
        at = bisect_right(self._spans, offset, key=lambda span: span[0])
        if not at:
            return self._new.place(offset)
        _, end, new_start, new_end = self._spans[at - 1]
        # What was inserted before the offset stays before it.
        return self._new.place(new_start if offset < end else new_end + offset - end)

    def before(self, place: Place) -> Place:
        """The offset in the source of an offset in the new text."""
        return self._old.place(self.back(self._new.offset(place)))

    def back(self, offset: int) -> int:
        """The offset in the source of an offset in the new text."""
        at = bisect_right(self._spans, offset, key=lambda span: span[2])
        if not at:
            return offset
        start, end, _, new_end = self._spans[at - 1]
        return start if offset < new_end else end + offset - new_end


@dataclass(frozen=True, kw_only=True)
class Converted:
    """A source of Python 2 that now parses as Python 3.

    `place` of edits and findings is in the source of Python 2, `place_after` in `text`.
    """

    text: str
    edits: tuple[Edit, ...]
    findings: tuple[Finding, ...]
    moves: PositionMap = field(repr=False, compare=False)

    def place_before(self, place: Place) -> Place:
        """The position in the Python 2 source of a position in the converted text."""
        return self.moves.before(place)


def to_python3(text: str) -> Converted | None:
    """Rewrite what Python 3 cannot parse in a source of Python 2.

    Args:
        text: A source that `ast.parse` refuses, with its own line ends.

    Returns:
        The source as Python 3 parses it; None if that needs a person.
    """
    # The Python 2 parser is slow to load, and few files need it.
    from jumar.porting.python2.statements import rewritings

    for rewrites in rewritings(text):
        changes = [change for rewrite in rewrites for change in rewrite.changes]
        new = applied(text, changes)
        tree = _tree(new)
        if tree is not None:
            return _converted(text, _with_renames(text, rewrites, new, survey(tree)))
    return None


def with_names_of_python3(
    text: str, tree: ast.Module, own: Callable[[str], bool]
) -> Converted | None:
    """Rewrite names of Python 2 in a source that Python 3 parses.

    Args:
        text: The source.
        tree: As Python 3 parses it.
        own: Whether a module's name is that of a file of the tree.

    Returns:
        The source with its edits and findings; None if there are neither.
    """
    if not _NAMES.search(text) or re.search("\r(?!\n)", text):
        return None
    surveyed = survey(tree)
    converted = _converted(text, renames(surveyed, text, own), surveyed, divisions=False)
    return converted if converted and (converted.edits or converted.findings) else None


def _converted(
    text: str,
    rewrites: Sequence[Rewrite],
    surveyed: Survey | None = None,
    *,
    divisions: bool = True,
) -> Converted | None:
    """The source with rewrites applied; `surveyed` is the survey of the source, if it parses."""
    changes = [change for rewrite in rewrites for change in rewrite.changes]
    new = applied(text, changes)
    if changes or surveyed is None:
        tree = _tree(new)
        if tree is None:
            return None
        surveyed = survey(tree)
    moves = PositionMap(text, new, changes)
    return Converted(
        text=new,
        edits=tuple(
            _edit(text, rewrite, rewrites, moves)
            for rewrite in sorted(rewrites, key=lambda rewrite: (rewrite.start, -rewrite.end))
        ),
        findings=python2_findings(surveyed, new, moves.before, divisions=divisions),
        moves=moves,
    )


def _with_renames(
    text: str, rewrites: Sequence[Rewrite], new: str, surveyed: Survey
) -> Sequence[Rewrite]:
    """The rewrites of a source, plus renames in the result, which Python 3 parses."""
    moves = PositionMap(text, new, [change for rewrite in rewrites for change in rewrite.changes])
    renamings: list[Rewrite] = []
    for rewrite in renames(surveyed, new, lambda _: False):
        start, end = (moves.back(offset) for offset in (rewrite.start, rewrite.end))
        if text[start:end] != new[rewrite.start : rewrite.end]:
            continue
        shift = start - rewrite.start
        changes = tuple(
            replace(change, start=change.start + shift, end=change.end + shift)
            for change in rewrite.changes
        )
        renamings.append(replace(rewrite, start=start, end=end, changes=changes))
    all_rewrites = [*rewrites, *renamings]
    merged_text = applied(text, [change for rewrite in all_rewrites for change in rewrite.changes])
    return all_rewrites if _tree(merged_text) is not None else rewrites


def _tree(text: str) -> ast.Module | None:
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _edit(text: str, rewrite: Rewrite, rewrites: Sequence[Rewrite], moves: PositionMap) -> Edit:
    before = text[rewrite.start : rewrite.end]
    inside = [
        Change(start=change.start - rewrite.start, end=change.end - rewrite.start, text=change.text)
        for inner in rewrites
        if rewrite.start <= inner.start and inner.end <= rewrite.end
        for change in inner.changes
        if change.end <= rewrite.end
    ]
    reason, confidence = REASONS[rewrite.rule]
    return Edit(
        rule=rewrite.rule,
        place=moves.place(rewrite.start),
        place_after=moves.after(rewrite.start),
        before=_short(before),
        after=_short(applied(before, inside)),
        reason=reason,
        confidence=confidence,
        source=SOURCE,
    )


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST_SHOWN else f"{text[: _LONGEST_SHOWN - 3]}..."
