"""Outlines are repaired if the repair is unambiguous, and refused otherwise."""

import numpy as np
import pytest
import shapely
from hypothesis import given
from hypothesis import strategies as st

from jumar.data.polygons.regions import BrokenPolygon, mended, signed_area

SQUARE = np.array([[10.0, 10], [40, 12], [42, 30], [9, 28]])


def test_valid_outline_is_unchanged() -> None:
    corners, wrong = mended(SQUARE, (50, 50))
    np.testing.assert_array_equal(corners, SQUARE)
    assert not wrong


def test_counter_clockwise_corners_are_reversed_keeping_the_first() -> None:
    corners, wrong = mended(SQUARE[[0, 3, 2, 1]])
    np.testing.assert_array_equal(corners, SQUARE)
    assert wrong == ["the corners are in counter-clockwise order"]


@pytest.mark.parametrize("order", [[0, 1, 3, 2], [0, 2, 1, 3], [0, 2, 3, 1], [0, 3, 1, 2]])
def test_four_corners_in_reading_order_are_reordered_clockwise(order: list[int]) -> None:
    corners, wrong = mended(SQUARE[order])
    np.testing.assert_array_equal(corners, SQUARE)
    assert wrong == ["the corners are in an order that crosses itself"]


def test_parts_outside_the_image_are_clipped() -> None:
    corners, wrong = mended(SQUARE, (20, 100))
    assert wrong == ["it extends beyond the image"]
    assert corners[:, 1].max() == 20
    expected = shapely.intersection(shapely.polygons(SQUARE), shapely.box(0, 0, 100, 20))
    assert signed_area(corners) == pytest.approx(expected.area)


@pytest.mark.parametrize(
    ("corners", "reason"),
    [
        ([[1, 1], [9, 9], [1, 1], [9, 9]], "2 different corners"),
        ([[1, 1], [1, 1], [1, 1], [1, 1]], "1 different corner"),
        ([[1, 1], [5, 5], [9, 9], [3, 3]], "corners are on one line"),
        ([[0, 0], [20, 0], [10, 0], [10, 10]], "crosses itself"),
        ([[1, 1], [5, 1], [9, 1.1]], "area is 0"),
        ([[0, 0], [20, 20], [20, 0], [0, 20], [10, 30]], "crosses itself"),
        ([[200, 1], [220, 1], [220, 9], [200, 9]], "outside the image of 100 x 100"),
        ([[1, 1], [float("nan"), 1], [3, 3]], "not a number"),
        ([[1, 1], [1e9, 1], [3, 3]], "not a number"),
    ],
)
def test_ambiguous_outlines_are_refused(corners: list[list[float]], reason: str) -> None:
    with pytest.raises(BrokenPolygon, match=reason):
        mended(np.array(corners), (100, 100))


@given(st.lists(st.tuples(st.integers(-20, 120), st.integers(-20, 120)), min_size=3, max_size=7))
def test_result_is_simple_clockwise_and_inside(points: list[tuple[int, int]]) -> None:
    try:
        corners, _ = mended(np.array(points), (90, 100))
    except BrokenPolygon:
        return
    assert len(corners) >= 3
    assert signed_area(corners) >= 1
    assert shapely.is_simple(shapely.linearrings(corners))
    assert shapely.is_valid(shapely.polygons(corners))
    assert (corners >= 0).all()
    assert (corners <= (100, 90)).all()


@pytest.mark.parametrize(
    ("corners", "reason"),
    [
        ([[1, 1], [9, 9], [1, 1], [9, 9]], "only 2 different corners"),
        ([[1, 1], [1, 1], [1, 1], [1, 1]], "only 1 different corner"),
        # Not through the origin.
        ([[1, 2], [5, 6], [9, 10]], "its corners are on one line"),
        ([[0, 0], [2, 0], [0, 0.999]], "its area is 0.999 square pixels"),
        ([[0, 0], [0, 0.5], [2, 0]], "its area is 0.5 square pixels"),
        ([[0, 0], [20, 20], [20, 0], [0, 20], [10, 30]], "it crosses itself"),
        (
            [[200, 1], [220, 1], [220, 9], [200, 9]],
            "it is outside the image of 100 x 80 pixels",
        ),
        (
            [[10, 70], [20, 70], [20, 90], [30, 90], [30, 70], [40, 70], [40, 95], [10, 95]],
            "the border of the image cuts it into several pieces",
        ),
        ([[1, 1], [1_000_001, 1], [3, 3]], "a coordinate is not a number of pixels"),
        ([[1, 1], [-1_000_001, 1], [3, 3]], "a coordinate is not a number of pixels"),
    ],
)
def test_full_reason_is_reported(corners: list[list[float]], reason: str) -> None:
    with pytest.raises(BrokenPolygon) as caught:
        mended(np.array(corners), (80, 100))
    assert str(caught.value) == reason


@pytest.mark.parametrize(
    "corners",
    [
        [[0, 0], [2, 0], [0, 1]],
        [[0, 0], [1_000_000, 0], [1_000_000, 9]],
        [[0, 0], [300, 0], [300, 0.01]],
        [[0, 0], [0.9, 0], [9, 0.9], [9, 9], [0, 9]],
        [[0, 0], [100, 0], [100, 80], [0, 80]],
    ],
)
def test_outlines_exactly_at_the_limits_are_kept(corners: list[list[float]]) -> None:
    size = None if corners[1][0] > 100 else (80, 100)
    outline, wrong = mended(np.array(corners), size)
    np.testing.assert_array_equal(outline, corners)
    assert wrong == []


def test_problems_of_an_outline_are_reported_in_order() -> None:
    twice = [[-5, 10], [-5, 10], [-5, 30], [30, 10], [30, 30], [30, 30.0000001]]
    corners, wrong = mended(np.array(twice), (80, 100))
    assert wrong == [
        "a corner is repeated",
        "the corners are in an order that crosses itself",
        "it extends beyond the image",
    ]
    assert sorted(map(tuple, np.round(corners, 5).tolist())) == [
        (0, 10),
        (0, 30),
        (30, 10),
        (30, 30),
    ]
    assert signed_area(corners) == pytest.approx(600)
    backwards, wrong = mended(np.array([[90, 70], [90, 90], [110, 90], [110, 70]]), (80, 100))
    assert wrong == ["the corners are in counter-clockwise order", "it extends beyond the image"]
    assert sorted(map(tuple, backwards.tolist())) == [(90, 70), (90, 80), (100, 70), (100, 80)]
    assert signed_area(backwards) == 100


def test_one_pixel_within_the_image_is_enough() -> None:
    corners, _ = mended(np.array([[-9, 3], [1, 3], [1, 4], [-9, 4]]), (80, 100))
    assert sorted(map(tuple, corners.tolist())) == [(0, 3), (0, 4), (1, 3), (1, 4)]
    with pytest.raises(BrokenPolygon, match=r"^it is outside"):
        mended(np.array([[-9, 3], [0.9, 3], [0.9, 4], [-9, 4]]), (80, 100))


def test_reordered_corners_start_with_the_first_given() -> None:
    for first in range(4):
        order = np.roll([0, 1, 2, 3], -first)[[0, 2, 1, 3]]
        corners, _ = mended(SQUARE[order])
        np.testing.assert_array_equal(corners, np.roll(SQUARE, -first, axis=0))
