"""EAST's boxes equal the original's, and merge as if one by one."""

from pathlib import Path

import numpy as np
import pytest
import shapely
from hypothesis import given, settings
from hypothesis import strategies as st

from jumar.data.polygons.box_words import (
    best,
    boxes_at,
    decoded,
    mean_scores,
    merged,
    merged_one_by_one,
    words_of_boxes,
)
from jumar.data.polygons.regions import Region
from jumar.data.polygons.score_maps import score_maps


def overlap_of(one: np.ndarray, other: np.ndarray) -> float:
    first, second = shapely.Polygon(one), shapely.Polygon(other)
    common = first.intersection(second).area
    return common / (first.area + second.area - common)


def plain_merge(boxes: np.ndarray, scores: np.ndarray, overlap: float) -> list[tuple]:
    runs: list[tuple[np.ndarray, float]] = []
    for box, score in zip(boxes, scores, strict=True):
        if runs and overlap_of(runs[-1][0], box) > overlap:
            mean, weight = runs[-1]
            runs[-1] = ((mean * weight + box * score) / (weight + score), weight + score)
        else:
            runs.append((box, score))
    return runs


def plain_best(boxes: np.ndarray, scores: np.ndarray, overlap: float) -> list[int]:
    waiting = sorted(range(len(boxes)), key=lambda each: -scores[each])
    kept: list[int] = []
    while waiting:
        kept.append(waiting.pop(0))
        waiting = [each for each in waiting if overlap_of(boxes[kept[-1]], boxes[each]) <= overlap]
    return kept


