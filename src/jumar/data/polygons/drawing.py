"""What OpenCV does for text detectors: filled polygons, rectangles around points, components."""

from typing import Any

import numpy as np
from numpy.typing import NDArray


def fill(picture: NDArray[np.uint8], corners: NDArray[Any], value: int) -> None:
    """Fill a polygon in a picture [height, width]; corners [corners, 2] are cut to whole pixels."""
    import cv2

    cv2.fillPoly(picture, [corners.astype(np.int32)], [value])


def smallest_rectangle(points: NDArray[Any]) -> NDArray[np.float32]:
    """The rectangle of smallest area around points [N, 2].

    Returns:
        Its corners [4, 2], clockwise on the screen, the one nearest the top left first.
    """
    import cv2

    box = cv2.boxPoints(cv2.minAreaRect(points.astype(np.float32)))
    corners = np.asarray(box, np.float32)
    sides = np.roll(corners, -1, axis=0) - corners
    if sides[0, 0] * sides[1, 1] - sides[0, 1] * sides[1, 0] < 0:
        corners = corners[::-1]
    return np.roll(corners, -int(corners.sum(axis=1).argmin()), axis=0)


def components(picture: NDArray[np.uint8]) -> tuple[int, NDArray[np.int32], NDArray[np.int32]]:
    """Connected parts of a picture [height, width], side by side and not across corners.

    Returns:
        How many, with the background; the number of each pixel's part, int32 [height, width],
        0 for the background and then in the order of the first pixel row by row; and the pixels
        of each part.
    """
    import cv2

    count, labels, stats, _ = cv2.connectedComponentsWithStatsWithAlgorithm(
        picture, 4, cv2.CV_32S, cv2.CCL_SAUF
    )
    return count, np.asarray(labels, np.int32), np.asarray(stats[:, cv2.CC_STAT_AREA], np.int32)
