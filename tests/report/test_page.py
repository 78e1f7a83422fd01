import re
from pathlib import Path

import pytest

from jumar.ground.errors import UserError
from jumar.report.content import Chart, Curve, Page, PageTable, Point
from jumar.report.page import render, save_page
from tests.report.page_reading import PageReader

HOSTILE = (
    "</title><script>alert('x')</script>\"'><img src=http://evil.example/x onerror=a()> {{7*7}}"
)


def page(text: str = "alexnet", num_curves: int = 3, num_points: int = 50) -> Page:
    curves = [
        Curve(
            label=f"{text} {group}",
            group=group,
            points=[Point(x / 10, 1 / (1 + x) + group) for x in range(num_points)],
            ended=text if group == 1 else "",
        )
        for group in range(num_curves)
    ]
    table = PageTable(
        title=text,
        header=(text, "loss"),
        rows=[(text, "1.0")] * num_curves,
        numeric=(1,),
        groups=tuple(range(num_curves)),
        notes=(text,),
    )
    return Page(
        title=text,
        facts=((text, text),),
        notices=(text,),
        tables=(table,),
        charts=[
            Chart(title=f"{text} {kind}", x_label=text, curves=curves, marked=kind == 0)
            for kind in range(6)
        ],
        details=(table,),
    )


def test_every_tag_is_closed_in_order() -> None:
    read = PageReader(render(page()))
    assert read.open == []
    assert read.crossed == []


def test_nothing_external_is_loaded() -> None:
    html = render(page())
    read = PageReader(html)
    assert read.addresses == []
    script = html.index("<script>")
    policy = next(m["content"] for m in read.all("meta") if "http-equiv" in m)
    assert policy.startswith("default-src 'none'")
    assert re.search(r"script-src 'sha256-[\w+/=]{44}'$", policy)
    assert read.all("script") == [{"type": "application/json", "id": "data"}, {}]
    assert not re.search(r"https?:|//[a-z]|url\(|@import|<link|<iframe", html[:script])
    assert not re.search(r"fetch\(|XMLHttp|WebSocket|import\(|innerHTML|eval\(", html[script:])


def test_hostile_texts_are_escaped_everywhere() -> None:
    html = render(page(HOSTILE))
    read = PageReader(html)
    assert {tag for tag, _ in read.tags} == {tag for tag, _ in PageReader(render(page())).tags}
    assert not any(name.startswith("on") for _, attributes in read.tags for name in attributes)
    assert read.addresses == []
    assert (read.open, read.crossed) == ([], [])
    assert HOSTILE in read.texts["h1"][0]
    assert HOSTILE in read.texts["td"]
    assert "{{7*7}}" in html


def test_every_drawing_has_a_name_a_description_and_its_numbers_in_a_table() -> None:
    read = PageReader(render(page()))
    drawings = [svg for svg in read.all("svg") if "aria-hidden" not in svg]
    assert len(drawings) == 6
    ids = {attributes["id"] for _, attributes in read.tags if "id" in attributes}
    for svg in drawings:
        assert svg["role"] == "img"
        assert set(svg["aria-labelledby"].split()) <= ids
    assert len(ids) == 12 + len({"data", "controls", "smoothing", "whole", "all"})
    assert read.texts["summary"].count("Values") == 6


def test_dots_show_their_value_on_hover() -> None:
    assert "alexnet 0: 1 at 0" in PageReader(render(page())).texts["title"]


def test_light_dark_and_narrow_screens_are_supported() -> None:
    html = render(page())
    assert "prefers-color-scheme: dark" in html
    assert "width=device-width" in html


@pytest.mark.parametrize(("num_curves", "num_points"), [(4, 100_000), (48, 2_000), (100, 500)])
def test_page_is_below_one_megabyte(num_curves: int, num_points: int) -> None:
    assert len(render(page("precision.mode", num_curves, num_points)).encode()) < 1_000_000


def test_page_without_charts_and_tables_is_valid() -> None:
    read = PageReader(render(Page(title="nothing yet")))
    assert read.texts["h1"] == ["nothing yet"]
    assert "Curves" not in read.texts.get("h2", [])


def test_foreign_page_is_not_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    path.write_text("<p>mine, not written by jumar</p>")
    with pytest.raises(UserError, match="was not written by jumar") as caught:
        save_page(page(), path)
    assert caught.value.where == str(path)
    assert path.read_text() == "<p>mine, not written by jumar</p>"


def test_saving_a_page_leaves_no_temporary_file(tmp_path: Path) -> None:
    path = save_page(page(), tmp_path / "deep" / "report.html")
    save_page(page("again"), path)
    assert path.read_text(encoding="utf-8") == render(page("again"))
    assert list(path.parent.iterdir()) == [path]
