"""Quadrilaterals shrunk along their edges, and the rectangles that EAST learns of them."""

import numpy as np
import pytest

from jumar.data.polygons.quadrilaterals import (
    as_quadrilateral,
    parallelogram_boxes,
    rotated_box,
    shrunk,
    turned_axes,
)

RECTANGLE = np.array([[10.0, 20], [110, 20], [110, 40], [10, 40]])


@pytest.mark.parametrize("first", [0, 1, 2, 3])
def test_rectangle_shrinks_by_three_tenths_of_its_shorter_side(first: int) -> None:
    corners = np.roll(RECTANGLE, -first, axis=0)
    expected = np.roll([[16, 26], [104, 26], [104, 34], [16, 34]], -first, axis=0)
    np.testing.assert_allclose(shrunk(corners), expected)
    fifth = np.roll([[14, 24], [106, 24], [106, 36], [14, 36]], -first, axis=0)
    np.testing.assert_allclose(shrunk(corners, 0.2), fifth)


def test_corners_move_by_their_shorter_edge_along_the_longer_pair_first() -> None:
    """Edges of 50, 20, 30 and 28.3: by hand, along the upper and the lower one first."""
    corners = np.array([[0.0, 0], [50, 0], [50, 20], [20, 20]])
    left = np.hypot(20, 20)
    steps = 0.3 * np.array([left, 20, 20, left])
    points = corners + np.stack([steps * [1, -1, -1, 1], np.zeros(4)], axis=1)
    right = (points[2] - points[1]) / np.hypot(*(points[2] - points[1]))
    points[1] += steps[1] * right
    points[2] -= steps[2] * right
    upwards = (points[0] - points[3]) / np.hypot(*(points[0] - points[3]))
    points[3] += steps[3] * upwards
    points[0] -= steps[0] * upwards
    np.testing.assert_allclose(shrunk(corners), points)


def test_point_shrinks_to_itself() -> None:
    np.testing.assert_array_equal(shrunk(np.full((4, 2), 7.0)), np.full((4, 2), 7.0))


def test_four_corners_stay_and_others_become_the_smallest_rectangle() -> None:
    skew = np.array([[0, 0], [9, 1], [8, 5], [1, 4]])
    assert as_quadrilateral(skew).tolist() == skew.tolist()
    five = as_quadrilateral(np.array([[0.0, 0], [5, 0], [10, 0], [10, 4], [0, 4]]))
    np.testing.assert_allclose(five, [[0, 0], [10, 0], [10, 4], [0, 4]], atol=1e-5)


@pytest.mark.parametrize(
    ("degrees", "angle"), [(0, 0), (30, 30), (44.9, 44.9), (45.1, -44.9), (-30, -30), (100, 10)]
)
def test_box_of_a_rotated_rectangle_is_the_rectangle_itself(degrees: float, angle: float) -> None:
    radians = np.radians(degrees)
    along, across = turned_axes(radians)
    np.testing.assert_allclose(along, [np.cos(radians), -np.sin(radians)])
    np.testing.assert_allclose(across, [np.sin(radians), np.cos(radians)])
    corners = RECTANGLE @ np.stack([along, across])
    box = rotated_box(corners)
    assert np.degrees(box.angle) == pytest.approx(angle, abs=1e-6)
    axes = np.stack(turned_axes(box.angle), axis=1)
    places = corners @ axes
    expected = (*places.min(axis=0), *places.max(axis=0))
    assert box[1:] == pytest.approx(expected)
    assert sorted(places.max(axis=0) - places.min(axis=0)) == pytest.approx([20, 100])


def test_upright_box_keeps_its_edges() -> None:
    assert rotated_box(RECTANGLE) == pytest.approx((0, 10, 20, 110, 40))


def test_parallelograms_follow_each_pair_of_adjacent_edges() -> None:
    """By hand: height 40 by a base of 80, and three of 2800."""
    corners = np.array([[0.0, 0], [60, 0], [70, 20], [0, 40]])
    boxes = parallelogram_boxes(corners)
    assert [area for area, _ in boxes] == pytest.approx([3200, 2800, 2800, 2800])
    assert boxes[3][1] == pytest.approx((0, 0, 0, 70, 40))
    in_line = np.array([[0.0, 0], [30, 0], [60, 0], [30, 20]])
    assert len(parallelogram_boxes(in_line)) == 3
