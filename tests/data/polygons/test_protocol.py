"""Words are counted as ICDAR 2015 counts them."""

from collections.abc import Sequence

import numpy as np
import pytest
import shapely
from hypothesis import given, settings
from hypothesis import strategies as st

from jumar.data.polygons.protocol import intervals_of, picture_score, scores_of
from jumar.data.polygons.regions import Region


def box(left: float, top: float, width: float, height: float) -> np.ndarray:
    right, bottom = left + width, top + height
    return np.array([[left, top], [right, top], [right, bottom], [left, bottom]], np.float64)


def word(*place: float, ignored: bool = False) -> Region:
    return Region(corners=box(*place), ignored=ignored)


def plain_counts(words: Sequence[Region], found: Sequence[np.ndarray]) -> list[int]:
    """The protocol in plain loops over shapely's polygons."""
    detections = [shapely.Polygon(each) for each in found]
    truth = [shapely.Polygon(each.corners) for each in words]
    dropped = {
        place
        for place, detection in enumerate(detections)
        for each, polygon in zip(words, truth, strict=True)
        if each.ignored and polygon.intersection(detection).area / detection.area > 0.5
    }
    matched: set[int] = set()
    taken: set[int] = set()
    for number, polygon in enumerate(truth):
        for place, detection in enumerate(detections):
            if number in matched or place in taken or words[number].ignored or place in dropped:
                continue
            common = polygon.intersection(detection).area
            if common / (polygon.area + detection.area - common) > 0.5:
                matched.add(number)
                taken.add(place)
    cared = sum(not each.ignored for each in words)
    return [len(matched), cared, len(matched), len(detections) - len(dropped)]


def test_word_counts_if_iou_exceeds_one_half() -> None:
    truth = [word(0, 0, 100, 20)]
    assert picture_score(truth, [box(0, 0, 50.1, 20)]).counts.tolist() == [1, 1, 1, 1]
    assert picture_score(truth, [box(0, 0, 50, 20)]).counts.tolist() == [0, 1, 0, 1]
    exact = picture_score(truth, [box(0, 0, 50, 20), box(0, 0, 100, 20)])
    assert exact.matched == [(0, 1)]
    assert exact.false == [0]


def test_first_detection_wins_and_each_counts_once() -> None:
    truth = [word(0, 0, 100, 20), word(0, 2, 100, 20)]
    score = picture_score(truth, [box(0, 1, 100, 20), box(0, 0, 100, 20)])
    assert score.matched == [(0, 0), (1, 1)]
    one = picture_score(truth, [box(0, 1, 100, 20)])
    assert one.matched == [(0, 0)]
    assert one.missed == [1]


def test_detections_within_ignored_regions_do_not_count() -> None:
    truth = [word(0, 0, 100, 20, ignored=True), word(200, 0, 50, 20)]
    result = [box(0, 0, 90, 20), box(60, 0, 79, 20), box(60, 0, 81, 20), box(200, 0, 50, 20)]
    score = picture_score(truth, result)
    assert score.ignored == [0, 1]
    assert score.counts.tolist() == [1, 1, 1, 2]
    two_halves = [word(0, 0, 10, 20, ignored=True), word(10, 0, 10, 20, ignored=True)]
    assert picture_score(two_halves, [box(0, 0, 20, 20)]).ignored == []


def test_merged_and_split_words_are_named() -> None:
    truth = [word(0, 0, 40, 20), word(50, 0, 40, 20), word(0, 50, 100, 20), word(200, 0, 9, 9)]
    result = [box(0, 0, 90, 20), box(0, 50, 45, 20), box(55, 50, 45, 20), box(300, 300, 9, 9)]
    score = picture_score(truth, result)
    assert score.missed == [0, 1, 2, 3]
    assert score.false == [0, 1, 2, 3]
    assert score.merged == [(0, [0, 1])]
    assert score.split == [(2, [1, 2])]


@pytest.mark.parametrize(
    ("truth", "found", "counts"),
    [
        ([], [], [0, 0, 0, 0]),
        ([word(0, 0, 9, 9)], [], [0, 1, 0, 0]),
        ([], [box(0, 0, 9, 9)], [0, 0, 0, 1]),
        ([word(0, 0, 9, 9)], [np.array([[0, 0], [9, 9], [9, 0], [0, 9.0]])], [0, 1, 0, 1]),
        ([word(0, 0, 9, 9)], [np.array([[0, 0], [9, 9], [0, 0], [9, 9.0]])], [0, 1, 0, 1]),
    ],
)
def test_empty_inputs_and_self_intersecting_outlines_are_handled(
    truth: list[Region], found: list[np.ndarray], counts: list[int]
) -> None:
    assert picture_score(truth, found).counts.tolist() == counts


@settings(max_examples=150)
@given(st.integers(0, 2**32 - 1))
def test_counts_match_plain_loops(seed: int) -> None:
    random = np.random.default_rng(seed)

    def boxes(count: int) -> list[np.ndarray]:
        places = random.integers(0, 40, (count, 2))
        sizes = random.integers(5, 25, (count, 2))
        return [
            box(*place, *size) + random.normal(0, 0.5, (4, 2))
            for place, size in zip(places.tolist(), sizes.tolist(), strict=True)
        ]

    truth = [
        Region(corners=each, ignored=bool(random.random() < 0.3))
        for each in boxes(int(random.integers(0, 9)))
    ]
    result = boxes(int(random.integers(0, 9)))
    result += [each.corners + 1 for each in truth[:3]]
    assert picture_score(truth, result).counts.tolist() == plain_counts(truth, result)


