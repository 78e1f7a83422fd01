from typing import Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from jumar.data.pixels.resize import (
    Coordinates,
    Method,
    Size,
    apply_taps,
    axis_taps,
    central_window,
    crop_and_resize,
    mirror,
    resize,
    resize_fast,
)
from tests.data.scenes import scene

SIDES = st.integers(1, 40)
METHODS = st.sampled_from(["bilinear", "nearest", "bicubic", "area", "antialias"])
COORDINATES = st.sampled_from(["legacy", "align_corners", "half_pixel"])


@given(length=SIDES, target=SIDES, method=METHODS, coordinates=COORDINATES)
def test_weights_of_every_output_pixel_sum_to_one_and_point_into_the_image(
    length: int, target: int, method: Method, coordinates: Coordinates
) -> None:
    taps = axis_taps(length, target, method=method, coordinates=coordinates)
    assert taps.indices.shape == taps.weights.shape
    assert len(taps.indices) == target
    assert np.allclose(taps.weights.sum(axis=1), 1, atol=1e-5)
    assert taps.indices.min() >= 0
    assert taps.indices.max() < length


@given(side=SIDES, method=METHODS, coordinates=COORDINATES)
def test_resizing_to_the_same_size_changes_nothing(
    side: int, method: Method, coordinates: Coordinates
) -> None:
    picture = scene(side, 7)
    assert np.allclose(
        resize(picture, (side, 7), method=method, coordinates=coordinates), picture, atol=1e-4
    )


@given(start=st.integers(0, 30), length=st.integers(1, 10))
def test_subset_of_taps_gives_that_part_of_the_image(start: int, length: int) -> None:
    picture = scene(23, 31)
    rows, columns = axis_taps(23, 40), axis_taps(31, 40)
    whole = apply_taps(picture, rows, columns)
    part = apply_taps(picture, rows.part(start, start + length), columns.part(0, 5))
    assert np.array_equal(part, whole[start : start + length, :5])


def test_batch_is_resized_like_its_single_images() -> None:
    pictures = np.stack([scene(9, 12, seed) for seed in range(3)])
    batch = resize(pictures, (5, 20), method="bicubic")
    for picture, resized in zip(pictures, batch, strict=True):
        assert np.array_equal(resize(picture, (5, 20), method="bicubic"), resized)


def test_box_of_the_whole_image_keeps_its_corners() -> None:
    picture = scene(15, 20)
    resized = crop_and_resize(picture, (0, 0, 1, 1), (40, 50))
    assert np.allclose(
        resized[[0, 0, -1, -1], [0, -1, 0, -1]], picture[[0, 0, -1, -1], [0, -1, 0, -1]]
    )


def test_box_with_swapped_corners_mirrors() -> None:
    picture = scene(15, 20)
    straight = crop_and_resize(picture, (0, 0, 1, 1), (15, 20))
    assert np.allclose(crop_and_resize(picture, (1, 1, 0, 0), (15, 20)), straight[::-1, ::-1])


@pytest.mark.parametrize("size", [(30, 40), (90, 120), (224, 224), (17, 300)])
def test_fast_resizing_agrees_with_pillow_within_one_level(size: tuple[int, int]) -> None:
    picture = scene(97, 131)
    peer = Image.fromarray(picture).resize(size[::-1], Image.Resampling.BILINEAR)
    ours = resize_fast(picture, size)
    assert ours.dtype == np.uint8
    assert ours.shape == (*size, 3)
    assert np.abs(ours.astype(int) - np.array(peer)).max() <= 1


def test_fast_resizing_takes_a_window_of_a_larger_image() -> None:
    picture = scene(97, 131)
    window = picture[10:60, 20:90]
    assert np.array_equal(resize_fast(window, (32, 32)), resize_fast(window.copy(), (32, 32)))


@given(height=SIDES, width=SIDES)
def test_mirroring_equals_reversing_the_columns(height: int, width: int) -> None:
    picture = scene(height, width)
    assert np.array_equal(mirror(picture), picture[:, ::-1])
    assert np.array_equal(mirror(mirror(picture)), picture)


@given(height=SIDES, width=SIDES, fraction=st.floats(0.05, 1))
def test_central_window_is_centred(height: int, width: int, fraction: float) -> None:
    top, left, rows, columns = central_window(Size(height, width), fraction)
    assert height - rows == 2 * top
    assert width - columns == 2 * left
    assert rows >= height * fraction - 1e-9
    assert columns >= width * fraction - 1e-9


RAMP = np.arange(5, dtype=np.float32).reshape(1, 5, 1) * 10
PEAK = np.array([0, 0, 100, 0, 0], np.float32).reshape(1, 5, 1)


@pytest.mark.parametrize(
    ("row", "target", "method", "coordinates", "expected"),
    [
        (RAMP, 2, "bilinear", "legacy", [0, 25]),
        (RAMP, 3, "bilinear", "align_corners", [0, 20, 40]),
        (RAMP, 1, "bilinear", "align_corners", [0]),
        (RAMP, 10, "bilinear", "half_pixel", [0, 2.5, 7.5, 12.5, 17.5, 22.5, 27.5, 32.5, 37.5, 40]),
        (RAMP, 2, "nearest", "legacy", [0, 20]),
        (RAMP, 4, "nearest", "align_corners", [0, 10, 30, 40]),
        (RAMP, 2, "nearest", "half_pixel", [10, 30]),
        (RAMP, 2, "area", "legacy", [8, 32]),
        (RAMP[:, :4], 2, "antialias", "legacy", [12.5 / 1.75, 30 - 12.5 / 1.75]),
        (PEAK, 10, "bicubic", "legacy", [0, -9.375, 0, 59.375, 100, 59.375, 0, -9.375, 0, 0]),
    ],
)
def test_each_mode_interpolates_by_its_own_rule(
    row: np.ndarray,
    target: int,
    method: Method,
    coordinates: Coordinates,
    expected: list[float],
) -> None:
    for image in (row, row.swapaxes(0, 1)):
        lying = image.shape[0] == 1
        size = (1, target) if lying else (target, 1)
        made = resize(image, size, method=method, coordinates=coordinates)
        assert made.reshape(-1).tolist() == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize(
    ("edges", "target", "method", "expected"),
    [
        ((-0.25, 1.25), 7, "bilinear", [-7, 0, 10, 20, 30, 40, -7]),
        ((0.125, 0.875), 4, "bilinear", [5, 15, 25, 35]),
        ((0.125, 0.875), 4, "nearest", [10, 20, 30, 40]),
        ((0.25, 0.75), 1, "bilinear", [20]),
        ((1.0, 0.0), 5, "nearest", [40, 30, 20, 10, 0]),
    ],
)
def test_box_is_read_from_edge_to_edge_and_filled_outside(
    edges: tuple[float, float], target: int, method: Literal["bilinear", "nearest"], expected: list
) -> None:
    first, last = edges
    lying = crop_and_resize(
        RAMP, (0, first, 0, last), (1, target), method=method, extrapolation=-7.0
    )
    standing = crop_and_resize(
        RAMP.swapaxes(0, 1), (first, 0, last, 0), (target, 1), method=method, extrapolation=-7.0
    )
    for made in (lying, standing):
        assert made.reshape(-1).tolist() == pytest.approx(expected)


def test_central_window_has_whole_pixels() -> None:
    assert central_window(Size(10, 21), 0.5) == (2, 5, 6, 11)
    assert central_window(Size(100, 80), 0.875) == (6, 5, 88, 70)
