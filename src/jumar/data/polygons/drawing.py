"""OpenCV's operations for text detectors: filled polygons, minimal rectangles, components."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray


def fill(picture: NDArray[np.uint8], corners: NDArray[Any], value: int) -> None:
    """Fill a polygon in an image [height, width]; corners [corners, 2] are truncated to pixels."""
    import cv2

    cv2.fillPoly(picture, [corners.astype(np.int32)], [value])


def smallest_rectangles(groups: Sequence[NDArray[Any]]) -> NDArray[np.float64]:
    """Return the rectangle of smallest area around each group of points [..., 2].

    Returns:
        Corners [groups, 4, 2], clockwise on the screen, the one nearest the top left first.
    """
    import cv2

    boxes = np.zeros((len(groups), 4, 2))
    for box, points in zip(boxes, groups, strict=True):
        box[:] = cv2.boxPoints(cv2.minAreaRect(points.reshape(-1, 2).astype(np.float32)))
    sides = boxes[:, 1:3] - boxes[:, :2]
    cross_products = sides[:, 0, 0] * sides[:, 1, 1] - sides[:, 0, 1] * sides[:, 1, 0]
    boxes[cross_products < 0] = boxes[cross_products < 0, ::-1]
    first = boxes.sum(axis=2).argmin(axis=1)
    order = (first[:, None] + np.arange(4)) % 4
    return np.take_along_axis(boxes, order[..., None], axis=1)


def components(picture: NDArray[np.uint8]) -> tuple[int, NDArray[np.int32], NDArray[np.int32]]:
    """Find the 4-connected components of an image [height, width].

    Returns:
        The number of components, including the background; the label of each pixel's component,
        int32 [height, width], 0 for the background, the others in row-major order of their first
        pixels; and the area of each component in pixels.
    """
    import cv2

    count, labels, stats, _ = cv2.connectedComponentsWithStatsWithAlgorithm(
        picture, 4, cv2.CV_32S, cv2.CCL_SAUF
    )
    return count, np.asarray(labels, np.int32), np.asarray(stats[:, cv2.CC_STAT_AREA], np.int32)


_SUBDIVISION = 4
"""Subdivision of pixels: OpenCV's outlines pass through pixel centres, so half a pixel is lost."""


def outer_outline(rows: NDArray[np.int64], columns: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the outline of the largest connected piece of some pixels, with few corners.

    Returns:
        x and y of corners [corners, 2], clockwise on the screen; a pixel extends from its column
        and row to the next ones.
    """
    import cv2

    top, left = int(rows.min()), int(columns.min())
    picture = np.zeros((int(rows.max()) - top + 1, int(columns.max()) - left + 1), np.uint8)
    picture[rows - top, columns - left] = 1
    finer = picture.repeat(_SUBDIVISION, axis=0).repeat(_SUBDIVISION, axis=1)
    outlines, _ = cv2.findContours(finer, cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_SIMPLE)
    largest = max(outlines, key=cv2.contourArea)
    simple = cv2.approxPolyDP(largest, 0.005 * cv2.arcLength(largest, True), True)
    corners = np.asarray(simple, np.float64).reshape(-1, 2)[::-1]
    return (corners + 0.5) / _SUBDIVISION + np.array([left, top])