def noisy_boxes(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Boxes of neighbouring pixels of some words, with noise of any strength."""
    random = np.random.default_rng(seed)
    boxes: list[np.ndarray] = []
    for _ in range(int(random.integers(1, 7))):
        width, height = random.uniform(4, 60), random.uniform(4, 30)
        angle = random.uniform(-0.7, 0.7)
        middle = random.uniform(0, 120, 2)
        for _ in range(int(random.integers(1, 12))):
            noise = random.normal(0, random.choice([0.1, 2, 8]), 5)
            half = np.abs([width + noise[0], height + noise[1]]) / 2 + 0.5
            turned = angle + noise[2] / 60
            rotation = np.array(
                [[np.cos(turned), -np.sin(turned)], [np.sin(turned), np.cos(turned)]]
            )
            signs = np.array([[-1, -1], [1, -1], [1, 1], [-1, 1]])
            boxes.append(middle + noise[3:] + signs * half @ rotation)
    return np.array(boxes), random.uniform(0.5, 1, len(boxes))


@settings(max_examples=120)
@given(st.integers(0, 2**32 - 1), st.sampled_from([0.05, 0.2, 0.5, 0.8]))
def test_vectorised_merging_equals_merging_one_by_one(seed: int, overlap: float) -> None:
    boxes, scores = noisy_boxes(seed)
    expected = plain_merge(boxes, scores, overlap)
    for merge in (merged, merged_one_by_one):
        means, sums = merge(boxes, scores, overlap)
        assert len(means) == len(expected)
        np.testing.assert_allclose(means, [mean for mean, _ in expected], atol=1e-7)
        np.testing.assert_allclose(sums, [weight for _, weight in expected])


@settings(max_examples=60)
@given(st.integers(0, 2**32 - 1))
def test_suppression_keeps_boxes_that_no_better_one_overlaps(seed: int) -> None:
    boxes, scores = noisy_boxes(seed)
    assert best(boxes, scores, 0.2).tolist() == plain_best(boxes, scores, 0.2)


def test_boxes_from_the_originals_maps_merge_as_in_its_python(parity: Path) -> None:
    original = np.load(parity / "east.npz")
    score = original["in/post_score_uint8"].astype(np.float32) / 255
    geometry = original["in/post_geometry"].astype(np.float32).transpose(2, 0, 1)
    rows, columns = original["r/post/points_in_order"].T.astype(np.int64)
    ours, _ = decoded(score, geometry)
    assert len(ours) == len(rows)
    # The original puts boxes of negative angle last and leaves the scores in their order.
    order = np.argsort(geometry[4, rows, columns] < 0, kind="stable")
    values = geometry[:, rows[order], columns[order]].astype(np.float64)
    boxes = boxes_at(columns[order] * 4, rows[order] * 4, values)
    flat = boxes.reshape(-1)[original["i/post/restored"]]
    np.testing.assert_allclose(flat, original["r/post/restored"], atol=1e-3)
    scores = score[rows, columns].astype(np.float64)
    means, sums = merged(boxes, scores, 0.2)
    kept = best(means, sums, 0.2)
    expected = original["r/post/nms_python"]
    assert len(kept) == len(expected)
    by_position = np.lexsort(means[kept][:, 0].round(2).T)
    theirs = np.lexsort(expected[:, :2].round(2).T)
    np.testing.assert_allclose(
        means[kept][by_position].reshape(-1, 8), expected[theirs, :8], atol=5e-3
    )
    np.testing.assert_allclose(sums[kept][by_position], expected[theirs, 8], rtol=1e-5)


def test_box_score_is_the_mean_of_its_pixels_as_in_the_original(parity: Path) -> None:
    original = np.load(parity / "east.npz")
    score = original["in/post_score_uint8"].astype(np.float32) / 255
    boxes = original["r/post/boxes"]
    means = mean_scores(boxes[:, :8].reshape(-1, 4, 2).astype(np.float64) / 4, score)
    np.testing.assert_allclose(means, boxes[:, 8], rtol=1e-5)


def test_perfect_maps_reproduce_the_words() -> None:
    words = [
        np.array([[20.0, 20], [120, 40], [114, 70], [14, 50]]),
        np.array([[150.0, 20], [240, 20], [240, 50], [150, 50]]),
        np.array([[30.0, 120], [60, 110], [110, 220], [80, 230]]),
    ]
    score, geometry, _ = score_maps([Region(corners=word) for word in words], (256, 256))
    detections = words_of_boxes(score.astype(np.float32), geometry.transpose(2, 0, 1))
    assert len(detections) == 3
    for word in words:
        assert max(overlap_of(each.corners, word) for each in detections) > 0.9


def test_non_finite_maps_give_no_boxes() -> None:
    score = np.full((8, 8), 0.9, np.float32)
    geometry = np.full((5, 8, 8), 3, np.float32)
    geometry[4] = 0
    score[0, 0], geometry[1, 3, 4], geometry[4, 5, 5] = np.nan, np.inf, np.nan
    boxes, scores = decoded(score, geometry)
    assert len(boxes) == len(scores) == 61
    assert np.isfinite(boxes).all()
    assert words_of_boxes(score, geometry)


def test_boxes_of_an_untrained_network_do_not_fill_the_memory() -> None:
    random = np.random.default_rng(0)
    geometry = random.uniform(0, 512, (5, 60, 60)).astype(np.float32)
    geometry[4] = random.uniform(-0.7, 0.7, (60, 60))
    assert words_of_boxes(random.random((60, 60), np.float32), geometry, threshold=0.3)


@pytest.mark.parametrize("value", [0.0, 1.0])
def test_empty_and_full_maps(value: float) -> None:
    score = np.full((16, 20), value, np.float32)
    geometry = np.ones((5, 16, 20), np.float32)
    words = words_of_boxes(score, geometry)
    assert bool(words) == bool(value)


def boxes_of(*places: tuple[float, float, float, float]) -> np.ndarray:
    return np.array([[(a, b), (c, b), (c, d), (a, d)] for a, b, c, d in places], np.float64)


def test_boxes_follow_from_pixel_distances_and_angle() -> None:
    x, y = np.array([10, 0]), np.array([20, 0])
    angle = np.array([0, np.pi / 2])
    geometry = np.stack([*(np.full(2, distance) for distance in (1.0, 2, 3, 4)), angle])
    result = boxes_at(x, y, geometry)
    np.testing.assert_allclose(result[0], [[6, 19], [12, 19], [12, 23], [6, 23]])
    # Turned by a quarter: to the right goes upwards, and downwards goes to the right.
    np.testing.assert_allclose(result[1], [[-1, 4], [-1, -2], [3, -2], [3, 4]], atol=1e-12)


def test_scores_above_the_threshold_give_boxes_row_by_row() -> None:
    score = np.array([[0.8, 0.9], [0.85, 0.1]], np.float32)
    geometry = np.ones((5, 2, 2), np.float32)
    geometry[4] = 0
    boxes, scores = decoded(score, geometry)
    np.testing.assert_allclose(scores, [0.9, 0.85], rtol=1e-6)
    np.testing.assert_array_equal(boxes, boxes_of((3, -1, 5, 1), (-1, 3, 1, 5)))
    boxes, _ = decoded(score, geometry, stride=2, threshold=0.05)
    assert boxes[:, 0].tolist() == [[-1, -1], [1, -1], [-1, 1], [1, 1]]
    assert len(decoded(score, geometry, threshold=float(np.float32(0.85)))[0]) == 1


def test_boxes_that_share_exactly_the_limit_stay_apart() -> None:
    """Two of four in common."""
    pair, scores = boxes_of((0, 0, 3, 1), (1, 0, 4, 1)), np.array([0.5, 0.75])
    for merge in (merged, merged_one_by_one):
        boxes, sums = merge(pair, scores, 0.5)
        np.testing.assert_array_equal(boxes, pair)
        np.testing.assert_array_equal(sums, scores)
        boxes, sums = merge(pair, scores, 0.49)
        np.testing.assert_allclose(boxes, boxes_of((0.6, 0, 3.6, 1)))
        np.testing.assert_allclose(sums, [1.25])
    assert best(pair, scores, 0.5).tolist() == [1, 0]
    assert best(pair, scores, 0.49).tolist() == [1]
    assert best(pair, np.array([0.5, 0.5]), 0.49).tolist() == [0]
    assert best(pair[:0], scores[:0], 0.5).tolist() == []
    assert [len(each) for each in merged(pair[:0], scores[:0], 0.5)] == [0, 0]


def test_mean_score_covers_only_pixels_inside_the_map() -> None:
    score = np.arange(12, dtype=np.float32).reshape(3, 4)
    boxes = boxes_of(
        (1, 0, 2, 1),
        (-5, -5, 0, 0),
        (3, 2, 9, 9),
        (0, 0, 3, 2),
        (0.9, 1.9, 0.9, 1.9),
        (4, 0, 6, 2),
        (0, 3, 2, 5),
        (-9, -9, -1, -1),
    )
    means = mean_scores(boxes, score)
    assert means.tolist() == [(1 + 2 + 5 + 6) / 4, 0, 11, 5.5, 4, 0, 0, 0]


def test_words_with_a_low_mean_score_are_dropped_and_the_best_come_first() -> None:
    score = np.zeros((8, 24), np.float32)
    geometry = np.zeros((5, 8, 24), np.float32)
    # Two words: three pixels of 0.85, and one of 0.95 in a box of six by two pixels of nothing.
    score[4, 18:21] = 0.85
    geometry[:4, 4, 18:21] = np.array([[4, 4, 4], [12, 8, 4], [4, 4, 4], [4, 8, 12]])
    score[2, 4] = 0.95
    geometry[:4, 2, 4] = 0, 20, 4, 0
    result = words_of_boxes(score, geometry)
    both = words_of_boxes(score, geometry, least_score=0.05)
    np.testing.assert_allclose(both[0].corners, boxes_of((68, 12, 84, 20))[0])
    np.testing.assert_allclose(both[1].corners, boxes_of((16, 8, 36, 12))[0])
    assert both[0].score == pytest.approx(3 * 0.85 / 15)
    assert both[1].score == pytest.approx(0.95 / 12)
    assert [each.score for each in result] == pytest.approx([3 * 0.85 / 15])
    exact = both[1].score
    assert len(words_of_boxes(score, geometry, least_score=exact)) == 1
    halved = words_of_boxes(score, geometry / 2, stride=2, least_score=0.05)
    np.testing.assert_allclose(
        [each.corners * 2 for each in halved], [each.corners for each in both]
    )


def test_each_box_needs_its_score() -> None:
    with pytest.raises(ValueError, match="argument"):
        merged_one_by_one(boxes_of((0, 0, 3, 1)), np.array([0.5, 0.75]), 0.5)
