"""Resizing on the host: every mode of tf.image, and torch's fast antialiased one.

Resizing is separable. Along one axis, each output pixel is a weighted sum of a few input pixels,
whose indices and weights are `Taps`. A mode only defines how to compute taps; applying them is the
same for all. Positions are computed in float32 as in TensorFlow, because a position that is an
integer in exact arithmetic may be on either side of it after rounding.

The modes follow the kernels of TensorFlow 1.15 (`resize_bilinear`, `resize_nearest_neighbor`,
`resize_bicubic`, `resize_area`, `scale_and_translate`, `crop_and_resize`).
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray

Method = Literal["bilinear", "nearest", "bicubic", "area", "antialias"]
Coordinates = Literal["legacy", "align_corners", "half_pixel"]
Floats = NDArray[np.float32]

_CUBIC_STEPS = 1024
"""Number of steps in TensorFlow's table of cubic weights."""


@dataclass(frozen=True, kw_only=True)
class Taps:
    """Weights along an axis: output i = sum over k of weights[i, k] * input[indices[i, k]].

    Attributes:
        indices: Indices of input pixels, [out, taps].
        weights: Their weights, [out, taps].
    """

    indices: NDArray[np.intp]
    weights: Floats

    def part(self, start: int, stop: int) -> "Taps":
        """Return the taps of output pixels `start` to before `stop`, to crop before computing."""
        return Taps(indices=self.indices[start:stop], weights=self.weights[start:stop])


class Size(NamedTuple):
    """Rows and columns."""

    height: int
    width: int


def axis_taps(
    length: int,
    target: int,
    *,
    method: Method = "bilinear",
    coordinates: Coordinates = "legacy",
) -> Taps:
    """Return taps that resize an axis of `length` pixels to `target` pixels.

    Args:
        length: Number of input pixels.
        target: Number of output pixels.
        method: `antialias` is the triangle filter widened with the reduction (TensorFlow 2's
            `antialias=True`); it and `area` ignore `coordinates`.
        coordinates: `legacy` puts output pixel i at i * length / target (TensorFlow 1's default),
            `align_corners` maps the outermost pixels to each other, `half_pixel` maps the centres.
    """
    if method == "area":
        return _area(length, target)
    if method == "antialias":
        return _triangle(length, target)
    positions = _positions(length, target, coordinates, nearest=method == "nearest")
    if method == "nearest":
        rounded = (
            _round_half_up(positions) if coordinates == "align_corners" else np.floor(positions)
        )
        indices = np.clip(rounded, 0, length - 1).astype(np.intp)[:, None]
        return Taps(indices=indices, weights=np.ones_like(indices, dtype=np.float32))
    if method == "bicubic":
        return _bicubic(positions, length, half_pixel=coordinates == "half_pixel")
    return _bilinear(positions, length)


def apply_taps(images: NDArray[Any], rows: Taps, columns: Taps) -> Floats:
    """Resize by taps.

    Args:
        images: [..., height, width, channels], any numeric dtype.
        rows: Taps along the height.
        columns: Taps along the width.

    Returns:
        float32 [..., rows, columns, channels].
    """
    leading, channels = images.shape[:-3], images.shape[-1]
    # The last axes are flattened for both sums: numpy is slow if the innermost axis (the channels)
    # is short.
    flat = images.reshape(*leading, images.shape[-3], -1)
    tall = _weighted_sum(
        (np.take(flat, index, axis=-2), weight[:, None])
        for index, weight in zip(rows.indices.T, rows.weights.T, strict=True)
    )
    tall = tall.reshape(*leading, len(rows.indices), -1, channels)
    resized = _weighted_sum(
        (
            np.take(tall, index, axis=-2).reshape(*leading, len(rows.indices), -1),
            np.repeat(weight, channels),
        )
        for index, weight in zip(columns.indices.T, columns.weights.T, strict=True)
    )
    return resized.reshape(*leading, len(rows.indices), len(columns.indices), channels)


