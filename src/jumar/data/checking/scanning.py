"""Reads all items of a part with several threads, a limited number of items ahead."""

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import islice

from jumar.data.checking.item import Item, ItemReader

_AHEAD = 4
"""Items per thread that are read ahead; this limits memory."""


def scanned(reader: ItemReader, *, workers: int, done: Callable[[int], None]) -> Iterator[Item]:
    """Yield the items of a part, in order.

    Args:
        reader: The part.
        workers: Number of threads; decoding releases the interpreter's lock.
        done: Called with the number of items read so far.
    """
    pool = ThreadPoolExecutor(max_workers=workers)
    try:
        submissions = (pool.submit(reader.item, index) for index in range(len(reader)))
        pending = deque(islice(submissions, _AHEAD * workers + 1))
        for read_count in range(1, len(reader) + 1):
            yield pending.popleft().result()
            done(read_count)
            pending.extend(islice(submissions, 1))
    finally:
        # After Ctrl-C, drop the items that no thread has started.
        pool.shutdown(wait=True, cancel_futures=True)
