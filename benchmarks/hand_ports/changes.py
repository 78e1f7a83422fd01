"""What people changed in a script: runs of statements that differ between its two versions."""

import ast
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from pathlib import Path

from hand_ports.statements import Statement, statements

_WORD = re.compile(r"'[^'\n]*'|\"[^\"\n]*\"|[A-Za-z_]\w*(?:\s*\.\s*[A-Za-z_]\w*)*|\d+")
_SAYS_NOTHING = re.compile(r"npu_bridge|\.add_argument\(|\bDEFINE_\w+\(")
"""Imports of npu_bridge and options of the command line: what they are for stands elsewhere."""
_ALIKE = 0.5
"""Share of equal statements from which two files of different names are versions of one."""
_KEPT = 0.15
"""Share of the original's statements below which a person wrote a file anew."""


@dataclass(frozen=True, kw_only=True)
class HandChange:
    """Statements of an original that a person replaced, removed or added to.

    Args:
        path: Of the original, relative to its folder.
        first: First line concerned; of an insertion, the line before it.
        last: Last line concerned; of an insertion, the line after it.
        scope: The functions and classes around it.
        before: The statements of the original.
        after: Those of the hand-made port.
        added: Words that only the hand-made port has here, a line each.
        removed: Words that only the original has here.
    """

    path: str
    first: int
    last: int
    scope: tuple[str, ...]
    before: tuple[str, ...]
    after: tuple[str, ...]
    added: str
    removed: str


@dataclass(frozen=True, kw_only=True)
class Paired:
    """The scripts of two trees that are versions of each other, and those that are not.

    Args:
        pairs: Relative paths in the original and in the hand-made port.
        dropped: Scripts of the original that the person left out.
        new: Scripts that the person added.
        anew: Scripts of which next to nothing was kept.
        unreadable: Scripts that cannot be parsed on one side.
        changes: All changes, in the order of paths and lines.
    """

    pairs: tuple[tuple[str, str], ...]
    dropped: tuple[str, ...]
    new: tuple[str, ...]
    anew: tuple[str, ...]
    unreadable: tuple[str, ...]
    changes: tuple[HandChange, ...]


def paired(original: Path, hand: Path) -> Paired:
    """The changes between the scripts of two folders.

    Files are versions of each other if they have the same path, else the longest common end of
    their paths, else more than half of their statements in common.
    """
    ours, theirs = _scripts(original), _scripts(hand)
    read_ours = {path: statements(text) for path, text in ours.items()}
    read_theirs = {path: statements(text) for path, text in theirs.items()}
    pairs = [(path, path) for path in sorted(set(ours) & set(theirs))]
    free = set(theirs) - set(ours)
    for path in sorted(set(ours) - set(theirs)):
        partner = _namesake(path, free)
        if partner and _share_of(read_ours[path], read_theirs[partner]) >= _KEPT:
            pairs.append((path, partner))
            free.discard(partner)
    taken = {path for path, _ in pairs}
    # A person may also split a script: `main.py` into `train.py` and `test.py`.
    for partner in sorted(free):
        path = _alike(read_theirs[partner], read_ours)
        if path:
            pairs.append((path, partner))
            free.discard(partner)
            taken.add(path)
    unreadable: list[str] = []
    anew: list[str] = []
    changes: list[HandChange] = []
    for path, partner in sorted(pairs):
        before, after = read_ours[path], read_theirs[partner]
        if before is None or after is None:
            unreadable.append(path)
        elif before and _share_of(before, after) < _KEPT:
            anew.append(path)
        else:
            changes += changes_between(path, before, after)
    return Paired(
        pairs=tuple(sorted(pairs)),
        dropped=tuple(sorted(set(ours) - taken)),
        new=tuple(sorted(free)),
        anew=tuple(anew),
        unreadable=tuple(unreadable),
        changes=tuple(changes),
    )


