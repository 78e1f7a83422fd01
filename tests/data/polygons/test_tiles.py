"""What is found in overlapping tiles becomes the words of the whole image, each once."""

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
def test_tiles_cover_the_image_and_overlap(height: int, width: int, side: int) -> None:
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
    result = [(tile, seen(tile, words)) for tile in tiles_of(*size, side)]
    joined = sorted(tuple(word.corners.ravel()) for word in seamless(result, size))
    assert joined == sorted(tuple(word.ravel()) for word in words)


@pytest.mark.parametrize("upright", [False, True])
def test_word_longer_than_a_tile_is_merged(upright: bool) -> None:
    size = (900, 100) if upright else (100, 900)
    words = [box(20, 30, 870, 50), box(100, 70, 140, 90)]
    if upright:
        words = [box(*corners[0][::-1], *corners[2][::-1]) for corners in words]
    result = [(tile, seen(tile, words)) for tile in tiles_of(*size, 200)]
    assert len(result) > 4
    short, long = seamless(result, size)
    np.testing.assert_allclose(short.corners, words[1], atol=0.01)
    np.testing.assert_allclose(long.corners, words[0], atol=0.01)
    assert long.score == pytest.approx(0.9)


def test_words_at_the_edges_of_the_image_are_not_cut() -> None:
    size = (100, 300)
    words = [box(0, 0, 30, 20), box(270, 80, 300, 100)]
    result = [(tile, seen(tile, words)) for tile in tiles_of(*size, 200)]
    assert len(seamless(result, size)) == 2


def test_two_words_side_by_side_stay_two() -> None:
    """Neighbours that both are cut by an edge do not overlap."""
    size = (200, 500)
    words = [box(20, 20, 480, 40), box(20, 44, 480, 64)]
    result = [(tile, seen(tile, words)) for tile in tiles_of(*size, 200)]
    assert len(seamless(result, size)) == 2


def test_no_detections_give_no_words() -> None:
    assert seamless([(Window(0, 0, 10, 10), [])], (10, 10)) == []


def test_tiles_are_spread_evenly_from_edge_to_edge() -> None:
    wide = [Window(0, left, 100, 200) for left in (0, 140, 280, 420, 560, 700)]
    assert tiles_of(100, 900, 200) == wide
    assert tiles_of(200, 200, 200) == [Window(0, 0, 200, 200)]
    assert tiles_of(201, 200, 200) == [Window(0, 0, 200, 200), Window(1, 0, 200, 200)]
    assert tiles_of(350, 351, 200) == [
        Window(top, left, 200, 200) for top in (0, 150) for left in (0, 76, 151)
    ]
    assert OVERLAP == 0.25


INNER = Window(1, 1, 98, 298)


def found_words(
    *boxes: tuple[float, float, float, float],
    window: Window = INNER,
    size: tuple[int, int] = (100, 300),
) -> list[tuple[list[float], float]]:
    """Left, top, right and bottom of each word of a tile, and its score: 0.5, 0.6, 0.7 ..."""
    result = [
        Detection(corners=box(*each), score=0.5 + place / 10) for place, each in enumerate(boxes)
    ]
    return [
        ([*word.corners.min(axis=0).tolist(), *word.corners.max(axis=0).tolist()], word.score)
        for word in seamless([(window, result)], size)
    ]


@pytest.mark.parametrize(
    ("cut", "whole"),
    [
        ((5.9, 40, 30, 50), (6, 40, 30, 50)),
        ((40, 5.9, 60, 15), (40, 6, 60, 15)),
        ((200, 40, 292.1, 50), (200, 40, 292, 50)),
        ((40, 80, 60, 92.1), (40, 80, 60, 92)),
    ],
)
def test_word_within_six_pixels_of_an_inner_tile_edge_counts_as_cut(
    cut: tuple[float, float, float, float], whole: tuple[float, float, float, float]
) -> None:
    """Words that an edge cuts come last."""
    other = (120, 20, 140, 30)
    places = [score for _, score in found_words(cut, other)]
    assert places == [0.6, 0.5]
    places = [score for _, score in found_words(whole, other)]
    assert places == [0.5, 0.6]
    # The same edges are those of the image: nothing goes on behind them.
    places = [
        score for _, score in found_words(cut, other, window=Window(0, 0, 98, 298), size=(98, 298))
    ]
    assert places == [0.5, 0.6]


