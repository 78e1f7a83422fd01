"""Crops keep whole words, points move with their pixels, and the seed decides everything."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jumar.data.polygons.augmentation import (
    TextAugmentation,
    augmented,
    draw_crop,
    rotated,
)
from jumar.data.polygons.regions import Region, signed_area
from jumar.ground.errors import UserError


def words(random: np.random.Generator, size: tuple[int, int], count: int) -> list[Region]:
    """Rectangles somewhere in a picture."""
    regions: list[Region] = []
    for _ in range(count):
        width, height = random.integers(8, 40), random.integers(6, 16)
        left = random.integers(0, size[1] - width)
        top = random.integers(0, size[0] - height)
        corners = np.array(
            [[left, top], [left + width, top], [left + width, top + height], [left, top + height]]
        )
        regions.append(
            Region(corners=corners.astype(np.float64), ignored=bool(random.random() < 0.2))
        )
    return regions


def painted(size: tuple[int, int], regions: list[Region]) -> np.ndarray:
    """A grey picture with white words."""
    pixels = np.full((*size, 3), 60, np.uint8)
    for region in regions:
        (left, top), (right, bottom) = region.corners[0].astype(int), region.corners[2].astype(int)
        pixels[top:bottom, left:right] = 255
    return pixels


@settings(max_examples=60)
@given(st.integers(0, 2**32 - 1), st.booleans())
def test_a_crop_cuts_no_word(seed: int, background: bool) -> None:
    random = np.random.default_rng(seed)
    size = (120, 200)
    regions = words(random, size, int(random.integers(0, 9)))
    window = draw_crop(size, regions, TextAugmentation(), random, background=background)
    left, top = window.left, window.top
    right, bottom = left + window.width, top + window.height
    whole = 0
    for region in regions:
        low, high = region.corners.min(axis=0), region.corners.max(axis=0)
        apart = high[0] <= left or low[0] >= right or high[1] <= top or low[1] >= bottom
        inside = low[0] >= left and low[1] >= top and high[0] <= right and high[1] <= bottom
        assert apart or inside
        whole += bool(inside)
    if window != (0, 0, *size) and regions:
        assert (whole > 0) != background
        assert window.height >= 12
        assert window.width >= 20


@settings(max_examples=40)
@given(st.integers(0, 2**32 - 1))
def test_words_are_where_their_pixels_are(seed: int) -> None:
    random = np.random.default_rng(seed)
    size = (160, 240)
    regions = words(random, size, 3)
    pixels = painted(size, regions)
    picture, kept = augmented(pixels, regions, TextAugmentation(background_share=0.0), 256, random)
    assert picture.shape == (256, 256, 3)
    for region in kept:
        middle = region.corners.mean(axis=0).astype(int)
        assert picture[middle[1], middle[0], 0] > 200
        assert (region.corners >= -1e-6).all()
        assert (region.corners <= 256 + 1e-6).all()


def test_words_are_stretched_as_the_picture_is_in_each_direction() -> None:
    corners = np.array([[0.0, 0], [1000, 0], [1000, 37], [0, 37]])
    _, (region,) = augmented(
        np.zeros((37, 1000, 3), np.uint8),
        [Region(corners=corners)],
        TextAugmentation(scales=(1.0,), background_share=0.0),
        64,
        np.random.default_rng(0),
    )
    np.testing.assert_allclose(region.corners, [[0, 0], [64, 0], [64, 2], [0, 2]])


def test_turning_moves_words_with_their_pixels() -> None:
    random = np.random.default_rng(3)
    regions = words(random, (100, 180), 4)
    pixels = painted((100, 180), regions)
    for degrees in (-170.0, -33.0, 0.0, 45.0, 90.0):
        turned, moved = rotated(pixels, regions, degrees)
        for before, after in zip(regions, moved, strict=True):
            middle = after.corners.mean(axis=0).astype(int)
            assert turned[middle[1], middle[0], 0] > 200
            assert signed_area(after.corners) == pytest.approx(signed_area(before.corners))
            assert (after.corners >= -1).all()
            assert (after.corners <= (turned.shape[1] + 1, turned.shape[0] + 1)).all()


def test_the_seed_decides_everything() -> None:
    regions = words(np.random.default_rng(1), (100, 180), 4)
    pixels = painted((100, 180), regions)
    changes = TextAugmentation(
        rotation=20, brightness=30, contrast=(0.5, 1.5), saturation=(0.5, 1.5)
    )
    pictures = [
        augmented(pixels, regions, changes, 128, np.random.default_rng(seed))[0]
        for seed in (7, 7, 8)
    ]
    np.testing.assert_array_equal(pictures[0], pictures[1])
    assert (pictures[0] != pictures[2]).any()


def test_the_share_of_crops_without_words_is_that_of_the_settings() -> None:
    region = words(np.random.default_rng(1), (100, 180), 1)
    pixels = painted((100, 180), region)
    bare = sum(
        not augmented(pixels, region, TextAugmentation(), 64, np.random.default_rng(seed))[1]
        for seed in range(400)
    )
    assert bare / 400 == pytest.approx(0.375, abs=0.07)


def test_a_larger_scale_never_shows_less_detail() -> None:
    pixels = np.zeros((64, 64, 3), np.uint8)
    small, large = (
        augmented(
            pixels + 200, [], TextAugmentation(scales=(scale,)), 256, np.random.default_rng(0)
        )[0]
        for scale in (0.5, 3.0)
    )
    assert (large > 0).sum() > (small > 0).sum()


def test_grey_pictures_stay_grey_and_contrast_keeps_the_mean() -> None:
    random = np.random.default_rng(0)
    pixels = np.repeat(random.integers(90, 160, (64, 64, 1)).astype(np.uint8), 3, axis=2)
    changes = TextAugmentation(scales=(4.0,), contrast=(0.5, 0.5), saturation=(2.0, 2.0))
    plain, changed = (
        augmented(pixels, [], each, 64, np.random.default_rng(5))[0].astype(float)
        for each in (TextAugmentation(scales=(4.0,)), changes)
    )
    assert (changed[..., 0] == changed[..., 2]).all()
    shown = plain > 0
    assert changed[shown].mean() == pytest.approx(plain[shown].mean(), abs=1.5)
    assert changed[shown].std() == pytest.approx(plain[shown].std() / 2, rel=0.1)


@pytest.mark.parametrize("wrong", [{"scales": ()}, {"contrast": (2.0, 1.0)}])
def test_what_is_no_range_is_refused(wrong: dict[str, tuple[float, ...]]) -> None:
    with pytest.raises(UserError):
        TextAugmentation(**wrong).check()
