"""PSENet's maps to words: thresholds, expansion, outlines."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from jumar.data.polygons.drawing import outer_outline, smallest_rectangle
from jumar.data.polygons.expansion import expanded
from jumar.data.polygons.regions import Corners, signed_area

Outline = Literal["rectangle", "polygon"]


@dataclass(frozen=True, kw_only=True, eq=False)
class Detection:
    """A word that a network found.

    Attributes:
        corners: x and y of each corner [corners, 2], clockwise on the screen.
        score: How certain it is, 0 to 1.
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
    """The words in the maps of a picture.

    Args:
        maps: 0 to 1, [6, rows, columns], the smallest kernel first.
        size: Height and width, in pixels of the result, of what the maps cover.
        threshold: What exceeds it is within a kernel.
        least_area: Fewest pixels of a word's smallest kernel.
        least_score: Words with a smaller one are dropped: the mean of the last map over the word.
        outline: `rectangle` is the smallest one, `polygon` follows curved words.
    """
    labels = expanded(maps > threshold, least_area=least_area)
    words: list[Detection] = []
    for rows, columns, score in _members(labels, maps[-1]):
        if score < least_score:
            continue
        if outline == "polygon":
            stretch = (size[1] / labels.shape[1], size[0] / labels.shape[0])
            corners = (outer_outline(rows, columns) + 0.5) * stretch
        else:
            ends = _row_ends(rows, columns)
            corners = smallest_rectangle(_enlarged(ends, labels.shape, size)).astype(np.float64)
        if len(corners) > 2 and signed_area(corners) >= 1:
            words.append(Detection(corners=corners, score=score))
    return words


def _members(
    labels: NDArray[np.int32], scores: NDArray[np.float32]
) -> list[tuple[NDArray[np.int64], NDArray[np.int64], float]]:
    """Rows and columns of each word's pixels, row by row, and their mean score."""
    places = np.flatnonzero(labels)
    places = places[np.argsort(labels.reshape(-1)[places], kind="stable")]
    numbers = labels.reshape(-1)[places]
    starts = np.flatnonzero(np.diff(numbers, prepend=0))
    groups = np.split(places, starts[1:]) if len(starts) else []
    flat = scores.reshape(-1)
    return [
        (*np.divmod(group, labels.shape[1]), float(flat[group].mean(dtype=np.float64)))
        for group in groups
    ]


def _row_ends(rows: NDArray[np.int64], columns: NDArray[np.int64]) -> NDArray[np.int64]:
    """The first and the last pixel of each row, as (row, column): all that a hull needs."""
    first = np.flatnonzero(np.diff(rows, prepend=-1))
    last = np.append(first[1:], len(rows)) - 1
    chosen = np.concatenate([first, last])
    return np.stack([rows[chosen], columns[chosen]], axis=1)


def _enlarged(
    ends: NDArray[np.int64], shape: tuple[int, ...], size: tuple[int, int]
) -> NDArray[np.float32]:
    """The outermost pixels, as (x, y), that become these pixels when `size` shrinks to `shape`.

    As if the labels had been enlarged by nearest neighbours and all pixels taken.
    """
    axes: list[tuple[NDArray[np.int64], NDArray[np.int64]]] = []
    for axis in (1, 0):
        of_pixel = np.arange(size[axis]) * shape[axis] // size[axis]
        first = np.searchsorted(of_pixel, ends[:, axis], side="left")
        last = np.searchsorted(of_pixel, ends[:, axis], side="right") - 1
        axes.append((first, np.maximum(first, last)))
    corners = [np.stack([x, y], axis=1) for x in axes[0] for y in axes[1]]
    return np.concatenate(corners).astype(np.float32)
