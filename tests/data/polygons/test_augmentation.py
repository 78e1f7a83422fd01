"""Crops keep whole words, points move with their pixels, and the seed decides everything."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jumar.data.polygons.augmentation import (
    TextAugmentation,
    augmented,
    draw_crop,
    resized,
    rotated,
)
from jumar.data.polygons.regions import Region, signed_area
from jumar.ground.errors import UserError


def words(random: np.random.Generator, size: tuple[int, int], count: int) -> list[Region]:
    """Rectangles somewhere in an image."""
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
    """A grey image with white words."""
    pixels = np.full((*size, 3), 60, np.uint8)
    for region in regions:
        (left, top), (right, bottom) = region.corners[0].astype(int), region.corners[2].astype(int)
        pixels[top:bottom, left:right] = 255
    return pixels


@settings(max_examples=60)
@given(st.integers(0, 2**32 - 1), st.booleans())
def test_crops_do_not_cut_words(seed: int, background: bool) -> None:
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
def test_outlines_match_the_pixels_of_their_words(seed: int) -> None:
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


def test_words_are_stretched_with_the_image_in_each_direction() -> None:
    corners = np.array([[0.0, 0], [1000, 0], [1000, 37], [0, 37]])
    _, (region,) = augmented(
        np.zeros((37, 1000, 3), np.uint8),
        [Region(corners=corners)],
        TextAugmentation(scales=(1.0,), background_share=0.0),
        64,
        np.random.default_rng(0),
    )
    np.testing.assert_allclose(region.corners, [[0, 0], [64, 0], [64, 2], [0, 2]])


def test_rotation_moves_words_with_their_pixels() -> None:
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


def test_seed_determines_everything() -> None:
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


def test_share_of_crops_without_words_follows_the_settings() -> None:
    region = words(np.random.default_rng(1), (100, 180), 1)
    pixels = painted((100, 180), region)
    bare = sum(
        not augmented(pixels, region, TextAugmentation(), 64, np.random.default_rng(seed))[1]
        for seed in range(400)
    )
    assert bare / 400 == pytest.approx(0.375, abs=0.07)


def test_larger_scale_never_shows_less_detail() -> None:
    pixels = np.zeros((64, 64, 3), np.uint8)
    small, large = (
        augmented(
            pixels + 200, [], TextAugmentation(scales=(scale,)), 256, np.random.default_rng(0)
        )[0]
        for scale in (0.5, 3.0)
    )
    assert (large > 0).sum() > (small > 0).sum()


def test_grey_images_stay_grey_and_contrast_keeps_the_mean() -> None:
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
def test_invalid_ranges_are_refused(wrong: dict[str, tuple[float, ...]]) -> None:
    with pytest.raises(UserError):
        TextAugmentation(**wrong).check()


RANGE = "takes the smallest and the largest value, not"


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"scales": ()}, "scales: needs at least one number"),
        (
            {"contrast": (2.0, 1.0)},
            f"'contrast' {RANGE} (2.0, 1.0)\n  For instance: contrast=0.5,1.5",
        ),
        (
            {"saturation": (1.0,)},
            f"'saturation' {RANGE} (1.0,)\n  For instance: saturation=0.5,1.5",
        ),
        (
            {"saturation": (1.0, 2.0, 3.0)},
            f"'saturation' {RANGE} (1.0, 2.0, 3.0)\n  For instance: saturation=0.5,1.5",
        ),
    ],
)
def test_invalid_ranges_have_the_full_message(
    wrong: dict[str, tuple[float, ...]], message: str
) -> None:
    with pytest.raises(UserError) as caught:
        TextAugmentation(**wrong).check()  # pyright: ignore[reportArgumentType]
    assert str(caught.value) == message
    TextAugmentation(contrast=(1.5, 1.5), saturation=(0.5, 1.5)).check()


def test_crop_edges_lie_anywhere_except_within_a_word() -> None:
    """A word from 3.5 to 8 along x and from 2 to 5.5 along y, in an image 12 wide and 9 high."""
    corners = np.array([[3.5, 2], [8, 2], [8, 5.5], [3.5, 5.5]])
    random = np.random.default_rng(0)
    seen: dict[str, set[int]] = {name: set() for name in ("top", "bottom", "left", "right")}
    for _ in range(800):
        for background in (False, True):
            top, left, height, width = draw_crop(
                (9, 12),
                [Region(corners=corners)],
                TextAugmentation(least_side=0.01, crop_attempts=99),
                random,
                background=background,
            )
            sides = {"top": top, "bottom": top + height, "left": left, "right": left + width}
            for name, place in sides.items():
                seen[name].add(place)
    assert seen["top"] | seen["bottom"] == {0, 1, 2, 6, 7, 8, 9}
    assert seen["left"] | seen["right"] == {0, 1, 2, 3, 8, 9, 10, 11, 12}


def test_crops_reach_the_border_as_often_as_a_tenth_margin_implies() -> None:
    """Both edges are drawn from -2 to 22, sorted, cut to 0 to 20 and at least two apart."""
    places = np.arange(-2, 23)
    pairs = [sorted((a, b)) for a in places for b in places]
    cut = [tuple(np.clip(pair, 0, 20).tolist()) for pair in pairs]
    allowed = [pair for pair in cut if pair[1] - pair[0] >= 2]
    random = np.random.default_rng(0)
    settings_ = TextAugmentation(least_side=0.1, crop_attempts=99)
    drawn = [draw_crop((20, 20), [], settings_, random, background=False) for _ in range(4000)]
    for spans in (
        [(window.top, window.top + window.height) for window in drawn],
        [(window.left, window.left + window.width) for window in drawn],
    ):
        assert set(spans) <= set(allowed)
        assert min(last - first for first, last in spans) == 2
        for side, end in ((0, 0), (1, 20)):
            expected = np.mean([pair[side] == end for pair in allowed])
            result = np.mean([span[side] == end for span in spans])
            assert result == pytest.approx(expected, abs=0.035)


def test_whole_image_is_used_if_no_draw_meets_the_request() -> None:
    whole = Region(corners=np.array([[0.0, 0], [12, 0], [12, 9], [0, 9]]))
    random = np.random.default_rng(0)
    changes = TextAugmentation(crop_attempts=3)
    for background in (False, True):
        window = draw_crop((9, 12), [whole], changes, random, background=background)
        assert window == (0, 0, 9, 12)


def test_rotated_words_and_images_match_trigonometry() -> None:
    corners = np.array([[10.0, 5], [50, 5], [50, 20], [10, 20]])
    for degrees in (90.0, 30.0, -70.0):
        cosine, sine = np.cos(np.radians(degrees)), np.sin(np.radians(degrees))
        picture, (word,) = rotated(
            np.full((40, 100, 3), 9, np.uint8), [Region(corners=corners, text="a")], degrees
        )
        width = round(100 * abs(cosine) + 40 * abs(sine))
        height = round(100 * abs(sine) + 40 * abs(cosine))
        assert picture.shape == (height, width, 3)
        x, y = (corners - (50, 20)).T
        expected = np.stack(
            [x * cosine + y * sine + width / 2, -x * sine + y * cosine + height / 2], axis=1
        )
        np.testing.assert_allclose(word.corners, expected)
        assert word.text == "a"
        assert picture[height // 2, width // 2].tolist() == [9, 9, 9]


def test_images_are_averaged_if_both_sides_shrink_else_interpolated() -> None:
    rows = np.repeat(np.array([[0], [100], [50], [250]], np.uint8), 4, axis=1)
    pixels = np.repeat(rows[..., None], 3, axis=2)
    assert resized(pixels, (2, 2))[..., 0].tolist() == [[50, 50], [150, 150]]
    assert resized(pixels, (1, 1))[..., 0].tolist() == [[100]]
    assert resized(pixels, (2, 8)).shape == (2, 8, 3)
    # Of five rows made one: the middle one where only the height shrinks, else their mean.
    column = np.zeros((5, 5, 3), np.uint8)
    column[2] = 200
    assert resized(column, (1, 5))[..., 0].tolist() == [[200] * 5]
    assert resized(column, (1, 4))[..., 0].tolist() == [[40] * 4]


@pytest.mark.parametrize(
    ("scale", "shape"),
    [(0.5, (24, 32)), (1.0, (48, 64)), (3.0, (144, 192)), (4.0, (192, 256)), (9.0, (192, 256))],
)
def test_image_without_words_keeps_its_scale_unless_too_large(
    scale: float, shape: tuple[int, int]
) -> None:
    changes = TextAugmentation(scales=(scale,), least_side=1.0, crop_attempts=1)
    pixels = np.full((48, 64, 3), 200, np.uint8)
    picture, regions = augmented(pixels, [], changes, 256, np.random.default_rng(1))
    expected = np.zeros((256, 256, 3), np.uint8)
    expected[: shape[0], : shape[1]] = 200
    np.testing.assert_array_equal(picture, expected)
    assert regions == []


@pytest.mark.parametrize("seed", range(4))
def test_colours_change_by_the_drawn_factors(seed: int) -> None:
    """Saturation around the luma of each pixel, contrast around the mean luma, then brightness."""
    changes = TextAugmentation(
        scales=(1.0,),
        least_side=1.0,
        crop_attempts=1,
        brightness=20.0,
        contrast=(0.6, 0.9),
        saturation=(0.2, 1.4),
    )
    pixels = np.random.default_rng(9).integers(80, 170, (32, 32, 3)).astype(np.uint8)
    picture, _ = augmented(pixels, [], changes, 32, np.random.default_rng(seed))
    random = np.random.default_rng(seed)
    random.choice((1.0,))
    random.uniform(0, 0)
    random.random()
    first, second, third = random.random(3)
    contrast, saturation = 0.6 + 0.3 * first, 0.2 + 1.2 * second
    luma = pixels @ np.array([0.299, 0.587, 0.114])
    coloured = luma[..., None] + saturation * (pixels - luma[..., None])
    expected = luma.mean() + contrast * (coloured - luma.mean()) + 40 * third - 20
    assert np.abs(picture - expected).max() < 1.01


@pytest.mark.parametrize("changes", [{"brightness": 5.0}, {"contrast": (0.5, 0.5)}])
def test_each_colour_change_works_alone(changes: dict[str, object]) -> None:
    pixels = np.random.default_rng(9).integers(80, 170, (32, 32, 3)).astype(np.uint8)
    plain = TextAugmentation(scales=(1.0,), least_side=1.0, crop_attempts=1)
    changed = TextAugmentation(scales=(1.0,), least_side=1.0, crop_attempts=1, **changes)  # pyright: ignore[reportArgumentType]
    pictures = [
        augmented(pixels, [], each, 32, np.random.default_rng(3))[0] for each in (plain, changed)
    ]
    np.testing.assert_array_equal(pictures[0], pixels)
    assert (pictures[1] != pixels).any()


def test_words_at_the_very_edge_of_a_crop_are_kept() -> None:
    """The whole image is the crop: a word that fills it is within it."""
    corners = np.array([[0.0, 0], [64, 0], [64, 48], [0, 48]])
    inner = Region(corners=np.array([[8.0, 4], [16, 4], [16, 12], [8, 12]]), text="b")
    changes = TextAugmentation(scales=(2.0,), least_side=1.0, crop_attempts=1)
    _, regions = augmented(
        np.zeros((48, 64, 3), np.uint8),
        [Region(corners=corners, text="a"), inner],
        changes,
        256,
        np.random.default_rng(0),
    )
    assert [region.text for region in regions] == ["a", "b"]
    np.testing.assert_allclose(regions[0].corners, corners * 2)
    np.testing.assert_allclose(regions[1].corners, inner.corners * 2)


def test_images_are_rotated_only_on_request_and_by_at_most_the_angle() -> None:
    pixels = np.full((64, 64, 3), 200, np.uint8)
    changes = TextAugmentation(scales=(1.0,), least_side=1.0, crop_attempts=1, rotation=45.0)
    angles: list[float] = []
    corners = np.array([[20.0, 30], [44, 30], [44, 34], [20, 34]])
    for seed in range(40):
        _, (word,) = augmented(
            pixels, [Region(corners=corners)], changes, 512, np.random.default_rng(seed)
        )
        along = word.corners[1] - word.corners[0]
        angles.append(float(np.degrees(np.arctan2(-along[1], along[0]))))
    assert max(np.abs(angles)) <= 45.001
    assert min(angles) < -35
    assert max(angles) > 35
