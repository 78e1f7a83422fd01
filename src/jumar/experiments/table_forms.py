"""Output formats of the table: plain text, Markdown, CSV, JSON, and the cells of the page."""

import dataclasses
import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

from jumar.experiments.table import Compared, Row, Table
from jumar.ground.tables import aligned_lines, csv_text, markdown_lines, markdown_text

WIDTH = 100
"""Line length of plain text, which most terminals and log viewers can show."""

_SIGNS = {
    "baseline": "Baseline",
    "equal": "= Baseline",
    "below": "< Baseline",
    "above": "> Baseline",
}
_GAP = "  "
_MIN_COLUMN_WIDTH = 4


@dataclass(frozen=True, kw_only=True)
class Cells:
    """The table in human-readable form.

    Attributes:
        header: The header of each column.
        rows: The cells of each row.
        numeric: Indices of the right-aligned columns.
        footnotes: The notes marked [1], [2], ... in the rows.
        explanations: The meaning of the columns.
    """

    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    numeric: tuple[int, ...]
    footnotes: tuple[str, ...]
    explanations: tuple[str, ...]


def cells_of(table: Table, *, reasons_inline: bool) -> Cells:
    """Return the text of every cell.

    Args:
        table: The table to show.
        reasons_inline: Whether to explain a missing relation in its cell instead of a footnote.
    """
    notes: dict[str, int] = {}
    rows = tuple(_row_cells(row, notes, reasons_inline) for row in table.rows)
    names = table.fields or ("run",)
    header = (
        *names,
        _short(table.loss_name),
        "",
        " ".join(part for part in (table.headline_name, table.headline_unit) if part) or "metric",
        "",
        "batch time",
        "speed-up",
        "memory",
    )
    first = len(names)
    return Cells(
        header=header,
        rows=rows,
        numeric=(first, first + 2, first + 4, first + 5, first + 6),
        footnotes=tuple(f"[{number}] {text}" for text, number in notes.items()),
        explanations=table.explanations,
    )


def to_text(table: Table) -> str:
    """Return plain text of at most 100 columns; cells are wrapped if necessary."""
    cells = cells_of(table, reasons_inline=False)
    widths = _fitted([cells.header, *cells.rows])
    lines = _text_lines(cells.header, widths, cells.numeric)
    lines.append(_GAP.join("-" * width for width in widths))
    for row in cells.rows:
        lines.extend(_text_lines(row, widths, cells.numeric))
    lines.append("")
    for paragraph in (*cells.footnotes, *cells.explanations):
        lines.extend(_wrapped(paragraph, WIDTH))
    return "\n".join(line.rstrip() for line in lines) + "\n"


def to_markdown(table: Table) -> str:
    """Return a table in GitHub's Markdown, in the form of the original experiment table."""
    cells = cells_of(table, reasons_inline=True)
    rows = [_with_relations(row, cells.numeric[:2]) for row in (cells.header, *cells.rows)]
    first_number = (len(table.fields) or 1) + 2
    lines = markdown_lines(rows, range(first_number, len(rows[0])))
    for paragraph in (*cells.footnotes, *cells.explanations):
        lines += ["", markdown_text(paragraph)]
    return "\n".join(lines) + "\n"


def to_csv(table: Table) -> str:
    """Return CSV with a line per combination and empty cells for missing values.

    Relations are words, because spreadsheets treat a cell that starts with `=` as a formula.
    """
    header = [*(table.fields or ("run",)), *_csv_names(table)]
    rows = [[*(row.values or row.runs[:1]), *_csv_values(row)] for row in table.rows]
    return csv_text([header, *rows])


def _with_number(relation: str, number: str) -> str:
    if not relation or number == "N/A":
        return relation or number
    # A reason may contain parentheses, and after it a number in parentheses is hard to read.
    return f"{number}; {relation}" if relation.startswith("N/A") else f"{relation} ({number})"


def to_json(table: Table) -> str:
    """Return the table as JSON with all digits, and null for missing values."""
    return json.dumps(dataclasses.asdict(table), indent=2, allow_nan=False) + "\n"


def _row_cells(row: Row, notes: dict[str, int], reasons_inline: bool) -> tuple[str, ...]:
    marks = [_mark(note, notes) for note in row.notes]
    names = list(row.values or (row.runs[0] if row.runs else "run",))
    names[0] = " ".join([names[0], *marks])
    same_reason = row.loss.reason == row.headline.reason
    remarks = "\n".join(row.notes)

    def relation(compared: Compared, *, with_reason: bool = True) -> str:
        if compared.relation != "not available":
            return _SIGNS[compared.relation]
        if not compared.reason or not with_reason:
            return "N/A"
        if reasons_inline:
            return f"N/A, {compared.reason}"
        return "N/A" if compared.reason in remarks else f"N/A {_mark(compared.reason, notes)}"

    return (
        *names,
        _value(row.loss, 4),
        relation(row.loss),
        _value(row.headline, 4),
        relation(row.headline, with_reason=not (reasons_inline and same_reason)),
        "N/A" if row.batch_time_ms is None else f"{row.batch_time_ms:.4g} ms",
        "N/A" if row.speed_up is None else f"{row.speed_up:.2f}x",
        memory_text(row.memory_peak_bytes),
    )


