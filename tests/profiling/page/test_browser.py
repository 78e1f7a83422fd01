"""The page in a real browser: keys, mouse, filters, sorting, and names that want to run."""

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from jumar.profiling.comparison import compare
from jumar.profiling.page import page
from jumar.profiling.profile import HOST_SCHEMA, Missing, Profile
from tests.profiling.generated import frame, training
from tests.profiling.page.browser import Tab, browser

pytestmark = pytest.mark.slow

_HOSTILE = (
    "</script><script>window.owned=1</script>",
    "</style></title><img src=http://evil.invalid/x.png onerror=window.owned=2>",
    "' onmouseover='window.owned=3' \" onfocus=\"window.owned=4\" autofocus x=`y`",
    "\u202egnp.exe\u2066 \u200f עברית \x00\x1b[31m\u2028\ufeff",
    "javascript:window.owned=5//${window.owned=6}{{7*7}}<!--<script>",
    "A" * 20_000,
)


@pytest.fixture(scope="module")
def tab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tab]:
    with browser(tmp_path_factory.mktemp("browser")) as found:
        yield found


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A comparison of two runs, the second of which waits, casts and uses two ranks."""
    after = training(steps=8, casts=3, format_changes=2, ranks=2, loader_ns=4_000_000)
    path = tmp_path_factory.mktemp("page") / "page.html"
    text = page(after, comparison=compare(training(steps=8), after))
    path.write_text(text, encoding="utf-8")
    return path


@pytest.fixture
def opened(tab: Tab, written: Path) -> Iterator[Tab]:
    tab.window(1280)
    tab.requests.clear()
    tab.complaints.clear()
    tab.open(written)
    yield tab
    assert tab.requests == [written.as_uri()]
    assert tab.complaints == []


def _shown(tab: Tab) -> tuple[float, float]:
    """From when to when the timeline shows, in milliseconds."""
    text = tab.value("document.getElementById('range').textContent")
    units = {"ns": 1e-6, "µs": 1e-3, "ms": 1.0, "s": 1e3}
    found = re.findall(r"(-?[\d.]+) (ns|µs|ms|s)\b", text)
    (low, one), (high, other) = found[:2]
    return float(low) * units[one], float(high) * units[other]


def _focus(tab: Tab) -> dict[str, float]:
    """Scroll the canvas into view, focus it, and return its position."""
    return tab.value(
        "(() => { const c = document.getElementById('canvas'); c.scrollIntoView({block: 'center'});"
        " c.focus(); const r = c.getBoundingClientRect();"
        " return {x: r.x, y: r.y, width: r.width, height: r.height}; })()"
    )


def _rows(tab: Tab, table: str = "#ops") -> list[list[str]]:
    return tab.value(
        f"Array.from(document.querySelector('{table}').tBodies[0].rows,"
        " (row) => Array.from(row.cells, (cell) => cell.textContent))"
    )


def _input(tab: Tab, element: str, **values: Any) -> None:
    (name, value), *_ = values.items()
    written = "true" if value is True else "false" if value is False else f"{value!r}"
    tab.value(
        f"(() => {{ const e = document.querySelector('{element}'); e.{name} = {written};"
        " e.dispatchEvent(new Event('input', {bubbles: true}));"
        " e.dispatchEvent(new Event('change', {bubbles: true})); })()"
    )
    tab.settle()


def test_keyboard_zooms_pans_and_steps_through_ops(opened: Tab) -> None:
    _focus(opened)
    whole = _shown(opened)
    opened.press("+", "+")
    low, high = _shown(opened)
    assert high - low == pytest.approx((whole[1] - whole[0]) / 4, rel=0.01)
    opened.press("ArrowRight")
    moved = _shown(opened)
    assert moved[0] - low == pytest.approx((high - low) / 4, rel=0.01)
    opened.press("ArrowLeft", "-")
    assert _shown(opened)[1] - _shown(opened)[0] == pytest.approx(2 * (high - low), rel=0.01)
    opened.press("0")
    assert _shown(opened) == pytest.approx(whole)

    said = "document.getElementById('picked').textContent"
    opened.press("ArrowDown", "n")
    first = opened.value(said)
    assert "2048" in first or "hcom" in first
    opened.press("n")
    second = opened.value(said)
    assert second != first
    opened.press(*"++++++")
    low, high = _shown(opened)
    found = re.search(r"from ([\d.]+) ms to ([\d.]+) ms", second)
    assert found
    start, end = map(float, found.groups())
    assert low <= (start + end) / 2 <= high
    opened.press("0")
    opened.press("p")
    assert opened.value(said) == first


def test_drawing_works_at_full_zoom_and_zooming_out_stops_at_everything(
    opened: Tab,
) -> None:
    _focus(opened)
    opened.press(*"++++++++++++++++++++++++++++++++++++++++")
    low, high = _shown(opened)
    assert 0 < high - low <= 1e-3
    opened.press(*"----------------------------------------------")
    low, high = _shown(opened)
    opened.press("0")
    all_of_it = _shown(opened)
    assert high - low <= 1.03 * (all_of_it[1] - all_of_it[0])


def test_mouse_drags_zooms_and_selects(opened: Tab) -> None:
    box = _focus(opened)
    y = box["y"] + 34
    middle = box["x"] + box["width"] / 2
    opened.mouse("mouseWheel", middle, y, deltaX=0, deltaY=-500, modifiers=2)
    opened.settle()
    low, high = _shown(opened)
    opened.press("0")
    assert high - low < 0.5 * (_shown(opened)[1] - _shown(opened)[0])
    opened.press("+", "+")
    low, high = _shown(opened)
    opened.mouse("mousePressed", middle, y, button="left", clickCount=1)
    for far in (-20, -60, -100):
        opened.mouse("mouseMoved", middle + far, y, button="left", buttons=1)
    opened.mouse("mouseReleased", middle - 100, y, button="left", clickCount=1)
    opened.settle()
    assert _shown(opened)[0] > low
    assert _shown(opened)[1] - _shown(opened)[0] == pytest.approx(high - low, rel=0.01)
    opened.press("0")
    before = opened.value("document.getElementById('picked').textContent")
    for far in range(0, 60, 6):
        opened.click(middle + far, y)
    assert opened.value("document.getElementById('picked').textContent") != before


def test_selecting_a_step_shows_it_and_buttons_work_like_keys(opened: Tab) -> None:
    _focus(opened)
    whole = _shown(opened)
    _input(opened, "#step", value="3")
    low, high = _shown(opened)
    assert high - low < (whole[1] - whole[0]) / 4
    opened.value("document.querySelector('button[data-do=out]').click()")
    opened.settle()
    assert _shown(opened)[1] - _shown(opened)[0] > 1.5 * (high - low)
    _input(opened, "#step", value="")
    assert _shown(opened) == pytest.approx(whole)


def test_filters_keep_matches_and_show_their_total(opened: Tab) -> None:
    every = _rows(opened)
    _input(opened, "#text", value="cast")
    assert [row[6] for row in _rows(opened)] == ["Cast"]
    assert opened.value("document.getElementById('shown').textContent").startswith("1 of 1 groups")
    _input(opened, "#text", value="")
    _input(opened, "#kind", value="format")
    assert {row[6] for row in _rows(opened)} == {"TransData"}
    _input(opened, "#kind", value="")
    _input(opened, "#core", value="AI_CORE")
    assert {row[7] for row in _rows(opened)} == {"AI_CORE"}
    _input(opened, "#core", value="")
    assert _rows(opened) == every
    _input(opened, "#by input[value=module]", checked=True)
    by_module = _rows(opened)
    assert len(by_module) > len(every)
    _input(opened, "#by input[value=module]", checked=False)
    share = sum(float(row[1]) for row in by_module)
    assert share == pytest.approx(100, abs=0.1)


def test_headers_sort_by_value_both_ways_also_from_the_keyboard(opened: Tab) -> None:
    opened.value("document.querySelector('#ops button[data-sort=count]').focus()")
    opened.press("Enter")
    counts = [int(row[2]) for row in _rows(opened)]
    assert counts == sorted(counts, reverse=True)
    opened.press("Enter")
    counts = [int(row[2]) for row in _rows(opened)]
    assert counts == sorted(counts)
    opened.value("document.querySelector('table[data-sortable] th:last-child button').click()")
    changes = [float(row[-1]) for row in _rows(opened, "table[data-sortable]")]
    assert changes == sorted(changes, reverse=True)
    assert len(changes) > 1


def test_comparison_is_on_the_page_with_its_total(opened: Tab) -> None:
    text = opened.value("document.body.innerText")
    assert "The parts add up exactly to the difference" in text
    assert "casts" in text
    assert "Cast FLOAT to FLOAT16" in text


@pytest.mark.parametrize("width", [360, 820, 1280])
@pytest.mark.parametrize("dark", [False, True])
def test_nothing_overflows_or_is_unreadable(opened: Tab, width: int, dark: bool) -> None:
    opened.window(width, dark=dark)
    assert opened.value("document.documentElement.scrollWidth") <= width
    # Text of h1 on the page's background: the contrast that WCAG asks for.
    assert (
        opened.value(
            """(() => {
          const light = (colour) => colour.match(/[\\d.]+/g).slice(0, 3).map((part) => part / 255)
            .map((part) => part <= 0.03928 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4)
            .reduce((sum, part, at) => sum + part * [0.2126, 0.7152, 0.0722][at], 0);
          const back = light(getComputedStyle(document.body).backgroundColor);
          return Math.min(...['h1', 'h2', '.faint', 'th', 'td', 'footer', '.note'].map((name) => {
            const text = light(getComputedStyle(document.querySelector(name)).color);
            return (Math.max(text, back) + 0.05) / (Math.min(text, back) + 0.05);
          }));
        })()"""
        )
        >= 4.5
    )
    # No two labels of bars overlap.
    assert opened.value(
        """Array.from(document.querySelectorAll('.bars')).every((bars) => {
          const boxes = Array.from(bars.children, (one) => one.getBoundingClientRect());
          return boxes.every((a, i) => a.width >= 20 && boxes.every((b, j) => i >= j ||
            a.right <= b.left + 0.5 || b.right <= a.left + 0.5 ||
            a.bottom <= b.top + 0.5 || b.bottom <= a.top + 0.5));
        })"""
    )


def _with_host() -> Profile:
    """Two steps, each op launched by a call within two others, and memory that grows."""
    profile = training(steps=2, loader_ns=4_000_000)
    ahead = 50_000
    launches = [start - ahead for start in profile.ops["start_ns"]]
    begin, last = launches[0] - 10_000, launches[-1] + 60_000
    blank = {"rank": 0, "thread": "7", "correlation": None}
    calls = [
        {
            "layer": "python",
            "name": "train.py(12): main",
            "start_ns": begin,
            "duration_ns": last - begin,
        },
        {
            "layer": "op",
            "name": "aten::backward",
            "start_ns": begin + 5,
            "duration_ns": last - begin - 10,
        },
        *(
            {"layer": "cann", "name": "launch_kernel", "start_ns": at, "duration_ns": 900}
            for at in launches
        ),
    ]
    memory = {
        "timestamp_ns": [profile.ops["start_ns"][0], profile.ops["start_ns"][9]],
        "total_allocated_bytes": [2**20, 3 * 2**20],
        "total_reserved_bytes": [4 * 2**20, 4 * 2**20],
    }
    return replace(
        profile,
        ops=profile.ops.with_columns(pl.Series("launch_ns", launches)),
        host=pl.concat([profile.host, frame([blank | call for call in calls], HOST_SCHEMA)]),
        statistics={"memory_record": pl.DataFrame(memory)},
    )


@pytest.fixture(scope="module")
def with_host(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("page") / "host.html"
    path.write_text(page(_with_host()), encoding="utf-8")
    return path


@pytest.fixture
def hosted(tab: Tab, with_host: Path) -> Iterator[Tab]:
    tab.window(1280)
    tab.complaints.clear()
    tab.open(with_host)
    yield tab
    assert tab.complaints == []


def _text(tab: Tab, element: str) -> str:
    return tab.value(f"document.querySelector('{element}').innerText")


def test_range_selected_with_the_mouse_has_consistent_figures(hosted: Tab) -> None:
    box = _focus(hosted)
    y, left, right = box["y"] + 34, box["x"] + 0.4 * box["width"], box["x"] + 0.7 * box["width"]
    shift = 8
    hosted.mouse("mousePressed", left, y, button="left", clickCount=1, modifiers=shift)
    for x in (left + 20, right - 20, right):
        hosted.mouse("mouseMoved", x, y, button="left", buttons=1, modifiers=shift)
    hosted.mouse("mouseReleased", right, y, button="left", clickCount=1, modifiers=shift)
    hosted.settle()
    lanes, types = _rows(hosted, "#marked-lanes"), _rows(hosted, "#marked-types")
    assert [row[0] for row in lanes] == ["stream 2", "no op runs in any lane"]
    assert sum(float(row[3]) for row in lanes) == pytest.approx(100, abs=0.2)
    assert {row[0] for row in types} == {"MatMulV2", "Add"}
    assert sum(int(row[1]) for row in types) == int(lanes[0][1])
    assert sum(float(row[2]) for row in types) == pytest.approx(float(lanes[0][2]), abs=0.002)
    hosted.press("Escape")
    assert hosted.value("document.getElementById('marked').hidden")


def test_marking_an_op_selects_only_its_range(hosted: Tab) -> None:
    _focus(hosted)
    hosted.press("n", "m")
    assert "Marked: 1.600 ms" in _text(hosted, "#marked-text")
    assert _rows(hosted, "#marked-types") == [["MatMulV2", "1", "1.600", "100.0"]]
    assert _rows(hosted, "#marked-lanes")[-1] == ["no op runs in any lane", "", "0.000", "0.0"]


def test_to_do_line_steps_through_its_moments(hosted: Tab) -> None:
    button = ".todo li button"
    hosted.value(f"document.querySelector('{button}').click()")
    hosted.settle()
    assert "Marked: 4.000 ms" in _text(hosted, "#marked-text")
    first = _shown(hosted)
    assert _text(hosted, button) == "Interval 1 of the 2 longest; 2 in total"
    hosted.value(f"document.querySelector('{button}').click()")
    hosted.settle()
    # The second stall begins after 14 ms; as much as twice its length is shown around it.
    assert _shown(hosted) == pytest.approx((14 - 8, 14 + 4 + 8), abs=0.1)
    hosted.value(f"document.querySelector('{button}').click()")
    hosted.settle()
    assert _shown(hosted) == pytest.approx(first, abs=0.1)


def test_search_counts_highlights_and_steps_through_ops_and_host_calls(hosted: Tab) -> None:
    _focus(hosted)
    hosted.press("/")
    assert hosted.value("document.activeElement.id") == "find"
    _input(hosted, "#find", value="add")
    assert _text(hosted, "#matches") == "8 ops, 4.000 ms, 0 host calls"
    hosted.press("Enter")
    first = _text(hosted, "#picked")
    assert first.startswith("Add · AI_VECTOR_CORE · 500.000 µs")
    assert "launched 50.000 µs before its start" in first
    hosted.press("Enter")
    assert _text(hosted, "#picked").startswith("Add")
    assert _text(hosted, "#picked") != first
    _input(hosted, "#find", value="launch_kernel")
    assert _text(hosted, "#matches") == "0 ops, 0.000 ms, 18 host calls"
    hosted.press("Enter")
    assert _text(hosted, "#picked").startswith("launch_kernel · cann · 900 ns")
    _input(hosted, "#find", value="nothing like it")
    before = _text(hosted, "#picked")
    hosted.press("Enter")
    assert _text(hosted, "#picked") == before
    hosted.press("Escape")
    assert _text(hosted, "#matches") == ""


def test_host_calls_are_drawn_below_the_ops_and_can_be_hidden(hosted: Tab) -> None:
    box = _focus(hosted)
    # One lane of ops, those of the loader's and the launching thread, and the memory.
    assert box["height"] == pytest.approx(22 + 26 + 17 * (1 + 3) + 4 + 54, abs=1)
    hosted.click(box["x"] + box["width"] / 2, box["y"] + 22 + 26 + 8)
    assert "train.py(12): main · python" in _text(hosted, "#picked")
    hosted.value("document.getElementById('host').click()")
    hosted.settle()
    assert _focus(hosted)["height"] == pytest.approx(22 + 26 + 4 + 54, abs=1)


def test_flame_graph_opens_a_layer_and_shows_callers(hosted: Tab) -> None:
    bars = "Array.from(document.querySelectorAll('#flame button'), (one) => one.title)"
    first = hosted.value(bars)
    assert first[0] == "all ops · 20.000 ms"
    assert "MatMulV2 · 3.200 ms" in first
    hosted.value("document.querySelectorAll('#flame button')[2].click()")
    opened = hosted.value(bars)
    assert opened == [*first[:3], "MatMulV2 · 3.200 ms", "Add · 1.000 ms"]
    assert opened[2] == "0 · 4.200 ms"
    width = "document.querySelectorAll('#flame button')[2].getBoundingClientRect().width"
    assert hosted.value(f"{width} / document.getElementById('flame').clientWidth") > 0.99
    hosted.value("document.querySelector('#flame button').click()")
    assert hosted.value(bars) == first
    _input(hosted, "#tree", value="host")
    callers = [title.split(" · ")[0] for title in hosted.value(bars)]
    assert callers[:2] == ["all threads", "host thread 7"]
    assert callers[2:4] == ["train.py(12): main", "aten::backward"]
    hosted.value("document.querySelectorAll('#flame button')[2].focus()")
    assert "train.py(12): main" in _text(hosted, "#flame-text")


def _hostile(text: str) -> Profile:
    profile = training(steps=2, casts=1)
    names = ("name", "type", "module", "input_shapes", "input_types", "output_types", "core")
    told = [*names, "stream", "input_formats", "output_formats"]
    host = profile.ops.select("rank", "start_ns", "duration_ns")
    host = host.with_columns(pl.lit(text).alias(name) for name in ("thread", "layer", "name"))
    return replace(
        profile,
        ops=profile.ops.with_columns(pl.lit(text).alias(name) for name in told),
        host=host.with_columns(correlation=pl.lit(None, pl.Int64)).select(list(HOST_SCHEMA)),
        source=text,
        producer=text,
        chip=text,
        missing=(Missing(file=text, what=text, needed_for=(text,)),),
    )


@pytest.mark.parametrize("text", _HOSTILE, ids=["script", "img", "quotes", "rtl", "code", "long"])
def test_hostile_profile_runs_no_script_and_makes_no_requests(
    tab: Tab, tmp_path: Path, text: str
) -> None:
    tab.window(1280)
    after = _hostile(text)
    path = tmp_path / "page.html"
    compared = compare(_hostile(text + "2"), after)
    path.write_text(page(after, comparison=compared), encoding="utf-8")
    tab.requests.clear()
    tab.complaints.clear()
    tab.open(path)
    _focus(tab)
    tab.press("+", "n", "n", "0")
    _input(tab, "#text", value=text[:50].replace("\x00", ""))
    tab.settle()
    assert tab.value("typeof window.owned") == "undefined"
    assert tab.value("document.title").startswith("Profile of ")
    assert tab.value("document.images.length + document.scripts.length") == 2
    assert tab.requests == [path.as_uri()]
    assert tab.complaints == []
    assert tab.value("document.documentElement.scrollWidth") <= 1280


def test_injected_script_would_not_run(tab: Tab, tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    evil = "<script>window.owned=1</script><img src='http://evil.invalid/x' onerror='owned=2'>"
    text = page(training(steps=2)).replace("</main>", f"{evil}</main>")
    path.write_text(text, encoding="utf-8")
    tab.open(path)
    assert tab.value("typeof window.owned") == "undefined"
    tab.complaints.clear()
