"""What is asked of OpenCV: polygons filled, rectangles in one order, parts numbered, outlines."""

import numpy as np
import pytest

from jumar.data.polygons.drawing import components, fill, outer_outline, smallest_rectangles


def test_polygons_are_filled_including_their_border_and_clipped_to_whole_pixels() -> None:
    picture = np.zeros((6, 8), np.uint8)
    fill(picture, np.array([[2.9, 1.9], [5.9, 1.9], [5.9, 3.9], [2.9, 3.9]]), 7)
    expected = np.zeros((6, 8), np.uint8)
    expected[1:4, 2:6] = 7
    np.testing.assert_array_equal(picture, expected)


def test_rectangles_run_clockwise_from_the_corner_nearest_the_top_left() -> None:
    wide = np.array([[0, 0], [10, 0], [10, 4], [0, 4]], float)
    high = np.array([[20, 5], [23, 5], [23, 50], [20, 50]], float)
    # 3-4-5: from (0, 30) along (4, -3) and (3, 4).
    turned = np.array([[0, 30], [40, 0], [55, 20], [15, 50]], float)
    points = [
        np.concatenate([each[::-1], each.mean(axis=0)[None]]) for each in (wide, high, turned)
    ]
    result = smallest_rectangles(points)
    np.testing.assert_allclose(result, [wide, high, turned], atol=1e-3)
    mirrored = smallest_rectangles([turned[::-1][None]])
    np.testing.assert_allclose(mirrored, [turned], atol=1e-3)
    assert smallest_rectangles([]).shape == (0, 4, 2)


def test_components_connect_by_sides_and_are_numbered_row_by_row() -> None:
    rows = ["..x.x", "xx..x", ".x...", "x..xx"]
    picture = np.array([[cell == "x" for cell in row] for row in rows]).astype(np.uint8)
    count, labels, areas = components(picture)
    assert count == 6
    assert labels.tolist() == [
        [0, 0, 1, 0, 2],
        [3, 3, 0, 0, 2],
        [0, 3, 0, 0, 0],
        [4, 0, 0, 5, 5],
    ]
    assert areas.tolist() == [11, 1, 2, 3, 1, 2]


def test_outline_runs_an_eighth_of_a_pixel_inside_the_largest_component() -> None:
    piece = [(row, column) for row in range(30, 34) for column in range(12, 20)]
    rows, columns = np.array([(28, 12), (28, 13), *piece]).T
    outline = outer_outline(rows, columns)
    corners = [[12.125, 30.125], [19.875, 30.125], [19.875, 33.875], [12.125, 33.875]]
    first = int(outline.sum(axis=1).argmin())
    np.testing.assert_array_equal(np.roll(outline, -first, axis=0), corners)


def test_nearly_straight_corners_of_an_outline_are_dropped() -> None:
    """A staircase of one row in a hundred stays one edge; a step of a third does not."""
    rows, columns = np.nonzero(np.tri(30, 100, 69))
    sloped = outer_outline(rows, columns)
    assert len(sloped) in (4, 5)
    assert np.ptp(sloped, axis=0) == pytest.approx([98.75, 29.75], abs=1)
    block = np.ones((30, 100), bool)
    block[:10, 50:] = False
    assert len(outer_outline(*np.nonzero(block))) == 6