def _mark(note: str, notes: dict[str, int]) -> str:
    return f"[{notes.setdefault(note, len(notes) + 1)}]"


def memory_text(size: int | None) -> str:
    """Return a number of bytes in MiB or GiB."""
    if size is None:
        return "N/A"
    return f"{size / 2**30:.2f} GiB" if size >= 2**30 else f"{size / 2**20:.0f} MiB"


def number_text(value: float, digits: int) -> str:
    """Return a number with significant digits, keeping trailing zeros: 97.20, not 97.2."""
    text = f"{value:#.{digits}g}"
    return text.rstrip(".") if "e" not in text else f"{value:.{digits - 1}e}"


def _value(compared: Compared, digits: int) -> str:
    if compared.value is None:
        return "N/A"
    text = number_text(compared.value, digits)
    return text if compared.deviation is None else f"{text} ± {compared.deviation:.2g}"


def _short(loss_name: str) -> str:
    return {"evaluation loss": "eval loss", "training loss": "train loss"}[loss_name]


def _with_relations(row: Sequence[str], columns: Sequence[int]) -> list[str]:
    """Return a row with each relation and its number in one cell, as in the original table."""
    cells: list[str] = []
    for index, cell in enumerate(row):
        if index - 1 in columns:
            value = cells.pop()
            cells.append(_with_number(cell, value))
        else:
            cells.append(cell)
    return cells


def distinct(values: Iterable[Any]) -> str:
    """Join the different values in the order of their first occurrence, without unknown ones."""
    return " · ".join(dict.fromkeys(str(value) for value in values if value not in (None, "")))


def _csv_names(table: Table) -> list[str]:
    unit = " (%)" if table.headline_unit == "%" else ""
    names = [table.loss_name, f"{table.headline_name or 'metric'}{unit}"]
    score_columns = [
        f"{name}{kind}"
        for name in names
        for kind in ("", " relation", " tolerance", " standard deviation")
    ]
    return [
        *score_columns,
        "batch time (ms)",
        "speed-up",
        "peak memory (bytes)",
        "computed in",
        "substituted",
        "finished runs",
        "runs",
        "notes",
    ]


def _csv_values(row: Row) -> list[Any]:
    score_values = [
        value
        for compared in (row.loss, row.headline)
        for value in (compared.value, compared.relation, compared.tolerance, compared.deviation)
    ]
    return [
        *score_values,
        row.batch_time_ms,
        row.speed_up,
        row.memory_peak_bytes,
        row.computed,
        "yes" if row.substituted else "no",
        row.num_finished,
        len(row.runs),
        "; ".join(row.notes),
    ]


def _fitted(rows: Sequence[Sequence[str]]) -> list[int]:
    """Return column widths that fit the line.

    The widest column shrinks first. Parts of a text that belong together are only split if no
    other column can shrink.
    """
    columns = [[row[index] for row in rows] for index in range(len(rows[0]))]
    widths = [max(len(cell) for cell in column) for column in columns]
    unsplit_widths = [
        max(len(unit) for cell in column for unit in _parts(cell)) for column in columns
    ]
    excess = sum(widths) + len(_GAP) * (len(widths) - 1) - WIDTH
    for _ in range(max(0, excess)):
        # First columns that can be wrapped without splitting parts, then the widest.
        order = [
            (width > unsplit_width, width)
            for width, unsplit_width in zip(widths, unsplit_widths, strict=True)
        ]
        widest = order.index(max(order))
        if widths[widest] <= _MIN_COLUMN_WIDTH:
            break
        widths[widest] -= 1
    return widths


def _text_lines(row: Sequence[str], widths: Sequence[int], numeric: Sequence[int]) -> list[str]:
    columns = [_wrapped(cell, width) for cell, width in zip(row, widths, strict=True)]
    lines = list(zip_longest(*columns, fillvalue=""))
    return aligned_lines(lines, numeric=numeric, gap=_GAP, widths=widths)


def _wrapped(text: str, width: int) -> list[str]:
    """Wrap a text between its parts, or within a part that is too long."""
    lines = [""]
    for unit in _parts(text):
        if len(lines[-1]) + len(unit.rstrip()) > width and lines[-1]:
            lines.append("")
        while len(unit.rstrip()) > width:
            lines[-1], unit = unit[:width], unit[width:]
            lines.append("")
        lines[-1] += unit
    return [line.rstrip() for line in lines]


def _parts(text: str) -> list[str]:
    """Split a text into the parts that a line break must not split.

    These are words and, within names, the parts between `_.=,/-`, except for decimal points.
    """
    return re.findall(r"(?:[^ _.=,/-]|\.(?=\d))*(?:[_=,/-]|\.(?!\d))? *", " ".join(text.split()))
