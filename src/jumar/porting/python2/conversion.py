"""Convert Python 2 sources before they are ported.

Only code with an exact equivalent in Python 3 is rewritten, by span: every other byte, including
comments and line endings, is unchanged. A file in which other Python 2 syntax remains is not
converted. Names that Python 3 has renamed are also rewritten in files that it can parse.
"""

import ast
import re
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from jumar.porting.edits import Edit, Finding, Place, Text
from jumar.porting.python2.guards import Survey, survey
from jumar.porting.python2.names import SOURCE, python2_findings
from jumar.porting.python2.renames import renames
from jumar.porting.python2.rewrites import Change, Rewrite, applied, by_position
from jumar.porting.script.module import parsed_or_none
from jumar.porting.script.source import Lines

_MAX_SHOWN = 160
"""Maximum number of characters of a statement that an edit quotes."""

REASONS = {
    "python2-print": Text(en="print is a function in Python 3.", zh="print 在 Python 3 中是函数。"),
    "python2-except": Text(
        en="Python 3 names a caught exception with `as`.",
        zh="Python 3 用 as 为捕获的异常命名。",
    ),
    "python2-raise": Text(
        en="Python 3 raises an exception object; the value becomes its argument.",
        zh="Python 3 只能抛出异常对象；原来的值成为其参数。",
    ),
    "python2-exec": Text(en="exec is a function in Python 3.", zh="exec 在 Python 3 中是函数。"),
    "python2-ne": Text(en="Python 3 has != instead of <>.", zh="Python 3 中 <> 写作 !=。"),
    "python2-repr": Text(
        en="Python 3 has repr() instead of backquotes.", zh="Python 3 用 repr() 代替反引号。"
    ),
    "python2-number": Text(
        en="In Python 3, octal numbers begin with 0o, and long integers have no suffix.",
        zh="Python 3 的八进制数写作 0o，长整数没有后缀。",
    ),
    "python2-string": Text(
        en="Strings in Python 3 are already Unicode.",
        zh="Python 3 的字符串已经是 Unicode。",
    ),
    "python2-builtin": Text(
        en="Python 3 has renamed this function or type.", zh="Python 3 中该名称已更换。"
    ),
    "python2-module": Text(en="Python 3 has renamed this module.", zh="Python 3 中该模块已更名。"),
    "python2-attribute": Text(
        en="Python 3 has renamed this attribute.", zh="Python 3 中该名称已更换。"
    ),
    "python2-dictionary": Text(
        en="Python 3 has removed this dictionary method.",
        zh="Python 3 的字典不再有该方法。",
    ),
    "python2-tabs": Text(
        en="Python 3 rejects this mixture of tabs and spaces; in Python 2, a tab extends to "
        "the next multiple of 8 columns.",
        zh="Python 3 不接受制表符与空格混用的缩进；Python 2 中制表符对齐到 8 的倍数。",
    ),
}
"""The reason of each rule."""
_LIKELY = ("python2-raise", "python2-dictionary")
"""Rules whose edits are likely to be right; those of the others are certain."""


_NAMES = re.compile(
    r"\b(?:xrange|unicode|unichr|basestring|raw_input|long|execfile|reload|reduce|cmp|file|apply"
    r"|buffer|coerce|intern|has_key|iteritems|iterkeys|itervalues|view(?:items|keys|values)"
    r"|izip|imap|ifilter|izip_longest|maxint|getcwdu|cPickle|cStringIO|StringIO|Queue|ConfigParser"
    r"|__builtin__|copy_reg|urllib2?|urlparse|commands|httplib|thread|sets|md5|sha|Tkinter"
    r"|string\.(?:letters|lowercase|uppercase|maketrans|join))\b"
    r"|(?:keys|values|items)\(\)\s*\[|\b(?:map|filter|zip)\(.*\)\s*\["
    # A division that is assigned to a variable, passed to `range`, or within brackets.
    r"|(?:^\s*\w+\s*=|\brange\(|\[)[^\n'\"#]*[\w)\]] ?/ ?[\w(]",
    re.MULTILINE,
)
"""Files that Python 3 parses are only searched for Python 2 code if they match this."""


