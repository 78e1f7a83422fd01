"""The page of a run or a sweep: one self-contained HTML file."""

from contextlib import suppress
from functools import lru_cache
from importlib.resources import files
from pathlib import Path

from jinja2 import Environment, StrictUndefined, Template

from jumar.ground.errors import UserError
from jumar.ground.files import write_text
from jumar.report.chart import BOTTOM, HEIGHT, LEFT, RIGHT, TOP, WIDTH, colour_and_dash, draw
from jumar.report.chart import key_letters as key_letters_of
from jumar.report.content import Page

_SIGNATURE = b"Written by jumar."
"""In the footer of every page; distinguishes our pages from other files."""
POINTS_PER_CURVE = 400
MARKS_PER_CURVE = 40
_POINTS_PER_PAGE = 24_000
_MARKS_PER_PAGE = 2_400
"""A page of a hundred runs stays below 1 MB: about 13 bytes per point, 150 per mark."""


def render(page: Page) -> str:
    """Render the page as HTML, with inline style and no external references.

    The template engine escapes every text on the page.
    """
    curves = max(1, sum(len(chart.curves) for chart in page.charts))
    drawings = [
        draw(
            chart,
            points_per_curve=max(8, min(POINTS_PER_CURVE, _POINTS_PER_PAGE // curves)),
            marks_per_curve=max(1, min(MARKS_PER_CURVE, _MARKS_PER_PAGE // curves)),
        )
        for chart in page.charts
    ]
    return _template().render(
        page=page,
        drawings=[drawing for drawing in drawings if drawing is not None],
        frame={
            "width": WIDTH,
            "height": HEIGHT,
            "left": LEFT,
            "right": WIDTH - RIGHT,
            "top": TOP,
            "bottom": HEIGHT - BOTTOM,
        },
        key_letters=key_letters_of,
        colour_and_dash=colour_and_dash,
    )


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


@lru_cache(maxsize=1)
def _template() -> Template:
    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    source = files("jumar.report").joinpath("report.html.jinja").read_text(encoding="utf-8")
    return environment.from_string(source)
