"""PSENet's targets equal the original's, and shrink as they should."""

from itertools import pairwise
from pathlib import Path

import cv2
import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from jumar.data.polygons.kernels import kernel_maps, shrunk_kernels
from jumar.data.polygons.regions import Region


def test_ten_polygons_give_the_originals_kernels_and_mask(parity: Path) -> None:
    original = np.load(parity / "psenet.npz")
    regions = [
        Region(corners=corners.astype(np.float64), ignored=bool(ignored))
        for corners, ignored in zip(original["in/polygons"], original["in/ignore"], strict=True)
    ]
    kernels, mask = kernel_maps(regions, (256, 256), stride=1)
    np.testing.assert_array_equal(kernels, original["r/labels/kernels"])
    np.testing.assert_array_equal(mask, original["r/labels/training_mask"])
    np.testing.assert_array_equal(kernels.sum((0, 1)), original["r/labels/kernel_pixels"])


def test_polygon_with_six_corners_gives_the_originals_kernels(parity: Path) -> None:
    original = np.load(parity / "psenet.npz")
    kernels, _ = kernel_maps(
        [Region(corners=original["in/polygon6"].astype(np.float64))], (128, 200), stride=1
    )
    np.testing.assert_array_equal(kernels, original["r/labels/polygon6_kernels"])


def test_stride_keeps_every_nth_pixel() -> None:
    region = Region(corners=np.array([[3.0, 5], [61, 9], [60, 30], [2, 26]]))
    ignored = Region(corners=np.array([[3.0, 35], [40, 35], [40, 45], [3, 45]]), ignored=True)
    whole = kernel_maps([region, ignored], (50, 70), stride=1)
    sampled = kernel_maps([region, ignored], (50, 70), stride=4)
    for each, every_fourth in zip(whole, sampled, strict=True):
        np.testing.assert_array_equal(each[::4, ::4], every_fourth)
    assert sampled[0].shape == (13, 18, 6)


@settings(max_examples=40)
@given(st.integers(0, 2**32 - 1))
def test_kernels_are_nested_up_to_pixel_rounding(seed: int) -> None:
    random = np.random.default_rng(seed)
    count = int(random.integers(3, 9))
    angles = (np.arange(count) + random.uniform(0, 0.4, count)) * 2 * np.pi / count
    corners = np.stack([60 + 50 * np.cos(angles), 40 + 30 * np.sin(angles)], axis=1)
    kernels, mask = kernel_maps([Region(corners=corners)], (80, 120), stride=1)
    maps = kernels.transpose(2, 0, 1)
    for inner, outer in pairwise(maps):
        reach = cv2.dilate(np.ascontiguousarray(outer), np.ones((3, 3), np.uint8))
        assert (inner <= reach).all()
    assert maps[0].sum() <= maps[-1].sum()
    assert mask.all()


def test_words_beyond_the_border_are_clipped_to_the_image() -> None:
    corners = np.array([[-20.0, -10], [90, -10], [90, 50], [-20, 50]])
    kernels, mask = kernel_maps([Region(corners=corners)], (40, 60), stride=1)
    assert kernels[..., -1].all()
    ignored = Region(corners=corners, ignored=True)
    assert mask.all()
    assert not kernel_maps([ignored], (40, 60), stride=1)[1].any()


def test_word_thinner_than_a_pixel_has_no_kernels() -> None:
    line = Region(corners=np.array([[5.0, 5], [50, 5], [50, 5.5], [5, 5.5]]))
    kernels, mask = kernel_maps([line], (20, 60))
    assert not kernels.any()
    assert mask.all()


def test_word_beyond_an_image_corner_collapses_and_has_no_kernels() -> None:
    corners = np.array([[-50.0, -30], [-9, -30], [-9, -5], [-50, -5]])
    kernels, mask = kernel_maps([Region(corners=corners)], (20, 60))
    assert not kernels.any()
    assert mask.all()
    shrunk = shrunk_kernels(np.full((4, 2), 7, np.int32))
    assert [each.shape for each in shrunk] == [(0, 2)] * 6


def test_square_shrinks_by_its_area_and_perimeter() -> None:
    """100 by 100 pixels: by 25 (1 - r²), cut to whole pixels at ratios from 0.5 to 1."""
    square = np.array([[0, 0], [100, 0], [100, 100], [0, 100]], np.int32)
    for shrunk, ratio in zip(shrunk_kernels(square), (0.5, 0.6, 0.7, 0.8, 0.9, 1.0), strict=True):
        inset = 25 * (1 - ratio**2)
        assert shrunk.dtype == np.int32
        assert np.abs(shrunk.min(axis=0) - inset).max() <= 1
        assert np.abs(shrunk.max(axis=0) - (100 - inset)).max() <= 1