def changes_between(
    path: str, before: Sequence[Statement], after: Sequence[Statement]
) -> list[HandChange]:
    """The changes between two versions of a script."""
    matcher = SequenceMatcher(
        None, [item.text for item in before], [item.text for item in after], autojunk=False
    )
    found: list[HandChange] = []
    local = [_names_of_scipy_misc(side) for side in (before, after)]
    for tag, start, end, new_start, new_end in matcher.get_opcodes():
        if tag == "equal":
            continue
        old, new = before[start:end], after[new_start:new_end]
        if not old and new[0].text.startswith(("import ", "from ")) and len(new) == 1:
            scope: tuple[str, ...] = ()
        else:
            scope = _common([item.scope for item in (old or new)])
        first = old[0].first if old else (before[start - 1].last if start else 1)
        last = old[-1].last if old else (before[start].first if start < len(before) else first)
        texts = tuple(item.text for item in old), tuple(item.text for item in new)
        words = [Counter(_words(side, names)) for side, names in zip(texts, local, strict=True)]
        found.append(
            HandChange(
                path=path,
                first=first,
                last=last,
                scope=scope,
                before=texts[0],
                after=texts[1],
                added="\n".join(sorted(words[1] - words[0])),
                removed="\n".join(sorted(words[0] - words[1])),
            )
        )
    return found


def _words(texts: Sequence[str], of_scipy_misc: frozenset[str]) -> list[str]:
    """The words of statements; names that stand for scipy.misc are written out."""
    words = _WORD.findall("\n".join(text for text in texts if not _SAYS_NOTHING.search(text)))
    return [
        re.sub(r"^\w+", "scipy.misc", word) if _head(word) in of_scipy_misc else word
        for word in words
    ]


def _head(word: str) -> str:
    """`misc` of `misc.imread`."""
    return word.partition(".")[0].strip()


def _names_of_scipy_misc(statements: Sequence[Statement]) -> frozenset[str]:
    """What a script calls scipy.misc: a package of its own may be called `misc` as well."""
    names: set[str] = set()
    for statement in statements:
        if not statement.text.startswith(("import ", "from ")):
            continue
        (node,) = ast.parse(statement.text).body
        if isinstance(node, ast.ImportFrom) and node.module == "scipy" and not node.level:
            names |= {one.asname or one.name for one in node.names if one.name == "misc"}
        elif isinstance(node, ast.Import):
            names |= {one.asname for one in node.names if one.name == "scipy.misc" and one.asname}
    return frozenset(names)


def _scripts(folder: Path) -> dict[str, str]:
    return {
        path.relative_to(folder).as_posix(): path.read_text(errors="replace").lstrip("\ufeff")
        for path in sorted(folder.rglob("*.py"))
        if path.is_file()
    }


def _namesake(path: str, free: set[str]) -> str:
    """The path with the longest common end; nothing where two are equally long."""
    parts = path.split("/")[::-1]
    lengths: dict[str, int] = {}
    for other in free:
        same = 0
        for mine, yours in zip(parts, other.split("/")[::-1], strict=False):
            if mine != yours:
                break
            same += 1
        if same:
            lengths[other] = same
    longest = max(lengths.values(), default=0)
    best = [other for other, same in lengths.items() if same == longest]
    return best[0] if len(best) == 1 and not path.endswith("__init__.py") else ""


def _alike(mine: list[Statement] | None, others: dict[str, list[Statement] | None]) -> str:
    """The file with most statements in common, if these are more than half."""
    best, share = "", _ALIKE
    for path, other in others.items():
        same = _share(mine or [], other or [], max(len(mine or []), len(other or [])))
        if same > share:
            best, share = path, same
    return best


def _share_of(mine: Sequence[Statement] | None, theirs: Sequence[Statement] | None) -> float:
    """How many of the statements of a script another one has, as a share of its own."""
    return _share(mine, theirs, len(mine)) if mine and theirs else 1.0


def _share(mine: Sequence[Statement], theirs: Sequence[Statement], total: int) -> float:
    """How many statements two scripts have in common, as a share of a number."""
    both = Counter(item.text for item in mine) & Counter(item.text for item in theirs)
    return both.total() / total if total else 0.0


def _common(scopes: list[tuple[str, ...]]) -> tuple[str, ...]:
    """The scope that all have."""
    result = scopes[0]
    for scope in scopes[1:]:
        same = 0
        for mine, yours in zip(result, scope, strict=False):
            if mine != yours:
                break
            same += 1
        result = result[:same]
    return result