def resize(
    images: NDArray[Any],
    size: tuple[int, int],
    *,
    method: Method = "bilinear",
    coordinates: Coordinates = "legacy",
) -> NDArray[Any]:
    """Resize as tf.image does; the default is `tf.image.resize_bilinear` of TensorFlow 1.

    Args:
        images: [..., height, width, channels].
        size: (height, width) of the result.
        method: See `axis_taps`.
        coordinates: See `axis_taps`.

    Returns:
        float32; for `nearest`, the dtype of `images`.
    """
    rows = axis_taps(images.shape[-3], size[0], method=method, coordinates=coordinates)
    columns = axis_taps(images.shape[-2], size[1], method=method, coordinates=coordinates)
    if method == "nearest":
        return images[..., rows.indices, columns.indices[:, 0], :]
    return apply_taps(images, rows, columns)


def crop_and_resize(
    image: NDArray[Any],
    box: tuple[float, float, float, float],
    size: tuple[int, int],
    *,
    method: Literal["bilinear", "nearest"] = "bilinear",
    extrapolation: float = 0.0,
) -> Floats:
    """Crop and resize one box as in `tf.image.crop_and_resize`: its corners are corner pixels.

    Args:
        image: [height, width, channels].
        box: (y1, x1, y2, x2) relative to the last row and column; y1 > y2 mirrors.
        size: (height, width) of the result.
        method: Interpolation between pixels.
        extrapolation: Value outside the image.

    Returns:
        float32 [height, width, channels].
    """
    height, width = image.shape[:2]
    y_positions = _box_positions(box[0], box[2], height, size[0])
    x_positions = _box_positions(box[1], box[3], width, size[1])
    rows, rows_outside = _box_taps(y_positions, height, method)
    columns, columns_outside = _box_taps(x_positions, width, method)
    resized = apply_taps(image, rows, columns)
    resized[rows_outside] = extrapolation
    resized[:, columns_outside] = extrapolation
    return resized


def resize_fast(image: NDArray[np.uint8], size: tuple[int, int]) -> NDArray[np.uint8]:
    """Resize with integer arithmetic, bilinear and antialiased: the fastest, for training images.

    Unlike the originals' legacy bilinear, it aligns pixel centres, and averages when shrinking, so
    there is no aliasing; when enlarging, the two differ by a shift of less than half a pixel.

    Args:
        image: uint8 [height, width, 3]; may be a window of a larger image.
        size: (height, width) of the result.

    Returns:
        uint8 [height, width, 3].
    """
    # Torch has a fast path only for channels_last strides, which require a batch axis.
    pixels = torch.from_numpy(image)[None].permute(0, 3, 1, 2)
    resized = F.interpolate(pixels, size, mode="bilinear", align_corners=False, antialias=True)
    return resized[0].permute(1, 2, 0).numpy()


