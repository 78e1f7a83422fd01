"""The page of runs in a real browser: zooming, smoothing, switching, filtering, sorting."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from jumar.report.content import Chart, Curve, Page, PageTable, Point
from jumar.report.page import save_page
from tests.profiling.page.browser import Tab, browser

pytestmark = pytest.mark.slow

HOSTILE = "</script><script>window.owned=1</script><img src=x onerror=window.owned=2>"
SVG = "document.querySelector('svg[data-chart]')"


@pytest.fixture(scope="module")
def tab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tab]:
    with browser(tmp_path_factory.mktemp("browser")) as opened:
        yield opened


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three runs: two that learn, noisily, and a hostile one that breaks off."""
    labels = ("first", "second", HOSTILE)
    curves = [
        Curve(
            label=label,
            group=group,
            points=[
                Point(x, (group + 1) * 100 / (1 + x) + (5 if x % 2 else 0) if x != 33 else None)
                for x in range(100 - 20 * group)
            ],
            ended="killed" if group == 2 else "",
        )
        for group, label in enumerate(labels)
    ]
    table = PageTable(
        title="Runs",
        header=("run", "rate", "loss"),
        rows=[("first", "0.1", "1.5"), ("second", "0.01", "N/A"), (HOSTILE, "1e-3", "1,024")],
        numeric=(1, 2),
        groups=(0, 1, 2),
        searchable=True,
    )
    charts = [
        Chart(title="Loss", x_label="step", curves=curves),
        Chart(title="Score", x_label="step", curves=curves, marked=True),
    ]
    page = Page(title=HOSTILE, tables=(table,), charts=charts, commands=("jumar train " * 20,))
    return save_page(page, tmp_path_factory.mktemp("page") / "report.html")


@pytest.fixture
def opened(tab: Tab, written: Path) -> Iterator[Tab]:
    tab.window(1280)
    tab.requests.clear()
    tab.complaints.clear()
    tab.open(written)
    yield tab
    assert tab.requests == [written.as_uri()]
    assert tab.complaints == []
    assert tab.value("typeof window.owned") == "undefined"


def _labels(tab: Tab, anchor: str, chart: int = 0) -> list[str]:
    """The labels of the horizontal (`middle`) or the vertical (`end`) axis of a chart."""
    return tab.value(
        f"Array.from(document.querySelectorAll('svg[data-chart]')[{chart}]"
        f".querySelectorAll('.drawn text[text-anchor={anchor}]'), (one) => one.textContent)"
    )


def _box(tab: Tab) -> dict[str, float]:
    return tab.value(
        f"(() => {{ const svg = {SVG}; svg.scrollIntoView({{block: 'center'}}); svg.focus();"
        " const r = svg.getBoundingClientRect();"
        " return {x: r.x, y: r.y, width: r.width, height: r.height}; })()"
    )


def _drag(tab: Tab, start: float, end: float) -> None:
    box = _box(tab)
    y = box["y"] + box["height"] / 2
    at = [box["x"] + box["width"] * share for share in (start, (start + end) / 2, end)]
    tab.mouse("mousePressed", at[0], y, button="left", clickCount=1)
    for x in at[1:]:
        tab.mouse("mouseMoved", x, y, button="left", buttons=1)
    tab.mouse("mouseReleased", at[2], y, button="left", clickCount=1)
    tab.settle()


def _paths(tab: Tab) -> list[str]:
    return tab.value(f"Array.from({SVG}.querySelectorAll('.line'), (one) => one.getAttribute('d'))")


def _input(tab: Tab, element: str, value: str) -> None:
    tab.value(
        f"(() => {{ const one = document.querySelector('{element}'); one.value = '{value}';"
        " one.dispatchEvent(new Event('input', {bubbles: true})); })()"
    )


