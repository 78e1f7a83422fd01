"""A cache of decoded images, shared by a process and the workers it forks.

Cutting a patch of 50 x 50 pixels and adding noise takes a sixth of a millisecond, but decoding its
photograph takes one, and decoding and resizing ten. Without a cache, a worker would do little else.
"""

import mmap
import multiprocessing
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

_LOCK_TIMEOUT_S = 0.1
_START, _HEIGHT, _WIDTH, _CHANNELS = range(4)


class PictureCache:
    """A cache of images by index, without eviction.

    Images that no longer fit are not cached: since patches are drawn equally from all images,
    evicting an old one for a new one would gain nothing. Address space is reserved on creation and
    memory used as it fills, so forked workers share one copy.

    A killed worker may never release the lock. So no process waits for it longer than a tenth of a
    second; without the lock it decodes the image, which only costs time.

    Args:
        count: Number of images.
        limit: Maximum size of the decoded pixels in bytes; 0 caches nothing.
    """

    def __init__(self, count: int, limit: int) -> None:
        self._count = count
        self._limit = limit
        self._allocate()

    def _allocate(self) -> None:
        self._lock = multiprocessing.get_context("fork").Lock()
        self._pixels = np.frombuffer(mmap.mmap(-1, max(1, self._limit)), dtype=np.uint8)
        # The first value of the extra row is the number of bytes in use.
        table = mmap.mmap(-1, (self._count + 1) * 4 * 8)
        self._table = np.frombuffer(table, dtype=np.int64).reshape(-1, 4)
        self._views: dict[int, NDArray[np.uint8]] = {}

    def __getstate__(self) -> Mapping[str, int]:
        return {"count": self._count, "limit": self._limit}

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        # Called only in processes that were not forked, which cannot share the memory.
        self._count, self._limit = state["count"], state["limit"]
        self._allocate()

    def get(self, index: int) -> NDArray[np.uint8] | None:
        """Return the read-only pixels [height, width, channels] of an image, or None."""
        cached = self._views.get(index)
        if cached is not None or not self._limit:
            return cached
        # The lock is needed because another core may see the new table row before the pixels.
        if not self._lock.acquire(timeout=_LOCK_TIMEOUT_S):
            return None
        row = self._table[index].tolist()
        self._lock.release()
        if not row[_CHANNELS]:
            return None
        shape = (row[_HEIGHT], row[_WIDTH], row[_CHANNELS])
        size = shape[0] * shape[1] * shape[2]
        pixels = self._pixels[row[_START] : row[_START] + size].reshape(shape)
        pixels.flags.writeable = False
        self._views[index] = pixels
        return pixels

    def put(self, index: int, pixels: NDArray[np.uint8]) -> None:
        """Cache an image [height, width, channels] if there is space for it."""
        usage_row = self._table[self._count]
        if int(usage_row[0]) + pixels.size > self._limit:
            return
        if not self._lock.acquire(timeout=_LOCK_TIMEOUT_S):
            return
        try:
            start = int(usage_row[0])
            if start + pixels.size > self._limit or self._table[index, _CHANNELS]:
                return
            self._pixels[start : start + pixels.size] = pixels.reshape(-1)
            self._table[index] = (start, *pixels.shape)
            usage_row[0] = start + pixels.size
        finally:
            self._lock.release()
