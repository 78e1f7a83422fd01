"""PSENet's targets: every word at six sizes, and the mask of the loss.

Values are equal to the TensorFlow original: corners are first truncated to whole pixels, a kernel
of ratio r is the polygon moved inwards by `area * (1 - r²) / perimeter` with round joins, and if it
falls apart, only the first piece counts.
"""

from collections.abc import Sequence
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jumar.data.polygons.drawing import fill
from jumar.data.polygons.regions import Region, signed_area

KERNELS = 6
SMALLEST_RATIO = 0.5


def kernel_maps(
    regions: Sequence[Region], size: tuple[int, int], stride: int = 4
) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """Return the kernels of all words and the mask of the loss, at every `stride`-th pixel.

    Args:
        regions: Words in pixels of the image; parts outside are cut off.
        size: Height and width of the image.
        stride: Image pixels per map pixel.

    Returns:
        Kernels, 0 or 1 as uint8 [rows, columns, 6], the smallest first and whole words last; and
        the mask [rows, columns], 0 in ignored regions, which have no kernels.
    """
    kernels = np.zeros((KERNELS, *size), np.uint8)
    mask = np.ones(size, np.uint8)
    for region in regions:
        corners = np.clip(region.corners, 0, (size[1] - 1, size[0] - 1)).astype(np.int32)
        if region.ignored:
            fill(mask, corners, 0)
            continue
        for kernel, shrunk in zip(kernels, shrunk_kernels(corners), strict=True):
            if len(shrunk):
                fill(kernel, shrunk, 1)
    sampled = np.ascontiguousarray(kernels[:, ::stride, ::stride].transpose(1, 2, 0))
    return sampled, np.ascontiguousarray(mask[::stride, ::stride])


def shrunk_kernels(corners: NDArray[np.int32]) -> list[NDArray[np.int32]]:
    """Shrink a polygon to the six sizes, smallest first; a size is empty if nothing is left.

    Args:
        corners: Whole pixels [corners, 2], in either direction.
    """
    pyclipper: Any = import_module("pyclipper")  # has no types
    points = corners.astype(np.float64)
    next_points = np.roll(points, -1, axis=0)
    perimeter = float(np.hypot(*(next_points - points).T).sum())
    area = abs(signed_area(points))
    empty = np.zeros((0, 2), np.int32)
    if area == 0:
        return [empty] * KERNELS
    offset = pyclipper.PyclipperOffset()
    offset.AddPath(corners.tolist(), pyclipper.JT_ROUND, pyclipper.ET_CLOSEDPOLYGON)
    ratios = np.linspace(SMALLEST_RATIO, 1.0, KERNELS)
    pieces = [offset.Execute(-area * (1 - ratio**2) / perimeter) for ratio in ratios.tolist()]
    return [np.array(piece[0], np.int32) if piece else empty for piece in pieces]