class PositionMap:
    """Maps positions in a source to positions after changes, and back; changes may add lines."""

    def __init__(self, old: str, new: str, changes: Sequence[Change]) -> None:
        self._old, self._new = Lines(old), Lines(new)
        self._spans: list[tuple[int, int, int, int]] = []
        shift = 0
        for change in sorted(changes, key=by_position):
            start = change.start + shift
            shift += len(change.text) - (change.end - change.start)
            self._spans.append((change.start, change.end, start, change.end + shift))

    def place(self, offset: int) -> Place:
        """The position of an offset in the source."""
        return self._old.place(offset)

    def position_after(self, offset: int) -> Place:
        """The position in the new text of an offset in the source."""
        count = bisect_right(self._spans, offset, key=lambda span: span[0])
        if not count:
            return self._new.place(offset)
        _, end, new_start, new_end = self._spans[count - 1]
        # Text inserted at the offset precedes it.
        return self._new.place(new_start if offset < end else new_end + offset - end)

    def position_before(self, place: Place) -> Place:
        """The position in the source of a position in the new text."""
        starts = self._new.starts
        start = starts[min(place.line, len(starts)) - 1]
        return self._old.place(self.offset_before(start + place.column - 1))

    def offset_before(self, offset: int) -> int:
        """The offset in the source of an offset in the new text."""
        count = bisect_right(self._spans, offset, key=lambda span: span[2])
        if not count:
            return offset
        start, end, _, new_end = self._spans[count - 1]
        return start if offset < new_end else end + offset - new_end


@dataclass(frozen=True, kw_only=True)
class Converted:
    """A Python 2 source, converted so that Python 3 parses it.

    In edits and findings, `place` is a position in the Python 2 source, `place_after` in `text`.
    """

    text: str
    edits: tuple[Edit, ...]
    findings: tuple[Finding, ...]
    moves: PositionMap = field(repr=False, compare=False)

    def place_before(self, place: Place) -> Place:
        """The position in the Python 2 source of a position in the converted text."""
        return self.moves.position_before(place)


def to_python3(text: str) -> Converted | None:
    """Rewrite the parts of a Python 2 source that Python 3 cannot parse.

    Args:
        text: A source that `ast.parse` rejects, with its original line endings.

    Returns:
        The converted source; None if it has to be converted by hand.
    """
    # The Python 2 parser is slow to load, and few files need it.
    from jumar.porting.python2.statements import candidate_rewrites

    for rewrites in candidate_rewrites(text):
        changes = [change for rewrite in rewrites for change in rewrite.changes]
        new = applied(text, changes)
        tree = parsed_or_none(new)
        if tree is not None:
            return _converted(text, _with_renames(text, rewrites, new, survey(tree)))
    return None


def with_python3_names(
    text: str, tree: ast.Module, is_in_tree: Callable[[str], bool]
) -> Converted | None:
    """Rewrite Python 2 names in a source that Python 3 parses.

    Args:
        text: The source.
        tree: Its syntax tree.
        is_in_tree: Whether a module name refers to a file of the tree that is ported.

    Returns:
        The source with its edits and findings; None if there are neither.
    """
    if not _NAMES.search(text) or re.search("\r(?!\n)", text):
        return None
    surveyed = survey(tree)
    converted = _converted(text, renames(surveyed, text, is_in_tree), surveyed, divisions=False)
    return converted if converted and (converted.edits or converted.findings) else None


def _converted(
    text: str,
    rewrites: Sequence[Rewrite],
    surveyed: Survey | None = None,
    *,
    divisions: bool = True,
) -> Converted | None:
    """Apply rewrites to a source; `surveyed` is its survey if Python 3 parses it already."""
    changes = [change for rewrite in rewrites for change in rewrite.changes]
    new = applied(text, changes)
    if changes or surveyed is None:
        tree = parsed_or_none(new)
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
        findings=python2_findings(surveyed, new, moves.position_before, divisions=divisions),
        moves=moves,
    )


def _with_renames(
    text: str, rewrites: Sequence[Rewrite], new: str, surveyed: Survey
) -> Sequence[Rewrite]:
    """Add the renames that are found once the rewrites have made the source parseable."""
    moves = PositionMap(text, new, [change for rewrite in rewrites for change in rewrite.changes])
    renamings: list[Rewrite] = []
    for rewrite in renames(surveyed, new, lambda _: False):
        start, end = (moves.offset_before(offset) for offset in (rewrite.start, rewrite.end))
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
    return all_rewrites if parsed_or_none(merged_text) is not None else rewrites


def _edit(text: str, rewrite: Rewrite, rewrites: Sequence[Rewrite], moves: PositionMap) -> Edit:
    before = text[rewrite.start : rewrite.end]
    inside = [
        Change(start=change.start - rewrite.start, end=change.end - rewrite.start, text=change.text)
        for inner in rewrites
        if rewrite.start <= inner.start and inner.end <= rewrite.end
        for change in inner.changes
        if change.end <= rewrite.end
    ]
    return Edit(
        rule=rewrite.rule,
        place=moves.place(rewrite.start),
        place_after=moves.position_after(rewrite.start),
        before=_short(before),
        after=_short(applied(before, inside)),
        reason=REASONS[rewrite.rule],
        confidence="likely" if rewrite.rule in _LIKELY else "certain",
        source=SOURCE,
    )


def _short(text: str) -> str:
    return text if len(text) <= _MAX_SHOWN else f"{text[: _MAX_SHOWN - 3]}..."
