"""PSENet's maps give the original's rectangles, and perfect maps the words."""

from pathlib import Path

import numpy as np
import pytest
import shapely
from hypothesis import example, given, settings
from hypothesis import strategies as st

from jumar.data.polygons.drawing import smallest_rectangles
from jumar.data.polygons.expansion import expanded
from jumar.data.polygons.kernel_words import words_of_kernels
from jumar.data.polygons.kernels import kernel_maps
from jumar.data.polygons.regions import Region, signed_area


def overlap_of(one: np.ndarray, other: np.ndarray) -> float:
    first, second = shapely.Polygon(one), shapely.Polygon(other)
    return first.intersection(second).area / first.union(second).area


def test_rectangles_match_the_original(parity: Path) -> None:
    original = np.load(parity / "psenet.npz")
    maps = original["in/post_maps_uint8"].astype(np.float32).transpose(2, 0, 1) / 255
    words = words_of_kernels(maps, (256, 256))
    expected = original["r/post/boxes"]
    assert len(words) == len(expected)
    for word, box in zip(words, expected, strict=True):
        assert overlap_of(word.corners, box) > 1 - 1e-4
        for corner in box:
            assert np.abs(word.corners - corner).max(axis=1).min() < 0.01


@settings(max_examples=30)
@example(1746, (50, 71))
@given(st.integers(0, 2**32 - 1), st.sampled_from([(64, 96), (128, 192), (50, 71)]))
def test_rectangles_enclose_all_enlarged_pixels(seed: int, size: tuple[int, int]) -> None:
    random = np.random.default_rng(seed)
    maps = np.zeros((2, 32, 48), np.float32)
    mask = random.random((9, 14)) < 0.7
    maps[:, 5:14, 20:34] = mask
    rows = np.arange(size[0]) * 32 // size[0]
    columns = np.arange(size[1]) * 48 // size[1]
    labels = expanded(maps > 0.9, least_area=1)[rows][:, columns]
    pixels = [np.argwhere(labels == number)[:, ::-1] for number in np.unique(labels)[1:]]
    expected = [box for box in smallest_rectangles(pixels) if signed_area(box) >= 1]
    words = words_of_kernels(maps, size, least_area=1)
    assert len(words) == len(expected)
    large = [each for each in pixels if signed_area(smallest_rectangles([each])[0]) >= 1]
    for word, box, places in zip(words, expected, large, strict=True):
        # Several rectangles may be equally small: then any of them is right.
        assert signed_area(word.corners) == pytest.approx(signed_area(box), rel=1e-4)
        around = shapely.Polygon(word.corners).buffer(1e-3)
        assert shapely.contains_xy(around, places[:, 0], places[:, 1]).all()


@pytest.mark.parametrize("outline", ["rectangle", "polygon"])
def test_perfect_maps_reproduce_the_words(outline: str) -> None:
    regions = [
        Region(corners=np.array([[20.0, 20], [220, 60], [210, 110], [12, 70]])),
        Region(corners=np.array([[300.0, 40], [480, 40], [480, 90], [300, 90]])),
    ]
    kernels, _ = kernel_maps(regions, (256, 512))
    maps = kernels.transpose(2, 0, 1).astype(np.float32)
    words = words_of_kernels(maps, (256, 512), outline=outline)  # pyright: ignore[reportArgumentType]
    assert len(words) == 2
    for region in regions:
        assert max(overlap_of(word.corners, region.corners) for word in words) > 0.85
    assert all(word.score == 1 for word in words)
    assert all(signed_area(word.corners) > 0 for word in words)


def test_curved_word_needs_a_polygon() -> None:
    angles = np.linspace(np.pi, 2 * np.pi, 12)
    arcs = [np.stack([np.cos(angles), np.sin(angles)], 1) * radius for radius in (180, 120)]
    curved = np.concatenate([arcs[0], arcs[1][::-1]]) + 200
    kernels, _ = kernel_maps([Region(corners=curved)], (256, 400))
    maps = kernels.transpose(2, 0, 1).astype(np.float32)
    box, polygon = (
        words_of_kernels(maps, (256, 400), outline=outline)[0].corners
        for outline in ("rectangle", "polygon")
    )
    assert overlap_of(polygon, curved) > 0.8 > overlap_of(box, curved)


def test_weak_words_are_dropped() -> None:
    maps = np.zeros((6, 20, 30), np.float32)
    maps[:, 4:9, 4:12] = 0.91
    maps[:, 12:18, 4:12] = 0.99
    assert len(words_of_kernels(maps, (80, 120))) == 2
    (word,) = words_of_kernels(maps, (80, 120), least_score=0.95)
    assert word.score == pytest.approx(0.99)
    assert not words_of_kernels(maps * 0, (80, 120))


def block(rows: slice, columns: slice, value: float = 1.0) -> np.ndarray:
    maps = np.zeros((6, 10, 20), np.float32)
    maps[:, rows, columns] = value
    return maps


def test_score_limit_is_exclusive_and_the_others_inclusive() -> None:
    tenth = np.float32(0.9)
    ten = slice(2, 4), slice(3, 8)
    assert words_of_kernels(block(*ten, tenth), (10, 20)) == []
    above = float(np.nextafter(tenth, np.float32(1)))
    (word,) = words_of_kernels(block(*ten, above), (10, 20))
    assert word.score == pytest.approx(0.9)
    nine = block(slice(2, 5), slice(3, 6))
    assert words_of_kernels(nine, (10, 20)) == []
    assert len(words_of_kernels(nine, (10, 20), least_area=9)) == 1
    maps = block(*ten)
    maps[-1, ten[0], ten[1]] = 0.75
    assert len(words_of_kernels(maps, (10, 20), threshold=0.5, least_score=0.75)) == 1
    assert words_of_kernels(maps, (10, 20), threshold=0.5, least_score=0.76) == []


def test_words_smaller_than_a_pixel_are_dropped() -> None:
    assert words_of_kernels(block(slice(2, 3), slice(3, 9)), (10, 20), least_area=1) == []
    (word,) = words_of_kernels(block(slice(2, 4), slice(3, 5)), (10, 20), least_area=1)
    np.testing.assert_allclose(word.corners, [[3, 2], [4, 2], [4, 3], [3, 3]], atol=1e-5)


def test_outlines_are_scaled_to_the_image_size() -> None:
    maps = block(slice(2, 6), slice(3, 9))
    (word,) = words_of_kernels(maps, (20, 80))
    np.testing.assert_allclose(word.corners, [[12, 4], [35, 4], [35, 11], [12, 11]], atol=1e-4)
    (curved,) = words_of_kernels(maps, (20, 80), outline="polygon")
    first = int(curved.corners.sum(axis=1).argmin())
    np.testing.assert_allclose(
        np.roll(curved.corners, -first, axis=0),
        [[12.5, 4.25], [35.5, 4.25], [35.5, 11.75], [12.5, 11.75]],
    )


def test_each_word_has_the_mean_of_the_last_map_over_it() -> None:
    maps = block(slice(1, 4), slice(1, 6)) + block(slice(6, 9), slice(10, 16))
    maps[-1, 1, 1:6], maps[-1, 6:9, 10:16] = 0.7, 0.8
    first, second = words_of_kernels(maps, (10, 20), threshold=0.6)
    assert first.score == pytest.approx((5 * 0.7 + 10) / 15)
    assert second.score == pytest.approx(0.8)
    np.testing.assert_allclose(second.corners[[0, 2]], [[10, 6], [15, 8]], atol=1e-4)
