"""The geometry of a chart: paths, ticks, key letters. The template turns it into SVG.

Coordinates are in a view box as wide as a phone at normal text size, so that text stays readable
when a browser shrinks the drawing, and is not huge when it enlarges it.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from jumar.report.content import Chart, Curve, Point
from jumar.report.numbers import Axis, axis_for, tick_text, tick_texts
from jumar.report.thinning import evenly, thinned

WIDTH, HEIGHT = 480.0, 290.0
LEFT, RIGHT, TOP, BOTTOM = 58.0, 34.0, 12.0, 42.0
COLOURS, DASHES = 6, 4

_LETTER_HEIGHT = 14.0
_MAX_DRAWN = 1e30
"""Larger values are practically infinite, and would flatten all other values into one line."""


@dataclass(frozen=True, kw_only=True)
class Mark:
    """A position with text shown on hover: a dot, an invisible target, or a cross."""

    x: float
    y: float
    text: str


@dataclass(frozen=True, kw_only=True)
class Line:
    """A drawn curve."""

    key: str
    label: str
    colour: int
    dash: int
    is_repeat: bool
    dotted: bool
    """Whether points are shown as dots, because each was measured or there is only one."""
    path: str
    marks: Sequence[Mark]
    crosses: Sequence[Mark]
    key_x: float
    key_y: float
    summary: Sequence[str]
    """First, lowest, highest and last value, as strings."""
    groups: Sequence[int]
    """The groups of the curve; several if their curves coincide."""
    points: Sequence[Point]
    """The points drawn, for the page's script."""
    ended: str


@dataclass(frozen=True, kw_only=True)
class Tick:
    """The position and the text of a tick."""

    position: float
    text: str


@dataclass(frozen=True, kw_only=True)
class Drawing:
    """A chart ready for the template."""

    title: str
    x_label: str
    description: str
    logarithmic: bool
    x_ticks: Sequence[Tick]
    y_ticks: Sequence[Tick]
    lines: Sequence[Line]
    has_crosses: bool


def key_letters(group: int) -> str:
    """A, B, ... Z, AA, AB, ...: the key that links a line, its legend and its table row."""
    letters = ""
    number = group + 1
    while number:
        number, rest = divmod(number - 1, 26)
        letters = chr(ord("A") + rest) + letters
    return letters


