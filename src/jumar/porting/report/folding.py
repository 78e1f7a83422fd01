"""Decides which lines of a file the page shows and which it folds."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from jumar.porting.edits import Edit, FileReport, Finding
from jumar.porting.report.aligning import Row, align

CONTEXT = 3
_SHORTEST_FOLD = 4
"""Fewer unchanged lines are shown, since a fold would need as much space."""


@dataclass(frozen=True, kw_only=True)
class Note:
    """An edit or a finding at its line; `key` is its element id on the page."""

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
    """Split a ported file into shown and folded parts, from top to bottom.

    Args:
        file: The file, with both texts.
        key: Prefix of the keys of the notes.
    """
    rows = align(file.before.removeprefix("\ufeff"), file.after.removeprefix("\ufeff"))
    if not rows:
        return []
    notes = _notes_by_row(file, rows, key)
    near_rows: set[int] = set()
    for index, row in enumerate(rows):
        if row.changed or index in notes:
            near_rows.update(range(index - CONTEXT, index + CONTEXT + 1))
    parts: list[Shown | Folded] = []
    for is_near, group in groupby(range(len(rows)), key=near_rows.__contains__):
        indices = list(group)
        if is_near or len(indices) < _SHORTEST_FOLD:
            noted_rows = tuple(
                NotedRow(row=rows[index], notes=tuple(notes.get(index, ()))) for index in indices
            )
            if parts and isinstance(parts[-1], Shown):
                noted_rows = (*parts.pop().rows, *noted_rows)  # pyright: ignore[reportAttributeAccessIssue]
            parts.append(Shown(rows=noted_rows))
        else:
            parts.append(_folded([rows[index] for index in indices]))
    return parts


def _folded(rows: Sequence[Row]) -> Folded:
    left, right = rows[0].left, rows[0].right
    assert left is not None
    assert right is not None
    lines = tuple(row.left.text for row in rows if row.left is not None)
    return Folded(left=left.number, right=right.number, lines=lines)


def _notes_by_row(file: FileReport, rows: Sequence[Row], key: str) -> dict[int, list[Note]]:
    """Return the notes of each row, by row index."""
    left_rows = {row.left.number: index for index, row in enumerate(rows) if row.left is not None}
    right_rows = {
        row.right.number: index for index, row in enumerate(rows) if row.right is not None
    }
    notes_of_row: dict[int, list[Note]] = {}
    items: list[tuple[str, Edit | Finding]] = [
        *((f"{key}-e{number}", edit) for number, edit in enumerate(file.edits)),
        *((f"{key}-d{number}", finding) for number, finding in enumerate(file.findings)),
    ]
    for name, item in items:
        index = _row_of(item, rows, left_rows, right_rows)
        notes_of_row.setdefault(index, []).append(Note(key=name, item=item))
    return notes_of_row


def _row_of(
    item: Edit | Finding, rows: Sequence[Row], left_rows: dict[int, int], right_rows: dict[int, int]
) -> int:
    """Return the row that shows an item: its first changed line, or else its own line."""
    code, code_after = (item.before, item.after) if isinstance(item, Edit) else ("", "")
    candidates: list[int] = []
    if item.place_after is not None:
        # The place of an insertion is the line that follows; the new line is more helpful.
        candidates += _rows_from(item.place_after.line, code_after, right_rows)
    candidates += _rows_from(item.place.line, code, left_rows)
    if isinstance(item, Edit):
        # An edit that inserted lines before or after its place is shown at those lines.
        beside = (1, -1) if item.before == item.after else (-1, 1)
        neighbours = [index + step for step in beside for index in candidates]
        candidates += [index for index in neighbours if 0 <= index < len(rows)]
    changed_rows = [index for index in candidates if rows[index].changed]
    return (changed_rows or candidates or [len(rows) - 1])[0]


def _rows_from(line: int, code: str, index_of: dict[int, int]) -> list[int]:
    """Return the rows of the lines that a piece of code spans, starting at a line."""
    numbers = range(line, line + code.count("\n") + 1)
    return [index_of[number] for number in numbers if number in index_of]
