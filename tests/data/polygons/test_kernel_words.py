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


def test_rectangles_are_those_of_the_original(parity: Path) -> None:
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
def test_rectangles_are_those_of_all_enlarged_pixels(seed: int, size: tuple[int, int]) -> None:
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
def test_perfect_maps_give_the_words_back(outline: str) -> None:
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


def test_a_curved_word_needs_a_polygon() -> None:
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