def colour_and_dash(group: int) -> tuple[int, int]:
    """Colour and dash pattern of a group; unique for the first 24 groups."""
    return group % COLOURS, (group + group // (COLOURS * DASHES // 2)) % DASHES


def draw(chart: Chart, *, points_per_curve: int, marks_per_curve: int) -> Drawing | None:
    """The drawing of a chart, or None if it has no finite value.

    Args:
        chart: The chart to draw.
        points_per_curve: Longer curves are thinned to this many points, keeping the extremes.
        marks_per_curve: Maximum number of points with hover text.
    """
    curves = _merged(
        [replace(curve, points=_drawable(curve.points)) for curve in chart.curves if curve.points]
    )
    values = [point.y for curve, _, _ in curves for point in curve.points if point.y is not None]
    if not values:
        return None
    y_axis = axis_for(values, may_be_logarithmic=True)
    # Start at 0, so that all charts of a page share an axis although evaluations start later.
    x_values = [point.x for curve, _, _ in curves for point in curve.points]
    if not chart.logarithmic_x:
        x_values.append(0.0)
    x_axis = axis_for(x_values, may_be_logarithmic=chart.logarithmic_x)
    lines: list[Line] = []
    keyed_groups: set[int] = set()
    for curve, key, groups in curves:
        plot = _Plot(x_axis, y_axis, curve, groups)
        lines.append(
            plot.line(
                key="" if curve.group in keyed_groups else key,
                marked=chart.marked,
                points_per_curve=points_per_curve,
                marks_per_curve=marks_per_curve,
            )
        )
        keyed_groups.add(curve.group)
    return Drawing(
        title=chart.title,
        x_label=chart.x_label,
        description=_description(chart, lines),
        logarithmic=y_axis.logarithmic,
        x_ticks=_ticks(x_axis, _across),
        y_ticks=_ticks(y_axis, _down),
        lines=_with_letters_apart(lines),
        has_crosses=any(line.crosses for line in lines),
    )


class _Plot(NamedTuple):
    """One curve on its axes."""

    x_axis: Axis
    y_axis: Axis
    curve: Curve
    groups: Sequence[int]

    def line(self, *, key: str, marked: bool, points_per_curve: int, marks_per_curve: int) -> Line:
        curve = self.curve
        points = thinned(curve.points, points_per_curve)
        finite = [(point.x, point.y) for point in points if point.y is not None]
        colour, dash = colour_and_dash(curve.group)
        end_x, end_y = self.position(*finite[-1]) if finite else (LEFT, HEIGHT - BOTTOM)
        return Line(
            key=key,
            label=curve.label,
            colour=colour,
            dash=dash,
            is_repeat=not key,
            dotted=marked or len(finite) == 1,
            path=self.path(points),
            marks=[self.mark(*finite[index]) for index in evenly(len(finite), marks_per_curve)],
            crosses=self.crosses(points, marks_per_curve),
            key_x=end_x + 5,
            key_y=end_y + 4,
            groups=self.groups,
            points=points,
            ended=curve.ended,
            summary=_summary([point.y for point in curve.points if point.y is not None]),
        )

    def position(self, x: float, y: float) -> tuple[float, float]:
        return _across(self.x_axis, x), _down(self.y_axis, y)

    def path(self, points: Iterable[Point]) -> str:
        """SVG moves and lines, interrupted at values that are not finite."""
        parts: list[str] = []
        pen = "M"
        for point in points:
            if point.y is None:
                pen = "M"
                continue
            x, y = self.position(point.x, point.y)
            parts.append(f"{pen}{x:.1f} {y:.1f}")
            pen = "L"
        return "".join(parts)

    def mark(self, x: float, y: float) -> Mark:
        across, down = self.position(x, y)
        text = f"{self.curve.label}: {tick_text(y)} at {tick_text(x)}"
        return Mark(x=round(across, 1), y=round(down, 1), text=text)

    def crosses(self, points: Sequence[Point], max_gaps: int) -> list[Mark]:
        """Crosses for non-finite values (at the upper edge) and where the curve ended early."""
        curve = self.curve
        gaps = [point.x for point in points if point.y is None]
        crosses = [
            Mark(
                x=round(_across(self.x_axis, gaps[index]), 1),
                y=TOP,
                text=f"{curve.label}: not a finite number at {tick_text(gaps[index])}",
            )
            for index in evenly(len(gaps), max_gaps)
        ]
        finite = [(point.x, point.y) for point in points if point.y is not None]
        if curve.ended and finite:
            x, y = self.position(*finite[-1])
            text = f"{curve.label}: {curve.ended}"
            crosses.append(Mark(x=round(x, 1), y=round(y, 1), text=text))
        return crosses


def _ticks(axis: Axis, position: Callable[[Axis, float], float]) -> list[Tick]:
    labelled = zip(axis.ticks, tick_texts(axis.ticks), strict=True)
    return [Tick(position=position(axis, value), text=text) for value, text in labelled]


def _across(axis: Axis, value: float) -> float:
    return LEFT + axis.share(value) * (WIDTH - LEFT - RIGHT)


def _down(axis: Axis, value: float) -> float:
    return HEIGHT - BOTTOM - axis.share(value) * (HEIGHT - TOP - BOTTOM)


def _drawable(points: Sequence[Point]) -> list[Point]:
    return [
        point if point.y is not None and abs(point.y) <= _MAX_DRAWN else Point(point.x, None)
        for point in points
    ]


def _merged(curves: Sequence[Curve]) -> list[tuple[Curve, str, Sequence[int]]]:
    """Curves with their key letters and groups; coinciding curves become one with all letters.

    Learning rates are the same in every run of most sweeps: drawn on top of each other, they would
    look as if only the last one existed.
    """
    by_points: dict[tuple[Point, ...], list[Curve]] = {}
    for curve in curves:
        by_points.setdefault(tuple(curve.points), []).append(curve)
    all_groups = {curve.group for curve in curves}
    result: list[tuple[Curve, str, Sequence[int]]] = []
    for coinciding in by_points.values():
        groups = sorted({curve.group for curve in coinciding})
        if len(groups) == 1:
            result.append((coinciding[0], key_letters(groups[0]), groups))
            continue
        letters = [key_letters(group) for group in groups]
        key = "all" if set(groups) == all_groups else "".join(letters)
        label = f"all {len(groups)} alike" if key == "all" else f"{', '.join(letters)} alike"
        end = next((curve.ended for curve in coinciding if curve.ended), "")
        result.append((replace(coinciding[0], label=label, ended=end), key, groups))
    return result


def _with_letters_apart(lines: Sequence[Line]) -> list[Line]:
    """The lines with their key letters moved up or down so that none overlap."""
    letter_positions: list[tuple[float, float]] = []
    letter_ys: dict[int, float] = {}
    order = sorted(
        (index for index, line in enumerate(lines) if line.key),
        key=lambda index: lines[index].key_y,
    )
    for index in order:
        x, y = lines[index].key_x, lines[index].key_y
        near_ys = [other_y for other_x, other_y in letter_positions if abs(other_x - x) < 24]
        if near_ys:
            y = max(y, max(near_ys) + _LETTER_HEIGHT)
        letter_positions.append((x, y))
        letter_ys[index] = y
    overflow = max([*letter_ys.values(), 0.0]) - (HEIGHT - BOTTOM)
    if overflow > 0:
        # Some letters are below the axis: lift from the bottom, each just above the one below it.
        limits: dict[int, float] = {}
        for index in reversed(order):
            x = lines[index].key_x
            limits_below = [limits[lower] for lower in limits if abs(lines[lower].key_x - x) < 24]
            bottom = min([*limits_below, HEIGHT - BOTTOM + _LETTER_HEIGHT]) - _LETTER_HEIGHT
            limits[index] = min(letter_ys[index], bottom)
        letter_ys.update(limits)
    return [
        replace(line, key_x=round(line.key_x, 1), key_y=round(letter_ys.get(index, line.key_y), 1))
        for index, line in enumerate(lines)
    ]


def _summary(values: Sequence[float]) -> tuple[str, ...]:
    if not values:
        return ("none",) * 4
    return tuple(map(tick_text, (values[0], min(values), max(values), values[-1])))


def _description(chart: Chart, lines: Sequence[Line]) -> str:
    """A description of the chart for readers who cannot see it."""
    descriptions = [
        f"{line.label}: from {line.summary[0]} to {line.summary[3]}"
        for line in lines
        if not line.is_repeat
    ]
    return f"{chart.title} over {chart.x_label}. " + "; ".join(descriptions) + "."
