"""Split and merged words count 0.8, as in Total-Text's evaluation."""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jumar.data.polygons.deteval import TOTAL_TEXT, deteval_counts
from jumar.data.polygons.protocol import picture_score, scores_of
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
    result = [box(0, 0, 60, 20), box(0, 15, 60, 20), box(0, 50, 60, 20)]
    counts = deteval_counts(words, result)
    assert counts.tolist() == [1, 1, 1, 2]
    assert scores_of(counts) == pytest.approx((0.5, 1, 2 / 3))
    assert scores_of(np.zeros(4)) == (0, 0, 0)


@pytest.mark.parametrize(
    ("words", "found", "counts"),
    [
        # Exactly 0.7 of the word, or exactly 0.6 of the detection, is not enough for a pair.
        (LINE, [box(0, 0, 70, 20)], [0, 1, 0, 1]),
        ([box(0, 0, 60, 20)], [box(0, 0, 100, 20)], [0, 1, 0, 1]),
        # For several detections 0.6 of each and 0.7 of the word are.
        (LINE, [box(0, 0, 40, 20), box(70, 0, 50, 20)], [0.8, 1, 1.6, 2]),
        (LINE, [box(0, 0, 40, 20), box(70, 0, 51, 20)], [0, 1, 0, 2]),
        (LINE, [box(0, 0, 40, 20), box(71, 0, 29, 20)], [0, 1, 0, 2]),
        # For several words 0.6 of the detection and 0.6 of each word are.
        ([box(0, 0, 30, 20), box(40, 0, 30, 20)], LINE, [1.6, 2, 0.8, 1]),
        ([box(0, 0, 30, 20), box(40, 0, 29, 20)], LINE, [0, 2, 0, 1]),
        ([box(0, 0, 30, 20), box(70, 0, 50, 20)], LINE, [1.6, 2, 0.8, 1]),
        ([box(0, 0, 30, 20), box(70, 0, 51, 20)], LINE, [0, 2, 0, 1]),
        # A word alone needs 0.7.
        ([box(0, 0, 100, 20), box(105, 0, 50, 20)], [box(30, 0, 80, 20)], [1, 2, 1, 1]),
        ([box(0, 0, 100, 20), box(105, 0, 50, 20)], [box(31, 0, 79, 20)], [0, 2, 0, 1]),
        (
            [box(0, 0, 30, 20), box(35, 0, 30, 20), box(70, 0, 30, 20)],
            LINE,
            [2.4, 3, 0.8, 1],
        ),
    ],
)
def test_shares_exactly_at_the_limits_count(
    words: list[np.ndarray], found: list[np.ndarray], counts: list[float]
) -> None:
    regions = [Region(corners=each) for each in words]
    assert deteval_counts(regions, found).tolist() == pytest.approx(counts)


def plain_counts(words: Sequence[Region], found: Sequence[np.ndarray]) -> list[float]:
    """Total-Text's three passes in plain loops over upright rectangles."""

    def common(one: np.ndarray, other: np.ndarray) -> float:
        sides = np.minimum(one[2], other[2]) - np.maximum(one[0], other[0])
        return float(np.prod(np.maximum(sides, 0)))

    def area(one: np.ndarray) -> float:
        return common(one, one)

    unwanted = [word.corners for word in words if word.ignored]
    truth = [word.corners for word in words if not word.ignored]
    kept = [
        each
        for each in found
        if not any(common(each, word) / area(each) > 0.5 for word in unwanted)
    ]
    recall = [[common(word, each) / area(word) for each in kept] for word in truth]
    precision = [[common(word, each) / area(each) for each in kept] for word in truth]
    open_words, open_found = set(range(len(truth))), set(range(len(kept)))
    recalled = precise = 0.0
    for word in range(len(truth)):
        fits = [each for each in range(len(kept)) if recall[word][each] > 0.7]
        if len(fits) == 1 and sum(share > 0.6 for share in precision[word]) == 1:
            recalled, precise = recalled + 1, precise + 1
            open_words.discard(word)
            open_found.discard(fits[0])
    for word in sorted(open_words):
        if sum(share > 0 for share in recall[word]) < 2:
            continue
        parts = [each for each in sorted(open_found) if precision[word][each] >= 0.6]
        if sum(recall[word][each] for each in parts) >= 0.7:
            recalled += 0.8 if len(parts) > 1 else 1
            precise += 0.8 * len(parts) if len(parts) > 1 else 1
            open_words.discard(word)
            open_found -= set(parts)
    for each in sorted(open_found):
        if sum(precision[word][each] > 0 for word in range(len(truth))) < 2:
            continue
        parts = [word for word in sorted(open_words) if recall[word][each] >= 0.6]
        if sum(precision[word][each] for word in parts) < 0.6:
            continue
        if len(parts) == 1 and recall[parts[0]][each] < 0.7:
            continue
        recalled += 1 if len(parts) == 1 else 0.8 * len(parts)
        precise += 1 if len(parts) == 1 else 0.8
        open_words -= set(parts)
    return [recalled, len(truth), precise, len(kept)]


@settings(max_examples=150)
@given(st.integers(0, 2**32 - 1))
def test_counts_match_plain_loops(seed: int) -> None:
    random = np.random.default_rng(seed)

    def line(parts: int) -> list[np.ndarray]:
        """Rectangles one behind the other on the same line, of sides that 16 divides."""
        edges = np.sort(random.choice(17, parts + 1, replace=False)) * 16.0
        return [box(left, 0, right - left, 16) for left, right in pairwise(edges)]

    words = [
        Region(corners=each, ignored=bool(random.random() < 0.15))
        for each in line(int(random.integers(1, 5)))
    ]
    result = [*line(int(random.integers(1, 5))), *line(int(random.integers(1, 3)))]
    assert deteval_counts(words, result).tolist() == pytest.approx(plain_counts(words, result))


def test_scores_are_computed_from_sums() -> None:
    assert scores_of(np.array([1, 4, 1, 2])) == pytest.approx((0.5, 0.25, 1 / 3))
    assert scores_of(np.array([1.0, 1, 1, 1])) == (1, 1, 1)
    assert scores_of(np.array([0.0, 3, 0, 2])) == (0, 0, 0)


def test_half_of_a_detection_within_an_ignored_word_counts() -> None:
    words = [Region(corners=LINE[0], ignored=True)]
    assert deteval_counts(words, [box(50, 0, 100, 20)]).tolist() == [0, 0, 0, 1]
    assert deteval_counts(words, [box(49, 0, 100, 20)]).tolist() == [0, 0, 0, 0]


def test_chosen_protocol_counts_the_parts_that_icdars_matches_reject() -> None:
    words, halves = [Region(corners=LINE[0])], [box(0, 0, 40, 20), box(45, 0, 50, 20)]
    score = picture_score(words, halves)
    assert score.counts.tolist() == [0, 1, 0, 2]
    assert TOTAL_TEXT.counts(words, halves, score).tolist() == pytest.approx([0.8, 1, 1.6, 2])
