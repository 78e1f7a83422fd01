"""Quadrilaterals of words: shrinks them, and converts them to EAST's rotated rectangles."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from jumar.data.polygons.drawing import smallest_rectangles

_SAME_AREA = 1e-9
"""Areas with a smaller relative difference are equal."""


class RotatedBox(NamedTuple):
    """A rotated rectangle, with positions along its rotated axes.

    Attributes:
        angle: Angle of the upper edge, positive if it rises to the right, in radians, more than
            -pi/4 and at most pi/4.
        left: Start along the upper edge.
        top: Start perpendicular to it.
        right: End along the upper edge.
        bottom: End perpendicular to it.
    """

    angle: float
    left: float
    top: float
    right: float
    bottom: float


def as_quadrilateral(corners: NDArray[Any]) -> NDArray[np.float64]:
    """Return four corners unchanged; for more or fewer, the smallest rectangle around them."""
    return np.asarray(
        corners if len(corners) == 4 else smallest_rectangles([corners])[0], np.float64
    )


def shrunk(corners: NDArray[Any], share: float = 0.3) -> NDArray[np.float64]:
    """Move the corners of a quadrilateral inwards along its edges (EAST's score map).

    Each corner moves along both of its edges by a fraction of the shorter one, first along the
    longer pair of opposite edges.

    Args:
        corners: [4, 2].
        share: Fraction of the shorter adjacent edge.
    """
    points = np.array(corners, np.float64)
    lengths = np.hypot(*(np.roll(points, -1, axis=0) - points).T)
    steps = share * np.minimum(lengths, np.roll(lengths, 1))
    longer = 0 if lengths[0] + lengths[2] > lengths[1] + lengths[3] else 1
    for start in (longer, longer + 2, 1 - longer, 3 - longer):
        corner, end = start, (start + 1) % 4
        edge = points[end] - points[corner]
        edge /= max(float(np.hypot(*edge)), 1e-12)
        points[corner] += steps[corner] * edge
        points[end] -= steps[end] * edge
    return points


def rotated_box(corners: NDArray[Any]) -> RotatedBox:
    """Return the rectangle that EAST learns for a quadrilateral.

    This is the smallest of the parallelograms around it that are parallel to two adjacent edges,
    extended to a rectangle along its longer edges. If several parallelograms have the same area, as
    is common, the one at the earliest corner is used; in the original, rounding decides.

    Args:
        corners: [4, 2], convex, clockwise on the screen.
    """
    points = np.asarray(corners, np.float64)
    candidates = parallelogram_boxes(points)
    smallest = min(area for area, _ in candidates) * (1 + _SAME_AREA)
    return next(box for area, box in candidates if area <= smallest)


def parallelogram_boxes(points: NDArray[np.float64]) -> list[tuple[float, RotatedBox]]:
    """Return the areas and rectangles of the parallelograms around a quadrilateral [4, 2]."""
    candidates: list[tuple[float, RotatedBox]] = []
    edges = np.roll(points, -1, axis=0) - points
    units = edges / np.maximum(np.hypot(*edges.T), 1e-12)[:, None]
    for first in range(4):
        axes = np.stack([units[first], units[(first + 1) % 4]], axis=1)
        skew = abs(float(np.linalg.det(axes)))
        if skew < 1e-9:  # three collinear corners
            continue
        coordinates = np.linalg.solve(axes, points.T)
        low, high = coordinates.min(axis=1), coordinates.max(axis=1)
        spans = high - low
        corners = np.array([low, (high[0], low[1]), high, (low[0], high[1])])
        longer_axis = axes[:, 0 if spans[0] > spans[1] else 1]
        candidates.append((float(spans.prod()) * skew, _box_along(corners @ axes.T, longer_axis)))
    return candidates


def _box_along(points: NDArray[np.float64], direction: NDArray[np.float64]) -> RotatedBox:
    quarter = np.pi / 2
    angle = float(np.arctan2(-direction[1], direction[0]))
    angle -= quarter * float(np.ceil(angle / quarter - 0.5))
    along, across = turned_axes(angle)
    x, y = points @ along, points @ across
    return RotatedBox(angle, float(x.min()), float(y.min()), float(x.max()), float(y.max()))


def turned_axes(angle: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the axes of a box: along its upper edge to the right, and perpendicular, down."""
    cosine, sine = float(np.cos(angle)), float(np.sin(angle))
    return np.array([cosine, -sine]), np.array([sine, cosine])
