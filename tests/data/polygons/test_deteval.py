"""Split and merged words count 0.8, as in Total-Text's evaluation."""

import numpy as np
import pytest

from jumar.data.polygons.deteval import deteval_counts, deteval_scores
from jumar.data.polygons.regions import Region


def box(left: float, top: float, width: float, height: float) -> np.ndarray:
    right, bottom = left + width, top + height
    return np.array([[left, top], [right, top], [right, bottom], [left, bottom]], np.float64)


LINE = [box(0, 0, 100, 20)]


@pytest.mark.parametrize(
    ("words", "found", "counts"),
    [
        (LINE, LINE, [1, 1, 1, 1]),
        (LINE, [box(0, 0, 71, 20)], [1, 1, 1, 1]),
        (LINE, [box(0, 0, 69, 20)], [0, 1, 0, 1]),
        (LINE, [box(0, 0, 160, 20)], [1, 1, 1, 1]),
        (LINE, [box(0, 0, 170, 20)], [0, 1, 0, 1]),
        (LINE, [box(0, 0, 40, 20), box(45, 0, 50, 20)], [0.8, 1, 1.6, 2]),
        (LINE, [box(0, 0, 30, 20), box(45, 0, 30, 20)], [0, 1, 0, 2]),
        (LINE, [box(0, 0, 100, 20), box(0, 0, 30, 5)], [0.8, 1, 1.6, 2]),
        (LINE, [box(0, 0, 100, 20), box(90, 0, 90, 20)], [1, 1, 1, 2]),
        ([box(0, 0, 40, 20), box(45, 0, 50, 20)], LINE, [1.6, 2, 0.8, 1]),
        ([box(0, 0, 80, 20), box(90, 0, 90, 20)], LINE, [1, 2, 1, 1]),
        ([box(0, 0, 100, 20), box(100, 0, 50, 20)], [box(35, 0, 85, 20)], [0, 2, 0, 1]),
        ([], LINE, [0, 0, 0, 1]),
        (LINE, [], [0, 1, 0, 0]),
    ],
)
def test_words_and_detections_are_counted(
    words: list[np.ndarray], found: list[np.ndarray], counts: list[float]
) -> None:
    regions = [Region(corners=each) for each in words]
    assert deteval_counts(regions, found).tolist() == pytest.approx(counts)


def test_detections_within_ignored_words_do_not_count() -> None:
    words = [Region(corners=LINE[0], ignored=True), Region(corners=box(0, 50, 60, 20))]
    found = [box(0, 0, 60, 20), box(0, 15, 60, 20), box(0, 50, 60, 20)]
    counts = deteval_counts(words, found)
    assert counts.tolist() == [1, 1, 1, 2]
    assert deteval_scores(counts) == pytest.approx((0.5, 1, 2 / 3))
    assert deteval_scores(np.zeros(4)) == (0, 0, 0)
