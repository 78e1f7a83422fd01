"""Progressive scale expansion: grows the smallest kernels, which separate words, to whole words.

The result is the same as with the original's queue: a pixel belongs to the first word that reaches
it, starting row by row, and visiting the neighbours left, right, above, below of each pixel in
turn; a pixel without free neighbours waits for the next kernel. Here, all pixels of the queue
advance by one step at a time.
"""

from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jumar.data.polygons.drawing import components


def expanded(kernels: NDArray[Any], *, least_area: int = 10) -> NDArray[np.int32]:
    """Return the word of each pixel.

    Args:
        kernels: Nonzero where a pixel is within the kernel of a word, [kernels, rows, columns], the
            smallest kernel first.
        least_area: Minimum number of pixels of a word's smallest kernel; smaller ones are dropped.

    Returns:
        Numbers of words [rows, columns], 0 for none. Words, including dropped ones, are numbered in
        row-major order of the first pixels of their smallest kernels.
    """
    count, rows, columns = kernels.shape
    # With a border of one pixel, neighbours are fixed offsets in a flat array.
    padded = np.zeros((count, rows + 2, columns + 2), bool)
    padded[:, 1:-1, 1:-1] = kernels
    labels = np.zeros((rows + 2, columns + 2), np.int32)
    seeds = np.ascontiguousarray(padded[0, 1:-1, 1:-1]).view(np.uint8)
    number, component_of, areas = components(seeds)
    new_numbers = np.arange(number, dtype=np.int32)
    new_numbers[areas < least_area] = 0
    new_numbers[0] = 0
    labels[1:-1, 1:-1] = new_numbers.take(component_of)
    if count > 1:
        _grow(labels, padded[1:])
    return np.ascontiguousarray(labels[1:-1, 1:-1])


def _grow(labels: NDArray[np.int32], kernels: NDArray[np.bool_]) -> None:
    """Expand the labels through the kernels, in place."""
    steps = np.array([-1, 1, -labels.shape[1], labels.shape[1]])
    # Pixels that this or a later kernel may still claim; pixels without such a neighbour need not
    # wait.
    open_later = list(accumulate(kernels[::-1], np.logical_or))[::-1]
    unclaimed = labels == 0
    waiting = np.flatnonzero(_has_neighbour(open_later[0] & unclaimed) & ~unclaimed)
    flat = labels.reshape(-1)
    hit_of = np.empty(flat.size, np.int64)
    for index, kernel in enumerate(kernels):
        free_pixels = kernel & unclaimed
        free = free_pixels.reshape(-1)
        front, resting = waiting, [waiting[:0]]
        while len(front):
            # Methods, since indexing takes twice as long for a few hundred pixels.
            reaches = np.empty((len(front), 4), bool)
            for direction, step in enumerate(steps.tolist()):
                reaches[:, direction] = free.take(front + step)
            hits = reaches.reshape(-1).nonzero()[0]
            if not len(hits):
                resting.append(front)
                break
            reached = front.take(hits >> 2) + steps.take(hits & 3)
            # Written last to first, so that the first to reach a pixel wins.
            hit_of[reached[::-1]] = hits[::-1]
            first = (hit_of.take(reached) == hits).nonzero()[0]
            reached, sources = reached.take(first), hits.take(first) >> 2
            flat[reached] = flat.take(front.take(sources))
            free[reached] = False
            is_resting = np.ones(len(front), bool)
            is_resting[sources] = False
            resting.append(front.compress(is_resting))
            front = reached
        waiting = np.concatenate(resting)
        if index + 1 < len(kernels):
            unclaimed &= ~kernel | free_pixels
            is_useful = _has_neighbour(open_later[index + 1] & unclaimed)
            waiting = waiting.compress(is_useful.reshape(-1).take(waiting))


def _has_neighbour(pixels: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return where a neighbour is True; the border of one pixel stays False."""
    beside = np.zeros_like(pixels)
    beside[1:-1, 1:-1] = pixels[1:-1, :-2] | pixels[1:-1, 2:] | pixels[:-2, 1:-1] | pixels[2:, 1:-1]
    return beside
