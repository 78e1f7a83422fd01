"""A cache of decoded images, shared by a process and the workers it forks.

A patch of 50 x 50 pixels is cut and made noisy in a sixth of a millisecond; its photograph takes
one millisecond to decode and ten to decode and resize. Without a cache a worker would do nothing
else.
"""

import mmap
import multiprocessing
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

_PATIENCE_S = 0.1
_START, _HEIGHT, _WIDTH, _CHANNELS = range(4)


class PictureCache:
    """A cache of images by number, without eviction.

    Images that no longer fit are not cached: since patches are drawn equally from all images,
    evicting an old one for a new one would gain nothing. The memory is reserved on creation and
    used as it fills, so forked workers share one copy.

    A killed worker may hold the lock forever. So no process waits for it longer than a tenth of a
    second; one that does not get it decodes the image, which only costs time.

    Args:
        places: Number of images.
        limit: The most bytes of decoded pixels to cache; 0 caches nothing.
    """

    def __init__(self, places: int, limit: int) -> None:
        self._places = places
        self._limit = limit
        self._make()

    def _make(self) -> None:
        self._lock = multiprocessing.get_context("fork").Lock()
        self._pixels = np.frombuffer(mmap.mmap(-1, max(1, self._limit)), dtype=np.uint8)
        # One extra row, whose first number is the count of bytes in use.
        table = mmap.mmap(-1, (self._places + 1) * 4 * 8)
        self._table = np.frombuffer(table, dtype=np.int64).reshape(-1, 4)
        self._seen: dict[int, NDArray[np.uint8]] = {}

    def __getstate__(self) -> Mapping[str, int]:
        return {"places": self._places, "limit": self._limit}

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        # Only a process that was not forked gets here, and it cannot share the memory.
        self._places, self._limit = state["places"], state["limit"]
        self._make()

    def get(self, place: int) -> NDArray[np.uint8] | None:
        """The pixels [height, width, channels] of an image, not to be modified, or None."""
        cached = self._seen.get(place)
        if cached is not None or not self._limit:
            return cached
        # Under the lock, because another core may see the table's new row before the pixels.
        if not self._lock.acquire(timeout=_PATIENCE_S):
            return None
        row = self._table[place].tolist()
        self._lock.release()
        if not row[_CHANNELS]:
            return None
        shape = (row[_HEIGHT], row[_WIDTH], row[_CHANNELS])
        size = shape[0] * shape[1] * shape[2]
        pixels = self._pixels[row[_START] : row[_START] + size].reshape(shape)
        pixels.flags.writeable = False
        self._seen[place] = pixels
        return pixels

    def put(self, place: int, pixels: NDArray[np.uint8]) -> None:
        """Cache an image [height, width, channels] if there is room for it."""
        usage_row = self._table[self._places]
        if int(usage_row[0]) + pixels.size > self._limit:
            return
        if not self._lock.acquire(timeout=_PATIENCE_S):
            return
        try:
            start = int(usage_row[0])
            if start + pixels.size > self._limit or self._table[place, _CHANNELS]:
                return
            self._pixels[start : start + pixels.size] = pixels.reshape(-1)
            self._table[place] = (start, *pixels.shape)
            usage_row[0] = start + pixels.size
        finally:
            self._lock.release()
