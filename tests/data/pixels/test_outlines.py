"""Outlines are closed, as thick as the image is large, and the later ones lie above."""

import numpy as np
import pytest

from jumar.data.pixels.outlines import FOUND, LABELLED, with_outlines


def rectangle(left: int, top: int, right: int, bottom: int) -> np.ndarray:
    return np.array([[left, top], [right, top], [right, bottom], [left, bottom]], np.float32)


def test_sides_are_drawn_in_their_colour_over_earlier_ones() -> None:
    pixels = np.full((30, 40, 3), 9, np.uint8)
    drawn = with_outlines(
        pixels, [(rectangle(5, 3, 30, 20), LABELLED), (rectangle(10, 3, 38, 25), FOUND)]
    )
    expected = pixels.copy()
    for (left, top, right, bottom), colour in (
        ((5, 3, 30, 20), (255, 140, 0)),
        ((10, 3, 38, 25), (0, 220, 0)),
    ):
        expected[[top, bottom], left : right + 1] = colour
        expected[top : bottom + 1, [left, right]] = colour
    assert np.array_equal(drawn, expected)
    assert (pixels == 9).all()


@pytest.mark.parametrize(
    ("side", "thickness"), [(100, 1), (749, 1), (751, 2), (1249, 2), (1251, 3)]
)
def test_line_width_is_one_pixel_per_500_of_the_longer_side(side: int, thickness: int) -> None:
    for shape in ((40, side, 3), (side, 40, 3)):
        drawn = with_outlines(np.zeros(shape, np.uint8), [(rectangle(10, 10, 30, 30), FOUND)])
        assert np.count_nonzero(drawn[:20, 20, 1]) == thickness
        assert np.count_nonzero(drawn[20, :20, 1]) == thickness