def test_words_are_returned_in_image_pixels() -> None:
    window = Window(10, 200, 80, 100)
    assert found_words((20, 30, 60, 40), window=window) == [([220, 40, 260, 50], 0.5)]


@pytest.mark.parametrize("first", [0, 1])
def test_larger_of_two_words_wins_if_they_share_half_of_the_smaller(first: int) -> None:
    large, small = (20.0, 20, 60, 40), (41.0, 20, 78, 40)
    pair = (small, large) if first else (large, small)
    assert [score for _, score in found_words(*pair)] == [0.5 + first / 10]
    half = (40.0, 20, 80, 40)
    assert [score for _, score in found_words(large, half)] == [0.5, 0.6]
    # Of equal ones the first; also where they are smaller than a pixel.
    assert [score for _, score in found_words(large, large, large)] == [0.5]
    tiny = (20.0, 20, 20.5, 20.5)
    assert [score for _, score in found_words(tiny, tiny)] == [0.5]


def test_parts_more_than_half_covered_by_a_whole_word_are_dropped() -> None:
    whole = (60.0, 20, 100, 40)
    # Parts touch the upper edge; half of the first and a bit more of the second are covered.
    half, more = (80.0, 0, 90, 40), (80.0, 1, 90, 40)
    assert [score for _, score in found_words(whole, half)] == [0.5, 0.6]
    assert [score for _, score in found_words(whole, more)] == [0.5]


def test_parts_sharing_more_than_a_tenth_are_one_word_with_their_mean_score() -> None:
    one, tenth, more = (0.0, 20, 100, 40), (90.0, 20, 190, 40), (89.0, 20, 189, 40)
    # The first is cut by the left edge of its tile, the other by the right one of its own.
    window, size = Window(1, 1, 298, 298), (300, 300)

    def joined(*each: tuple[float, float, float, float]) -> list[tuple[list[float], float]]:
        tiles = [
            (window, [Detection(corners=box(*each[0]), score=0.5)]),
            (Window(1, 1, 298, 190), [Detection(corners=box(*each[1]), score=0.9)]),
        ]
        return [
            ([*word.corners.min(axis=0).tolist(), *word.corners.max(axis=0).tolist()], word.score)
            for word in seamless(tiles, size)
        ]

    assert len(joined(one, tenth)) == 2
    ((place, score),) = joined(one, more)
    assert place == pytest.approx([1, 21, 190, 41], abs=1e-3)
    assert score == pytest.approx(0.7)


def test_parts_that_meet_only_through_a_third_are_one_word() -> None:
    first, last, between = (0.0, 20, 40, 40), (60.0, 20, 100, 40), (30.0, 20, 70, 40)
    window = Window(1, 1, 298, 298)
    upper = [(left, 0.0, right, 20.0) for left, _, right, _ in (first, last, between)]
    result = [
        Detection(corners=box(*each), score=score)
        for each, score in zip(upper, (0.3, 0.6, 0.9), strict=True)
    ]
    alone = Detection(corners=box(200, 0, 240, 20), score=0.1)
    long, other = seamless([(window, [*result, alone])], (300, 300))
    np.testing.assert_allclose(long.corners, box(1, 1, 101, 21), atol=1e-3)
    assert long.score == pytest.approx(0.6)
    assert other.score == 0.1


@pytest.mark.parametrize(
    ("window", "word"),
    [
        # Tiles in the upper right and the lower left corner of an image.
        (Window(0, 100, 200, 200), (40, 2, 60, 15)),
        (Window(100, 0, 200, 200), (2, 40, 15, 60)),
    ],
)
def test_word_at_an_image_edge_is_not_cut(
    window: Window, word: tuple[float, float, float, float]
) -> None:
    other = (120, 120, 140, 130)
    scores = [score for _, score in found_words(word, other, window=window, size=(300, 300))]
    assert scores == [0.5, 0.6]
