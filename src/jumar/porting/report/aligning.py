"""Two texts side by side: which lines correspond, and which characters changed."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import zip_longest

from jumar.porting.report.showing import lines_of

_MAX_PAIRS = 2_500
"""Blocks of up to 50 by 50 changed lines are paired by similarity, larger ones in order."""
_MIN_SIMILARITY = 0.35
_LONG_LINE = 2_000


@dataclass(frozen=True, kw_only=True)
class Part:
    """A piece of a line; `changed` if the other side differs there."""

    text: str
    changed: bool = False


@dataclass(frozen=True, kw_only=True)
class Cell:
    """A line of one side; `end` names its line ending if it differs from the other side's."""

    number: int
    parts: tuple[Part, ...]
    end: str = ""

    @property
    def text(self) -> str:
        return "".join(part.text for part in self.parts)


@dataclass(frozen=True, kw_only=True)
class Row:
    """Two lines side by side; None on the side that has no such line."""

    left: Cell | None
    right: Cell | None
    changed: bool


def align(before: str, after: str) -> list[Row]:
    """Return all lines of both texts, in order, each aligned with its new version."""
    left, right = lines_of(before), lines_of(after)
    rows: list[Row] = []
    for tag, i, i_end, j, j_end in SequenceMatcher(None, left, right).get_opcodes():
        if tag == "equal":
            rows += [_same(i + k, j + k, left[i + k]) for k in range(i_end - i)]
            continue
        for i_pair, j_pair in _paired(left[i:i_end], right[j:j_end]):
            rows.append(
                _changed(
                    (i + i_pair, left[i + i_pair]) if i_pair is not None else None,
                    (j + j_pair, right[j + j_pair]) if j_pair is not None else None,
                )
            )
    return rows


def _same(i: int, j: int, line: str) -> Row:
    parts = (Part(text=line.rstrip("\r\n")),)
    return Row(
        left=Cell(number=i + 1, parts=parts), right=Cell(number=j + 1, parts=parts), changed=False
    )


def _changed(left: tuple[int, str] | None, right: tuple[int, str] | None) -> Row:
    if left is None or right is None:
        side = left or right
        assert side is not None
        cell = Cell(number=side[0] + 1, parts=(Part(text=side[1].rstrip("\r\n")),))
        return Row(
            left=cell if right is None else None, right=cell if left is None else None, changed=True
        )
    old, new = left[1].rstrip("\r\n"), right[1].rstrip("\r\n")
    old_end, new_end = left[1][len(old) :], right[1][len(new) :]
    other_end = old_end != new_end
    old_parts, new_parts = _compared(old, new)
    return Row(
        left=Cell(number=left[0] + 1, parts=old_parts, end=_end_name(old_end) if other_end else ""),
        right=Cell(
            number=right[0] + 1, parts=new_parts, end=_end_name(new_end) if other_end else ""
        ),
        changed=True,
    )


def _end_name(end: str) -> str:
    return end.replace("\r", "CR").replace("\n", "LF") or "none"


def _paired(left: Sequence[str], right: Sequence[str]) -> Iterator[tuple[int | None, int | None]]:
    """Yield index pairs of changed lines: the most similar are paired, without crossing."""
    if len(left) * len(right) > _MAX_PAIRS or not left or not right:
        pairs = [(k, k) for k in range(min(len(left), len(right)))]
    else:
        pairs = _most_similar(left, right)
    i = j = 0
    for i_pair, j_pair in [*pairs, (len(left), len(right))]:
        # A line without a counterpart is shown next to the lines that replaced it.
        yield from zip_longest(range(i, i_pair), range(j, j_pair))
        if i_pair < len(left):
            yield i_pair, j_pair
        i, j = i_pair + 1, j_pair + 1


def _most_similar(left: Sequence[str], right: Sequence[str]) -> list[tuple[int, int]]:
    """Return the pairs, in order on both sides, with the highest total similarity."""
    old_counts = [Counter(_tokens(line)) for line in left]
    new_counts = [Counter(_tokens(line)) for line in right]
    best = [[0.0] * (len(right) + 1) for _ in range(len(left) + 1)]
    similarities = [[_similarity(old, new) for new in new_counts] for old in old_counts]
    for i in reversed(range(len(left))):
        for j in reversed(range(len(right))):
            paired = (
                similarities[i][j] + best[i + 1][j + 1]
                if similarities[i][j] >= _MIN_SIMILARITY
                else 0.0
            )
            best[i][j] = max(paired, best[i + 1][j], best[i][j + 1])
    pairs: list[tuple[int, int]] = []
    i = j = 0
    while i < len(left) and j < len(right):
        if (
            similarities[i][j] >= _MIN_SIMILARITY
            and best[i][j] == similarities[i][j] + best[i + 1][j + 1]
        ):
            pairs.append((i, j))
            i, j = i + 1, j + 1
        elif best[i][j] == best[i + 1][j]:
            i += 1
        else:
            j += 1
    return pairs


def _similarity(old: Counter[str], new: Counter[str]) -> float:
    total = old.total() + new.total()
    return 2 * (old & new).total() / total if total else 1.0


def _tokens(line: str) -> list[str]:
    return re.findall(r"\w+|[^\w\s]", line)


def _compared(old: str, new: str) -> tuple[tuple[Part, ...], tuple[Part, ...]]:
    """Return the parts of both lines, marking the words that the other line lacks.

    Whole words are marked: `Session` beside `NPUSession` is easier to read as one change than as
    three inserted letters. Lines with little in common are marked completely.
    """
    similarity = _similarity(Counter(_tokens(old)), Counter(_tokens(new)))
    if similarity < _MIN_SIMILARITY or len(old) + len(new) > 2 * _LONG_LINE:
        return (Part(text=old, changed=True),), (Part(text=new, changed=True),)
    old_words, new_words = re.findall(r"\w+|\s+|[^\w\s]", old), re.findall(r"\w+|\s+|[^\w\s]", new)
    old_parts: list[Part] = []
    new_parts: list[Part] = []
    for tag, i, i_end, j, j_end in SequenceMatcher(
        None, old_words, new_words, autojunk=False
    ).get_opcodes():
        is_changed = tag != "equal"
        if i < i_end:
            old_parts.append(Part(text="".join(old_words[i:i_end]), changed=is_changed))
        if j < j_end:
            new_parts.append(Part(text="".join(new_words[j:j_end]), changed=is_changed))
    return tuple(old_parts), tuple(new_parts)
