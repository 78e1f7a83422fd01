"""EAST's targets: score map of words, distances to their edges, and the mask of the loss."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from jumar.data.polygons.drawing import fill
from jumar.data.polygons.quadrilaterals import (
    as_quadrilateral,
    rotated_box,
    shrunk,
    turned_axes,
)
from jumar.data.polygons.regions import Region


def score_maps(
    regions: Sequence[Region], size: tuple[int, int], *, stride: int = 4, min_side: float = 10.0
) -> tuple[NDArray[np.uint8], NDArray[np.float32], NDArray[np.uint8]]:
    """Return score, geometry and mask of all words, at every `stride`-th pixel.

    Args:
        regions: Words in pixels of the image. One with more than four corners is replaced by the
            smallest rectangle around it.
        size: Height and width of the image.
        stride: Image pixels per map pixel.
        min_side: Words with a shorter side are masked.

    Returns:
        Score: 1 within the shrunk words, uint8 [rows, columns]. Geometry within them: the distances
        to the upper, right, lower and left edge of the word's rectangle in pixels of the image, and
        its angle in radians, float32 [rows, columns, 5]. Mask: 0 where a word is ignored or too
        small, uint8 [rows, columns].
    """
    score = np.zeros(size, np.uint8)
    mask = np.ones(size, np.uint8)
    geometry = np.zeros((-(-size[0] // stride), -(-size[1] // stride), 5), np.float32)
    for region in regions:
        corners = as_quadrilateral(region.corners)
        shrunk_corners = shrunk(corners)
        sides = np.hypot(*(np.roll(corners, -1, axis=0) - corners).T)
        if region.ignored or sides.min() < min_side:
            fill(mask, corners, 0)
        fill(score, shrunk_corners, 1)
        _put_geometry(geometry, corners, shrunk_corners, stride)
    sampled = np.ascontiguousarray(score[::stride, ::stride])
    return sampled, geometry, np.ascontiguousarray(mask[::stride, ::stride])


def _put_geometry(
    geometry: NDArray[np.float32],
    corners: NDArray[np.float64],
    shrunk_corners: NDArray[np.float64],
    stride: int,
) -> None:
    """Set the distances to a word's edges, for pixels within its shrunk outline."""
    rounded = shrunk_corners.astype(np.int32)
    # Drawn in a separate window, whose corner is aligned with a pixel of the maps.
    left, top = np.maximum(rounded.min(axis=0), 0) // stride * stride
    right = min(int(rounded[:, 0].max()) + 1, geometry.shape[1] * stride)
    bottom = min(int(rounded[:, 1].max()) + 1, geometry.shape[0] * stride)
    if right <= left or bottom <= top:
        return
    window = np.zeros((bottom - top, right - left), np.uint8)
    fill(window, rounded - (left, top), 1)
    rows, columns = np.nonzero(window[::stride, ::stride])
    if not len(rows):
        return
    positions = np.stack([columns * stride + left, rows * stride + top], axis=1)
    box = rotated_box(corners)
    along, across = turned_axes(box.angle)
    x, y = positions @ along, positions @ across
    geometry[rows + top // stride, columns + left // stride] = np.stack(
        [y - box.top, box.right - x, box.bottom - y, x - box.left, np.full(len(x), box.angle)],
        axis=1,
    )
