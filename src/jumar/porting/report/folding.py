"""The two sides of a file for the page: what is shown, folded or omitted."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from jumar.porting.edits import Edit, FileReport, Finding
from jumar.porting.report.aligning import Row, align

CONTEXT = 3
_SHORTEST_FOLD = 4
"""Fewer unchanged lines than this are shown: a fold would take as much room."""


@dataclass(frozen=True, kw_only=True)
class Note:
    """An edit or a finding at its line; `key` names it on the page."""

    key: str
    item: Edit | Finding


@dataclass(frozen=True, kw_only=True)
class NotedRow:
    """A line of both sides with its notes."""

    row: Row
    notes: tuple[Note, ...]


@dataclass(frozen=True, kw_only=True)
class Shown:
    """Lines that the page shows."""

    rows: tuple[NotedRow, ...]


@dataclass(frozen=True, kw_only=True)
class Folded:
    """Unchanged lines, the same on both sides."""

    left: int
    right: int
    lines: tuple[str, ...]


def side_by_side(file: FileReport, key: str) -> list[Shown | Folded]:
    """A ported file from top to bottom.

    Args:
        file: The file, with both texts.
        key: Prefix of the keys of its notes.
    """
    rows = align(file.before.removeprefix("\ufeff"), file.after.removeprefix("\ufeff"))
    if not rows:
        return []
    notes = _placed(file, rows, key)
    near_rows: set[int] = set()
    for index, row in enumerate(rows):
        if row.changed or index in notes:
            near_rows.update(range(index - CONTEXT, index + CONTEXT + 1))
    parts: list[Shown | Folded] = []
    for start, end, is_near in _runs([index in near_rows for index in range(len(rows))]):
        if is_near or end - start < _SHORTEST_FOLD:
            noted_rows = tuple(
                NotedRow(row=rows[index], notes=tuple(notes.get(index, ())))
                for index in range(start, end)
            )
            if parts and isinstance(parts[-1], Shown):
                noted_rows = (*parts.pop().rows, *noted_rows)  # pyright: ignore[reportAttributeAccessIssue]
            parts.append(Shown(rows=noted_rows))
        else:
            parts.append(_folded(rows[start:end]))
    return parts


def _runs(flags: Sequence[bool]) -> Iterator[tuple[int, int, bool]]:
    """First index, end and value of each run of equal flags."""
    first = 0
    for index in range(1, len(flags) + 1):
        if index == len(flags) or flags[index] != flags[first]:
            yield first, index, flags[first]
            first = index


def _folded(rows: Sequence[Row]) -> Folded:
    left, right = rows[0].left, rows[0].right
    assert left is not None
    assert right is not None
    lines = tuple(row.left.text for row in rows if row.left is not None)
    return Folded(left=left.number, right=right.number, lines=lines)


def _placed(file: FileReport, rows: Sequence[Row], key: str) -> dict[int, list[Note]]:
    """The notes of each row, by its index."""
    lefts = {row.left.number: index for index, row in enumerate(rows) if row.left is not None}
    rights = {row.right.number: index for index, row in enumerate(rows) if row.right is not None}
    notes_of_row: dict[int, list[Note]] = {}
    items: list[tuple[str, Edit | Finding]] = [
        *((f"{key}-e{number}", edit) for number, edit in enumerate(file.edits)),
        *((f"{key}-d{number}", finding) for number, finding in enumerate(file.findings)),
    ]
    for name, item in items:
        index = _row_of(item, rows, lefts, rights)
        notes_of_row.setdefault(index, []).append(Note(key=name, item=item))
    return notes_of_row


def _row_of(
    item: Edit | Finding, rows: Sequence[Row], lefts: dict[int, int], rights: dict[int, int]
) -> int:
    """Where an edit or a finding is shown: at its first changed line, or else at its own line."""
    code, code_after = (item.before, item.after) if isinstance(item, Edit) else ("", "")
    candidates: list[int] = []
    if item.place_after is not None:
        # An insertion before a line has that line as its place: the new line is more helpful.
        candidates += _rows_from(item.place_after.line, code_after, rights)
    candidates += _rows_from(item.place.line, code, lefts)
    if isinstance(item, Edit):
        # An edit that inserted lines before or after its place belongs to them.
        beside = (1, -1) if item.before == item.after else (-1, 1)
        neighbours = [index + step for step in beside for index in candidates]
        candidates += [index for index in neighbours if 0 <= index < len(rows)]
    changed_rows = [index for index in candidates if rows[index].changed]
    return (changed_rows or candidates or [len(rows) - 1])[0]


def _rows_from(line: int, code: str, index_of: dict[int, int]) -> list[int]:
    """The rows of the lines that a piece of code spans, from its first line."""
    numbers = range(line, line + code.count("\n") + 1)
    return [index_of[number] for number in numbers if number in index_of]
