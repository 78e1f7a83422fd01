"""Rows of text as tables: aligned for a terminal, in Markdown, and as CSV."""

import csv
import io
from collections.abc import Collection, Iterable, Sequence
from typing import Any

from rich.cells import cell_len

from jumar.ground.text import no_formula


def aligned_lines(
    rows: Sequence[Sequence[str]],
    *,
    numeric: Collection[int] = (),
    gap: str = "  ",
    widths: Sequence[int] | None = None,
) -> list[str]:
    """Return a line for each row, with its cells padded to columns and no trailing spaces.

    Args:
        rows: The rows; each has the same number of cells.
        numeric: Numbers of the columns that are aligned to the right.
        gap: Text between two columns.
        widths: Width of each column in columns of the terminal, where a Chinese character takes
            two; by default that of its widest cell.
    """
    if widths is None:
        widths = [max(map(cell_len, column)) for column in zip(*rows, strict=True)]
    lines: list[str] = []
    for row in rows:
        cells: list[str] = []
        for number, (cell, width) in enumerate(zip(row, widths, strict=True)):
            padding = " " * (width - cell_len(cell))
            cells.append(padding + cell if number in numeric else cell + padding)
        lines.append(gap.join(cells).rstrip())
    return lines


def markdown_text(text: str) -> str:
    """Escape Markdown and HTML in a text and put it on one line."""
    escaped = text.replace("\\", "\\\\").replace("&", "&amp;").replace("<", "&lt;")
    for character in "|*`~":
        escaped = escaped.replace(character, f"\\{character}")
    return " ".join(escaped.split())


def markdown_lines(rows: Sequence[Sequence[str]], numeric: Collection[int] = ()) -> list[str]:
    """Return the lines of a table in GitHub's Markdown.

    Args:
        rows: The rows, the header first; their text is escaped.
        numeric: Numbers of the columns that are aligned to the right.
    """
    cells = [[markdown_text(cell) for cell in row] for row in rows]
    rule = ["---:" if column in numeric else "---" for column in range(len(rows[0]))]
    return [f"| {' | '.join(row)} |" for row in (cells[0], rule, *cells[1:])]


def csv_text(rows: Iterable[Iterable[Any]]) -> str:
    """Return rows as CSV, without cells that spreadsheets would run as formulas."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([map(_csv_cell, row) for row in rows])
    return text.getvalue()


def _csv_cell(value: Any) -> Any:
    if isinstance(value, str):
        return no_formula(value)
    return "" if value is None else value