def test_scores_are_computed_from_sums() -> None:
    scores = scores_of(np.array([[3, 6, 3, 4], [1, 2, 1, 4]]).sum(axis=0))
    assert scores == (0.5, 0.5, 0.5)
    assert scores_of(np.zeros(4, np.int64)) == (0, 0, 0)
    assert scores_of(np.array([1, 4, 1, 2])).hmean == pytest.approx(1 / 3)


def test_intervals_contain_the_score_and_shrink_with_more_images() -> None:
    random = np.random.default_rng(0)
    right = random.binomial(8, 0.8, 20)
    few = np.stack([right, np.full(20, 10), right, np.full(20, 8)], axis=1)
    many = np.concatenate([few] * 25)
    widths: list[float] = []
    for counts in (few, many):
        interval = intervals_of(counts)
        for (low, high), score in zip(interval, scores_of(counts.sum(axis=0)), strict=True):
            assert low < score < high
        widths.append(interval.hmean[1] - interval.hmean[0])
    assert widths[0] / widths[1] == pytest.approx(5, rel=0.2)
    assert intervals_of(few) == intervals_of(few)
    assert intervals_of(few) != intervals_of(few, seed=1)
    same = np.array([[4, 6, 4, 5]] * 7)
    assert intervals_of(same).recall == pytest.approx((4 / 6, 4 / 6))


def test_iou_of_exactly_one_half_does_not_count() -> None:
    """Of merged words the share of each word, of split ones that of each detection."""
    result = [box(20, 0, 50, 20)]
    pair = [word(0, 0, 40, 20), word(50, 0, 40, 20)]
    assert picture_score(pair, result).merged == []
    assert picture_score(pair, [box(19, 0, 52, 20)]).merged == [(0, [0, 1])]
    one = [word(0, 0, 100, 20)]
    assert picture_score(one, [box(-20, 0, 40, 20), box(60, 0, 30, 20)]).split == []
    halves = [box(-19, 0, 40, 20), box(60, 0, 30, 20)]
    assert picture_score(one, halves).split == [(0, [0, 1])]


def test_at_most_three_words_and_detections_are_named_in_order() -> None:
    truth = [word(left, 0, 20, 20) for left in (60, 0, 30)] + [word(0, 50, 100, 20)]
    parts = [box(left, 50, 20, 20) for left in (70, 0, 35)]
    score = picture_score(truth, [*parts, box(0, 0, 80, 20)])
    assert score.merged == [(3, [0, 1, 2])]
    assert score.split == [(3, [0, 1, 2])]
    assert (score.matched, score.missed, score.false) == ([], [0, 1, 2, 3], [0, 1, 2, 3])


def test_single_word_and_detection_are_named() -> None:
    assert scores_of(np.array([1, 1, 1, 1])) == (1, 1, 1)
    assert scores_of(np.array([0, 0, 0, 3])) == (0, 0, 0)
    assert scores_of(np.array([1, 4, 1, 2])) == pytest.approx((0.5, 0.25, 1 / 3))


def test_recall_is_of_words_and_precision_of_detections_also_in_parts() -> None:
    """A split word: 0.8 of one word, 1.6 of two detections."""
    counts = np.array([[0.8, 1, 1.6, 2], [1, 3, 0, 2]])
    precision, recall = 1.6 / 4, 1.8 / 4
    expected = (precision, recall, 2 * precision * recall / (precision + recall))
    assert scores_of(counts.sum(axis=0)) == pytest.approx(expected)
    assert intervals_of(counts).precision == pytest.approx((0, 0.8))
    assert intervals_of(counts).recall == pytest.approx((1 / 3, 0.8))


@pytest.mark.parametrize(
    "counts",
    [
        [[3, 6, 3, 4], [1, 2, 1, 4], [0, 5, 0, 1]],
        [[2.6, 6, 3.4, 4], [0.8, 2, 1.6, 4], [0, 5, 0, 1]],
    ],
)
def test_intervals_are_quantiles_over_resampled_images(counts: list[list[float]]) -> None:
    rows = np.array(counts)
    random = np.random.default_rng(5)
    values: list[tuple[float, float, float]] = []
    for times in random.multinomial(3, [1 / 3] * 3, size=40).tolist():
        right_words, words, right_detections, detections = (
            sum(n * c for n, c in zip(times, column, strict=True)) for column in rows.T.tolist()
        )
        precision, recall = right_detections / detections, right_words / words
        total = precision + recall
        values.append((precision, recall, 2 * precision * recall / total if total else 0.0))
    expected = np.quantile(np.array(values), [0.1, 0.9], axis=0).T
    result = intervals_of(rows, share=0.8, rounds=40, seed=5)
    np.testing.assert_allclose(np.array(result), expected)
    assert intervals_of(rows) == intervals_of(rows, share=0.95, rounds=2000, seed=0)
