"""EAST's targets equal the original's, and distances and angle reproduce the word."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from jumar.data.polygons.quadrilaterals import parallelogram_boxes, turned_axes
from jumar.data.polygons.regions import Region
from jumar.data.polygons.score_maps import score_maps


@pytest.fixture
def words(parity: Path) -> tuple[dict[str, np.ndarray], list[Region]]:
    original = dict(np.load(parity / "east.npz"))
    pairs = zip(original["r/labels/valid_polygons"], original["r/labels/valid_ignore"], strict=True)
    return original, [Region(corners=np.float64(a), ignored=bool(b)) for a, b in pairs]


def test_ten_polygons_give_the_originals_score_and_mask(
    words: tuple[dict[str, np.ndarray], list[Region]],
) -> None:
    original, regions = words
    score, _, mask = score_maps(regions, (256, 256), stride=1)
    np.testing.assert_array_equal(score, original["r/labels/score"])
    np.testing.assert_array_equal(mask, original["r/labels/training_mask"])


def test_ten_polygons_give_the_originals_geometry_up_to_rounding(
    words: tuple[dict[str, np.ndarray], list[Region]],
) -> None:
    original, regions = words
    rows, columns = original["r/labels/geometry_points"].T
    expected = original["r/labels/geometry_values"]
    _, geometry, _ = score_maps(regions, (256, 256), stride=1)
    differs = np.abs(geometry[rows, columns] - expected).max(axis=1) > 2e-3
    owners = np.zeros(len(rows), np.int64)
    for number, region in enumerate(regions):
        alone, _, _ = score_maps([region], (256, 256), stride=1)
        owners[alone[rows, columns] > 0] = number
    # Of these three several parallelograms have the same area (to 1e-15 and 1e-6).
    assert set(owners[differs]) <= {1, 2, 6}
    for number in (1, 2, 6):
        candidates = parallelogram_boxes(regions[number].corners)
        smallest = min(area for area, _ in candidates)
        tied = [box for area, box in candidates if area <= smallest * (1 + 2e-6)]
        assert len(tied) >= 3
        of_word = owners == number
        places = np.stack([columns, rows], axis=1)[of_word]
        errors: list[float] = []
        for box in tied:
            along, across = turned_axes(box.angle)
            x, y = places @ along, places @ across
            values = [y - box.top, box.right - x, box.bottom - y, x - box.left]
            values.append(np.full(len(x), box.angle))
            errors.append(float(np.abs(np.stack(values, axis=1) - expected[of_word]).max()))
        assert min(errors) < 2e-3


@settings(max_examples=60)
@example(np.pi / 4, 20.0, 12.0, 1)
@example(np.pi / 4, 80.0, 30.0, 1)
@given(
    st.floats(-np.pi / 4 + 0.01, np.pi / 4),
    st.floats(20, 80),
    st.floats(12, 30),
    st.sampled_from([1, 4]),
)
def test_distances_and_angle_reproduce_the_rectangle(
    angle: float, width: float, height: float, stride: int
) -> None:
    along, across = turned_axes(angle)
    middle = np.array([64.0, 60.0])
    halves = np.array([[-1, -1], [1, -1], [1, 1], [-1, 1]]) / 2 * (width, height)
    corners = middle + halves @ np.stack([along, across])
    score, geometry, mask = score_maps([Region(corners=corners)], (128, 128), stride=stride)
    assert mask.all()
    rows, columns = np.nonzero(score)
    assert len(rows)
    top, right, bottom, left, turned = geometry[rows, columns].astype(np.float64).T
    # At 45 degrees exactly, rounding decides which side is the upper one: the same rectangle.
    swapped = angle > np.pi / 4 - 1e-6 and turned[0] < 0
    np.testing.assert_allclose(turned, angle - np.pi / 2 if swapped else angle, atol=1e-5)
    along, across = turned_axes(float(turned[0]))
    corners = np.roll(corners, -1 if swapped else 0, axis=0)
    places = np.stack([columns, rows], axis=1) * stride
    upper_left = places - left[:, None] * along - top[:, None] * across
    lower_right = places + right[:, None] * along + bottom[:, None] * across
    np.testing.assert_allclose(upper_left, np.broadcast_to(corners[0], upper_left.shape), atol=1e-3)
    np.testing.assert_allclose(
        lower_right, np.broadcast_to(corners[2], lower_right.shape), atol=1e-3
    )


def test_strided_geometry_is_that_of_the_kept_pixels(
    words: tuple[dict[str, np.ndarray], list[Region]],
) -> None:
    _, regions = words
    whole, sampled = (score_maps(regions, (256, 256), stride=stride) for stride in (1, 4))
    for each, every_fourth in zip(whole, sampled, strict=True):
        np.testing.assert_array_equal(each[::4, ::4], every_fourth)


def test_word_beyond_the_border_is_clipped() -> None:
    corners = np.array([[-30.0, -5], [30, -5], [30, 25], [-30, 25]])
    score, geometry, _ = score_maps([Region(corners=corners)], (64, 64))
    assert score.any()
    assert (geometry[score > 0][:, :4] >= 0).all()
    outside = Region(corners=corners + 500)
    assert not score_maps([outside], (64, 64))[0].any()


def test_curved_words_are_replaced_by_their_bounding_rectangle() -> None:
    angles = np.linspace(np.pi, 2 * np.pi, 6)
    upper = np.stack([60 + 40 * np.cos(angles), 60 + 40 * np.sin(angles)], axis=1)
    lower = np.stack([60 + 20 * np.cos(angles), 60 + 20 * np.sin(angles)], axis=1)[::-1]
    score, _, mask = score_maps([Region(corners=np.concatenate([upper, lower]))], (128, 128))
    assert score.any()
    assert mask.all()


def test_maps_of_a_rectangle_match_a_hand_calculation() -> None:
    """100 by 20 pixels from (20, 40): shrunk by 6 on each side, border pixels included."""
    corners = np.array([[20.0, 40], [120, 40], [120, 60], [20, 60]])
    score, geometry, mask = score_maps([Region(corners=corners)], (80, 160), stride=1)
    expected = np.zeros((80, 160), np.uint8)
    expected[46:55, 26:115] = 1
    np.testing.assert_array_equal(score, expected)
    assert mask.all()
    rows, columns = np.nonzero(score)
    np.testing.assert_allclose(
        geometry[rows, columns],
        np.stack([rows - 40, 120 - columns, 60 - rows, columns - 20, 0 * rows], axis=1),
    )
    assert not geometry[score == 0].any()
    fourth, sampled, small = score_maps([Region(corners=corners)], (79, 158))
    assert fourth.shape == small.shape == sampled.shape[:2] == (20, 40)
    np.testing.assert_array_equal(fourth, expected[:79:4, :158:4])


@pytest.mark.parametrize(("side", "kept"), [(10.0, True), (9.9, False)])
def test_words_with_a_side_below_ten_pixels_are_masked_but_have_geometry(
    side: float, kept: bool
) -> None:
    corners = np.array([[20.0, 40], [120, 40], [120, 40 + side], [20, 40 + side]])
    score, _, mask = score_maps([Region(corners=corners)], (80, 160), stride=1)
    assert score.any()
    assert bool(mask.all()) is kept
    if not kept:
        outside = mask.copy()
        outside[40:50, 20:121] = 1
        assert outside.all()
        assert not mask[40:50, 20:121].any()
    _, _, larger = score_maps([Region(corners=corners)], (80, 160), stride=1, min_side=11)
    assert not larger.all()


@pytest.mark.parametrize("stride", [1, 3])
def test_words_across_each_border_have_their_geometry_up_to_it(stride: int) -> None:
    middle = np.array([[-20.0, -20], [20, -20], [20, 20], [-20, 20]])
    for x, y in ((3, 30), (61, 30), (30, 3), (30, 58), (0, 0), (64, 60)):
        corners = middle + np.array([x, y])
        score, geometry, _ = score_maps([Region(corners=corners)], (60, 64), stride=stride)
        rows, columns = np.nonzero(score)
        assert len(rows)
        top, left = y - 20, x - 20
        along, across = columns * stride, rows * stride
        expected = [across - top, left + 40 - along, top + 40 - across, along - left, 0 * rows]
        np.testing.assert_allclose(geometry[rows, columns], np.stack(expected, 1), atol=1e-4)
        assert not geometry[score == 0].any()
