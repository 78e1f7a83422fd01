"""What is found in overlapping tiles becomes the words of the whole picture, each once."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jumar.data.pixels.crop_window import Window
from jumar.data.polygons.kernel_words import Detection
from jumar.data.polygons.regions import Corners
from jumar.data.polygons.tiles import OVERLAP, seamless, tiles_of


def box(left: float, top: float, right: float, bottom: float) -> Corners:
    return np.array([[left, top], [right, top], [right, bottom], [left, bottom]], float)


def seen(window: Window, words: list[Corners]) -> list[Detection]:
    """What a detector finds in a tile that finds every part of every word in it, exactly."""
    corner = np.array([window.left, window.top])
    far = np.array([window.width, window.height])
    detections: list[Detection] = []
    for word in words:
        inside = np.clip(word - corner, 0, far)
        if (np.ptp(inside, axis=0) > 2).all():
            detections.append(Detection(corners=inside, score=0.9))
    return detections


@given(height=st.integers(1, 900), width=st.integers(1, 900), side=st.integers(64, 300))
def test_tiles_cover_the_picture_and_overlap(height: int, width: int, side: int) -> None:
    tiles = tiles_of(height, width, side)
    covered = np.zeros((height, width), bool)
    for top, left, rows, columns in tiles:
        assert (rows, columns) == (min(side, height), min(side, width))
        assert 0 <= top <= height - rows
        assert 0 <= left <= width - columns
        covered[top : top + rows, left : left + columns] = True
    assert covered.all()
    tops = sorted({tile.top for tile in tiles})
    assert all(after - before <= side * (1 - OVERLAP) + 1 for before, after in pairwise(tops))
    assert len(tiles) == 1 or max(height, width) > side


@given(data=st.data(), upright=st.booleans())
def test_words_that_fit_into_the_overlap_are_found_once_each(
    data: st.DataObject, upright: bool
) -> None:
    size, side = (400, 700), 200
    words: list[Corners] = []
    for row in range(0, 400, 50):
        left = data.draw(st.integers(0, 60))
        while left < 640:
            wide = data.draw(st.integers(8, 40))
            words.append(box(left, row + 10, left + wide, row + 30))
            left += wide + data.draw(st.integers(8, 80))
    if upright:
        size = size[::-1]
        words = [box(*corners[0][::-1], *corners[2][::-1]) for corners in words]
    found = [(tile, seen(tile, words)) for tile in tiles_of(*size, side)]
    joined = sorted(tuple(word.corners.ravel()) for word in seamless(found, size))
    assert joined == sorted(tuple(word.ravel()) for word in words)


@pytest.mark.parametrize("upright", [False, True])
def test_a_word_longer_than_a_tile_is_put_together(upright: bool) -> None:
    size = (900, 100) if upright else (100, 900)
    words = [box(20, 30, 870, 50), box(100, 70, 140, 90)]
    if upright:
        words = [box(*corners[0][::-1], *corners[2][::-1]) for corners in words]
    found = [(tile, seen(tile, words)) for tile in tiles_of(*size, 200)]
    assert len(found) > 4
    short, long = seamless(found, size)
    np.testing.assert_allclose(short.corners, words[1], atol=0.01)
    np.testing.assert_allclose(long.corners, words[0], atol=0.01)
    assert long.score == pytest.approx(0.9)


def test_words_at_the_edges_of_the_picture_are_not_cut() -> None:
    size = (100, 300)
    words = [box(0, 0, 30, 20), box(270, 80, 300, 100)]
    found = [(tile, seen(tile, words)) for tile in tiles_of(*size, 200)]
    assert len(seamless(found, size)) == 2


def test_two_words_side_by_side_stay_two() -> None:
    """Neighbours that both are cut by an edge do not overlap."""
    size = (200, 500)
    words = [box(20, 20, 480, 40), box(20, 44, 480, 64)]
    found = [(tile, seen(tile, words)) for tile in tiles_of(*size, 200)]
    assert len(seamless(found, size)) == 2


def test_nothing_found_is_nothing() -> None:
    assert seamless([(Window(0, 0, 10, 10), [])], (10, 10)) == []