def mirror(image: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Return a horizontally flipped copy, [height, width, 3].

    Torch is twenty times faster than copying a numpy view with negative strides.
    """
    pixels = torch.from_numpy(image)[None].permute(0, 3, 1, 2)
    return torch.flip(pixels, (3,))[0].permute(1, 2, 0).numpy()


def central_window(size: Size, fraction: float) -> tuple[int, int, int, int]:
    """Return (top, left, height, width) as in `tf.image.central_crop`; it never rounds down."""
    top = int((size.height - size.height * fraction) / 2)
    left = int((size.width - size.width * fraction) / 2)
    return top, left, size.height - 2 * top, size.width - 2 * left


def _positions(length: int, target: int, coordinates: Coordinates, *, nearest: bool) -> Floats:
    steps = np.arange(target, dtype=np.float32)
    if coordinates == "align_corners" and target > 1:
        return steps * np.float32((length - 1) / np.float32(target - 1))
    scale = np.float32(length) / np.float32(target)
    if coordinates == "half_pixel":
        centres = (steps + np.float32(0.5)) * scale
        return centres if nearest else centres - np.float32(0.5)
    return steps * scale


def _bilinear(positions: Floats, length: int) -> Taps:
    below = np.floor(positions)
    weight = (positions - below).astype(np.float32)
    indices = np.stack([np.maximum(below, 0), np.minimum(np.ceil(positions), length - 1)], axis=1)
    return Taps(
        indices=indices.astype(np.intp), weights=np.stack([np.float32(1) - weight, weight], axis=1)
    )


def _bicubic(positions: Floats, length: int, *, half_pixel: bool) -> Taps:
    below = np.floor(positions)
    steps = np.rint((positions - below) * np.float32(_CUBIC_STEPS)).astype(np.intp)
    # The legacy kernel has a = -0.75; with half-pixel coordinates, it is Keys's, a = -0.5.
    near, far = _cubic_tables(-0.5 if half_pixel else -0.75)
    steps_left = _CUBIC_STEPS - steps
    weights = np.stack([far[steps], near[steps], near[steps_left], far[steps_left]], axis=1)
    unclipped = below[:, None] + np.arange(-1, 3)
    indices = np.clip(unclipped, 0, length - 1)
    if half_pixel:
        weights = np.where(indices == unclipped, weights, 0)
        weights = weights / weights.sum(axis=1, keepdims=True)
    return Taps(indices=indices.astype(np.intp), weights=weights.astype(np.float32))


def _cubic_tables(a: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return cubic convolution weights at distances 0 to 1, and 1 to 2."""
    near = np.arange(_CUBIC_STEPS + 1) / _CUBIC_STEPS
    far = near + 1
    return (
        ((a + 2) * near - (a + 3)) * near * near + 1,
        ((a * far - 5 * a) * far + 8 * a) * far - 4 * a,
    )


def _area(length: int, target: int) -> Taps:
    """Return taps by which each output pixel is the mean of the input area that it covers."""
    scale = np.float32(length) / np.float32(target)
    start = np.arange(target, dtype=np.float32) * scale
    stop = np.arange(1, target + 1, dtype=np.float32) * scale
    first = np.floor(start)
    pixels = first[:, None] + np.arange(int((np.ceil(stop) - first).max()))
    covered = np.minimum(pixels + 1, stop[:, None]) - np.maximum(pixels, start[:, None])
    weights = np.maximum(covered, 0) / scale
    indices = np.clip(pixels, 0, length - 1)
    return Taps(indices=indices.astype(np.intp), weights=weights.astype(np.float32))


def _triangle(length: int, target: int) -> Taps:
    scale = length / target
    reach = max(scale, 1.0)
    centres = (np.arange(target) + 0.5) * scale
    first = np.ceil(centres - reach - 0.5)
    pixels = first[:, None] + np.arange(int(np.ceil(2 * reach)) + 1)
    weights = np.maximum(1 - np.abs(pixels + 0.5 - centres[:, None]) / reach, 0)
    weights[(pixels < 0) | (pixels >= length)] = 0
    weights /= weights.sum(axis=1, keepdims=True)
    indices = np.clip(pixels, 0, length - 1)
    return Taps(indices=indices.astype(np.intp), weights=weights.astype(np.float32))


def _box_positions(start: float, stop: float, length: int, target: int) -> Floats:
    low, high, last = np.float32(start), np.float32(stop), np.float32(length - 1)
    if target == 1:
        return np.array([np.float32(0.5) * (low + high) * last], dtype=np.float32)
    step = (high - low) * last / np.float32(target - 1)
    return low * last + np.arange(target, dtype=np.float32) * step


def _box_taps(positions: Floats, length: int, method: str) -> tuple[Taps, NDArray[np.bool_]]:
    outside = (positions < 0) | (positions > length - 1)
    inside = np.where(outside, np.float32(0), positions)
    if method == "bilinear":
        return _bilinear(inside, length), outside
    indices = _round_half_up(inside).astype(np.intp)[:, None]
    return Taps(indices=indices, weights=np.ones_like(indices, dtype=np.float32)), outside


def _round_half_up(positions: Floats) -> Floats:
    # Not floor(positions + 0.5), which would round a float just below one half up.
    below = np.floor(positions)
    return below + (positions - below >= 0.5)


def _weighted_sum(terms: Iterable[tuple[NDArray[Any], Floats]]) -> Floats:
    total: Floats | None = None
    for values, weight in terms:
        term = np.multiply(values, weight, dtype=np.float32)
        if total is None:
            total = term
        else:
            total += term
    assert total is not None
    return total
