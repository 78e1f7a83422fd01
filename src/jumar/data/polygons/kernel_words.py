"""Converts PSENet's maps to words: thresholds, expansion, outlines."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from jumar.data.polygons.drawing import outer_outline, smallest_rectangles
from jumar.data.polygons.expansion import expanded
from jumar.data.polygons.regions import Corners, signed_area

Outline = Literal["rectangle", "polygon"]


@dataclass(frozen=True, kw_only=True, eq=False)
class Detection:
    """A word detected by a network.

    Attributes:
        corners: x and y of each corner [corners, 2], clockwise on the screen.
        score: Confidence, 0 to 1.
    """

    corners: Corners
    score: float


def words_of_kernels(
    maps: NDArray[np.float32],
    size: tuple[int, int],
    *,
    threshold: float = 0.9,
    least_area: int = 10,
    least_score: float = 0.0,
    outline: Outline = "rectangle",
) -> list[Detection]:
    """Return the words in the maps of an image.

    Args:
        maps: Kernel maps, 0 to 1, [6, rows, columns], the smallest kernel first.
        size: Height and width of the area covered by the maps, in pixels of the result.
        threshold: Pixels with higher values are within a kernel.
        least_area: Minimum number of pixels of a word's smallest kernel.
        least_score: Minimum score of a word: the mean of the last map over its pixels.
        outline: `rectangle` for the smallest rectangle, `polygon` to follow curved words.
    """
    labels = expanded(maps > threshold, least_area=least_area)
    groups, scores = _members(labels, maps[-1])
    if outline == "rectangle":
        outlines = list(smallest_rectangles(_hull_points(groups, labels.shape, size)))
    else:
        stretch = (size[1] / labels.shape[1], size[0] / labels.shape[0])
        pixels = (np.divmod(group, labels.shape[1]) for group in groups)
        outlines = [outer_outline(*positions) * stretch for positions in pixels]
    return [
        Detection(corners=corners, score=score)
        for corners, score in zip(outlines, scores, strict=True)
        if score >= least_score and len(corners) > 2 and signed_area(corners) >= 1
    ]


def _members(
    labels: NDArray[np.int32], scores: NDArray[np.float32]
) -> tuple[list[NDArray[np.int64]], list[float]]:
    """Return the pixels of each word, row by row, and their mean score."""
    positions = np.flatnonzero(labels)
    if not len(positions):
        return [], []
    positions = positions[np.argsort(labels.reshape(-1)[positions], kind="stable")]
    starts = np.flatnonzero(np.diff(labels.reshape(-1)[positions], prepend=0))
    sums = np.add.reduceat(scores.reshape(-1)[positions].astype(np.float64), starts)
    counts = np.diff(starts, append=len(positions))
    return np.split(positions, starts[1:]), (sums / counts).tolist()


def _hull_points(
    groups: list[NDArray[np.int64]], shape: tuple[int, ...], size: tuple[int, int]
) -> list[NDArray[np.float32]]:
    """Return points (x, y) with the same hull as each word, upsampled by nearest neighbour: the
    corners of the first and last upsampled pixels in each row.
    """
    if not groups:
        return []
    rows, columns = np.divmod(np.concatenate(groups), shape[1])
    word = np.repeat(np.arange(len(groups)), [len(group) for group in groups])
    first = np.flatnonzero(np.diff(rows, prepend=-1) | np.diff(word, prepend=-1))
    last = np.append(first[1:], len(rows)) - 1
    spans: list[NDArray[np.int64]] = []
    for axis, pixels in enumerate((rows, columns)):
        enlarged = np.arange(size[axis]) * shape[axis] // size[axis]
        low = np.searchsorted(enlarged, pixels[first], side="left")
        high = np.searchsorted(enlarged, pixels[last], side="right") - 1
        spans += [low, np.maximum(low, high)]
    top, bottom, left, right = spans
    corners = [(left, top), (right, top), (right, bottom), (left, bottom)]
    points = np.stack([np.stack(corner, axis=1) for corner in corners], axis=1)
    return np.split(points.astype(np.float32), np.flatnonzero(np.diff(word[first])) + 1)