def test_dragging_zooms_all_charts_and_a_double_click_resets(opened: Tab) -> None:
    whole = _labels(opened, "middle")
    _drag(opened, 0.4, 0.5)
    zoomed = [float(text) for text in _labels(opened, "middle")]
    assert len(zoomed) > 2
    assert 20 < min(zoomed) < max(zoomed) < 60
    assert _labels(opened, "middle", chart=1) == _labels(opened, "middle")
    _drag(opened, 0.4, 0.405)  # a click that trembled
    assert [float(text) for text in _labels(opened, "middle")] == zoomed
    box = _box(opened)
    for count in (1, 2):
        for what in ("mousePressed", "mouseReleased"):
            opened.mouse(what, box["x"] + 200, box["y"] + 90, button="left", clickCount=count)
    opened.settle()
    assert _labels(opened, "middle") == whole


def test_keys_zoom_pan_and_reset_and_labels_never_repeat(opened: Tab) -> None:
    _box(opened)
    whole = _labels(opened, "middle")
    for _ in range(12):
        opened.press("+")
        for anchor in ("middle", "end"):
            texts = _labels(opened, anchor)
            assert len(set(texts)) == len(texts)
    before = _labels(opened, "middle")
    opened.press("ArrowRight")
    assert _labels(opened, "middle") != before
    opened.press("0")
    assert _labels(opened, "middle") == whole
    opened.press("-", "ArrowLeft")
    assert _labels(opened, "middle") == whole


def test_smoothing_leaves_measured_points_alone(opened: Tab) -> None:
    before = _paths(opened)
    measured = opened.value("document.querySelectorAll('svg[data-chart]')[1].innerHTML")
    _input(opened, "#smoothing", "0.9")
    assert _paths(opened) != before
    assert opened.value("document.querySelectorAll('svg[data-chart]')[1].innerHTML") == measured
    _input(opened, "#smoothing", "0")
    assert _paths(opened) == before


def test_clicking_a_legend_toggles_its_curve_in_all_charts(opened: Tab) -> None:
    assert len(_paths(opened)) == 3
    opened.value("document.querySelectorAll('.legend button')[1].click()")
    assert len(_paths(opened)) == 2
    pressed = "Array.from(document.querySelectorAll('.legend button[aria-pressed=false]')).length"
    assert opened.value(pressed) == 2
    opened.value("document.getElementById('all').click()")
    assert len(_paths(opened)) == 3


@pytest.mark.parametrize(
    ("text", "runs"),
    [("SEC", ["second"]), ("rate<0.05 first", []), ("loss>1", 2), ("rate=0.1", ["first"])],
)
def test_filter_keeps_matching_rows_and_their_curves(
    opened: Tab, text: str, runs: list[str] | int
) -> None:
    _input(opened, "[data-for-table] input", text)
    shown = opened.value(
        "Array.from(document.querySelectorAll('table[data-searchable] tbody tr:not([hidden])'),"
        " (row) => row.cells[1].textContent)"
    )
    count = runs if isinstance(runs, int) else len(runs)
    assert len(shown) == count
    assert isinstance(runs, int) or shown == runs
    assert len(_paths(opened)) == count
    assert opened.value("document.querySelector('[role=status]').textContent") == (
        f"{count} of 3 rows"
    )


def test_headers_sort_numerically_with_missing_values_last(opened: Tab) -> None:
    head = "document.querySelectorAll('table[data-searchable] th button')"
    cells = "Array.from(document.querySelectorAll('table[data-searchable] tbody tr'),"
    opened.value(f"{head}[2].click()")
    assert opened.value(f"{cells} (row) => row.cells[3].textContent)") == ["1,024", "1.5", "N/A"]
    opened.value(f"{head}[2].click()")
    assert opened.value(f"{cells} (row) => row.cells[3].textContent)") == ["1.5", "1,024", "N/A"]
    opened.value(f"{head}[1].click()")
    assert opened.value(f"{cells} (row) => row.cells[2].textContent)") == ["0.1", "0.01", "1e-3"]


@pytest.mark.parametrize(("width", "dark"), [(360, False), (360, True), (1280, True)])
def test_nothing_overflows_on_narrow_and_dark_screens(opened: Tab, width: int, dark: bool) -> None:
    opened.window(width, dark=dark)
    assert opened.value("document.documentElement.scrollWidth") <= width
    light = opened.value("getComputedStyle(document.body).backgroundColor")
    assert light == ("rgb(20, 23, 27)" if dark else "rgb(255, 255, 255)")
