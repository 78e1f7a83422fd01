"""The page of a run or a sweep: one self-contained HTML file."""

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from jumar.ground.errors import UserError
from jumar.ground.files import write_text
from jumar.ground.pages import page_source, page_template, policy_hash
from jumar.profiling.showing import json_for_script
from jumar.report.chart import (
    BOTTOM,
    HEIGHT,
    LEFT,
    RIGHT,
    TOP,
    WIDTH,
    Drawing,
    colour_and_dash,
    draw,
    key_letters,
)
from jumar.report.content import Page
from jumar.report.numbers import LOGARITHMIC_FROM

_SIGNATURE = b"Written by jumar."
"""Text in the footer of every page, which distinguishes our pages from other files."""
POINTS_PER_CURVE = 400
MARKS_PER_CURVE = 40
_POINTS_PER_PAGE = 18_000
_MARKS_PER_PAGE = 1_200
"""A page of a hundred runs stays below 1 MB: about 30 bytes per point, which is stored as a path
and as numbers for zooming, and 150 per mark."""


def render(page: Page) -> str:
    """Render the page as HTML, with inline style and script and no external references.

    The template engine escapes all text, and the page's content security policy allows only its own
    script, without which the page lacks only zooming, filters and sorting.
    """
    curves = max(1, sum(len(chart.curves) for chart in page.charts))
    all_drawings = [
        draw(
            chart,
            points_per_curve=max(8, min(POINTS_PER_CURVE, _POINTS_PER_PAGE // curves)),
            marks_per_curve=max(1, min(MARKS_PER_CURVE, _MARKS_PER_PAGE // curves)),
        )
        for chart in page.charts
    ]
    drawings = [drawing for drawing in all_drawings if drawing is not None]
    is_searched = any(table.searchable for table in (*page.tables, *page.details))
    script = page_source("jumar.report", "page.js") if drawings or is_searched else ""
    frame = {
        "width": WIDTH,
        "height": HEIGHT,
        "left": LEFT,
        "right": WIDTH - RIGHT,
        "top": TOP,
        "bottom": HEIGHT - BOTTOM,
    }
    return page_template("jumar.report", "report.html.jinja").render(
        page=page,
        drawings=drawings,
        frame=frame,
        script=script,
        script_hash=policy_hash(script),
        data=_numbers(drawings, frame) if script else "",
        key_letters=key_letters,
        colour_and_dash=colour_and_dash,
    )


def _numbers(drawings: Sequence[Drawing], frame: dict[str, float]) -> str:
    """The data that the script draws, as JSON that is safe in a `script` element."""
    charts = [
        {
            "lines": [
                {
                    "key": line.key,
                    "label": line.label,
                    "groups": list(line.groups),
                    "look": f"c{line.colour} d{line.dash}{' repeat' if line.is_repeat else ''}",
                    "dotted": line.dotted,
                    "ended": bool(line.ended),
                    "x": [_short(point.x) for point in line.points],
                    "y": [None if point.y is None else _short(point.y) for point in line.points],
                }
                for line in drawing.lines
            ]
        }
        for drawing in drawings
    ]
    data: dict[str, Any] = {"frame": frame, "charts": charts, "logarithmicFrom": LOGARITHMIC_FROM}
    return json_for_script(data)


def _short(value: float) -> float:
    """Round to six digits, which suffice at every zoom that the number of points allows."""
    number = float(f"{value:.6g}")
    return int(number) if number.is_integer() and abs(number) < 1e15 else number


def save_page(page: Page, path: Path) -> Path:
    """Write the page atomically and return its path.

    Raises:
        UserError: The file cannot be written, or was not written by jumar.
    """
    with suppress(OSError), path.open("rb") as file:
        if _SIGNATURE not in file.read():
            raise UserError(
                "was not written by jumar and is not overwritten",
                where=str(path),
                todo="Rename it, or move it away.",
            )
    write_text(path, render(page))
    return path
