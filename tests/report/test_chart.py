import itertools
import re
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

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
from jumar.report.content import Chart, Curve, Point


def curve(values: Sequence[float | None], group: int = 0, **changes: str) -> Curve:
    points = [Point(float(x), y) for x, y in enumerate(values)]
    return Curve(label=f"run {group}", group=group, points=points, **changes)


def drawn(*curves: Curve, marked: bool = False) -> Drawing:
    chart = Chart(title="Loss", x_label="epoch", curves=curves, marked=marked)
    drawing = draw(chart, points_per_curve=400, marks_per_curve=40)
    assert drawing is not None
    return drawing


def test_keys_are_letters_and_continue_after_z() -> None:
    keys = [key_letters(group) for group in range(800)]
    assert keys[:3] == ["A", "B", "C"]
    assert keys[25:28] == ["Z", "AA", "AB"]
    assert len(set(keys)) == 800


def test_first_24_groups_look_different() -> None:
    assert len({colour_and_dash(group) for group in range(24)}) == 24


def test_full_range_path_reaches_the_corners_of_the_plot() -> None:
    (line,) = drawn(curve([0.0, 10.0])).lines
    assert line.path == f"M{LEFT:.1f} {HEIGHT - BOTTOM:.1f}L{WIDTH - RIGHT:.1f} {TOP:.1f}"


def test_axis_starts_at_0_even_if_the_first_evaluation_is_later() -> None:
    chart = Chart(
        title="top1",
        x_label="epoch",
        curves=[Curve(label="run", group=0, points=[Point(9.0, 1.0), Point(10.0, 2.0)])],
    )
    drawing = draw(chart, points_per_curve=400, marks_per_curve=40)
    assert drawing is not None
    assert [tick.text for tick in drawing.x_ticks] == ["0", "2", "4", "6", "8", "10"]


def test_non_finite_value_breaks_the_line_and_is_marked_with_a_cross() -> None:
    drawing = drawn(curve([1.0, 2.0, None, 3.0, float("inf"), 4.0]))
    (line,) = drawing.lines
    assert re.sub(r"[\d. ]", "", line.path) == "MLMM"
    assert [cross.text for cross in line.crosses] == [
        "run 0: not a finite number at 2",
        "run 0: not a finite number at 4",
    ]
    assert drawing.has_crosses


def test_chart_without_finite_values_is_omitted() -> None:
    chart = Chart(title="Loss", x_label="epoch", curves=[curve([None, float("nan")])])
    assert draw(chart, points_per_curve=400, marks_per_curve=40) is None


def test_aborted_curve_ends_in_a_cross_with_the_reason() -> None:
    (line,) = drawn(curve([3.0, 2.0], ended="failed at step 40")).lines
    assert line.crosses[-1].text == "run 0: failed at step 40"


def test_coinciding_curves_are_one_with_both_keys() -> None:
    drawing = drawn(curve([1.0, 2.0], 0), curve([1.0, 2.0], 1), curve([1.0, 3.0], 2))
    assert [(line.key, line.label) for line in drawing.lines] == [
        ("AB", "A, B alike"),
        ("C", "run 2"),
    ]
    drawing = drawn(curve([1.0, 2.0], 0), curve([1.0, 2.0], 1))
    assert [(line.key, line.label) for line in drawing.lines] == [("all", "all 2 alike")]


def test_repeats_share_colour_and_key_and_only_the_first_is_labelled() -> None:
    drawing = drawn(curve([1.0, 2.0], 1), curve([1.0, 2.5], 1))
    assert [line.key for line in drawing.lines] == ["B", ""]
    assert [line.is_repeat for line in drawing.lines] == [False, True]
    assert drawing.lines[0].colour == drawing.lines[1].colour


@pytest.mark.parametrize("count", [2, 5, 12])
def test_keys_at_equal_heights_are_spread_and_stay_on_the_chart(count: int) -> None:
    drawing = drawn(*(curve([1.0, 2.0 + group / 1e6], group) for group in range(count)))
    heights = sorted(line.key_y for line in drawing.lines)
    gaps = [after - before for before, after in itertools.pairwise(heights)]
    assert min(gaps) >= 13.9
    assert heights[0] > 0
    assert heights[-1] <= HEIGHT


def test_single_point_is_drawn_as_a_dot() -> None:
    assert drawn(curve([1.0])).lines[0].dotted
    assert not drawn(curve([1.0, 2.0])).lines[0].dotted
    assert drawn(curve([1.0, 2.0]), marked=True).lines[0].dotted


def test_description_describes_the_curves_in_words() -> None:
    assert drawn(curve([3.0, 1.0, 2.0])).description == "Loss over epoch. run 0: from 3 to 2."
    assert drawn(curve([3.0, 1.0, 2.0])).lines[0].summary == ("3", "1", "3", "2")


@given(st.lists(st.lists(st.none() | st.floats(), min_size=1, max_size=30), min_size=1, max_size=5))
def test_any_values_stay_within_the_frame(
    curves: list[list[float | None]],
) -> None:
    chart = Chart(
        title="Loss",
        x_label="epoch",
        curves=[curve(values, group) for group, values in enumerate(curves)],
    )
    drawing = draw(chart, points_per_curve=20, marks_per_curve=5)
    for line in drawing.lines if drawing else ():
        numbers = [float(text) for text in re.findall(r"-?[\d.]+", line.path)]
        assert all(LEFT - 0.1 <= x <= WIDTH - RIGHT + 0.1 for x in numbers[::2])
        assert all(TOP - 0.1 <= y <= HEIGHT - BOTTOM + 0.1 for y in numbers[1::2])
