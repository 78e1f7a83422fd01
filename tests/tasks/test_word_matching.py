import numpy as np
import pytest

from jumar.data.polygons.kernel_words import Detection
from jumar.data.polygons.regions import Region
from jumar.tasks.word_matching import WordCounts, match_words


def corners(left: float, top: float, width: float = 10, height: float = 10) -> np.ndarray:
    right, bottom = left + width, top + height
    return np.array([(left, top), (right, top), (right, bottom), (left, bottom)], float)


def word(*box: float) -> Detection:
    return Detection(corners=corners(*box), score=0.9)


def label(*box: float, ignored: bool = False) -> Region:
    return Region(corners=corners(*box), ignored=ignored)


@pytest.mark.parametrize(
    ("words", "labels", "expected"),
    [
        ([], [], (0, 0, 0)),
        ([], [label(0, 0)], (0, 0, 1)),
        ([word(0, 0)], [], (0, 1, 0)),
        ([word(0, 0)], [label(0, 0)], (1, 1, 1)),
        # Two thirds of the union; then exactly half of it, which is too little.
        ([word(2, 0)], [label(0, 0)], (1, 1, 1)),
        ([word(0, 0, 20)], [label(0, 0)], (0, 1, 1)),
        # A label is matched once, and a word found too.
        ([word(0, 0), word(1, 0)], [label(0, 0)], (1, 2, 1)),
        ([word(0, 0)], [label(0, 0), label(1, 0)], (1, 1, 2)),
        # The first that overlaps enough, not the best: so the second label gets the other one.
        ([word(2, 0), word(0, 0)], [label(0, 0), label(4, 0)], (1, 2, 2)),
        # More than half of a word found on an ignored word: neither right nor wrong.
        ([word(4, 0)], [label(0, 0, ignored=True)], (0, 0, 0)),
        ([word(5, 0)], [label(0, 0, ignored=True)], (0, 1, 0)),
        # Also where it would match.
        ([word(0, 0)], [label(0, 0), label(0, 0, ignored=True)], (0, 0, 1)),
    ],
)
def test_words_are_matched_as_in_icdar_2015(
    words: list[Detection], labels: list[Region], expected: tuple[int, int, int]
) -> None:
    assert match_words(words, labels) == WordCounts(*expected)
