"""Reading all items of a part with several threads, a few items at a time."""

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor

from jumar.data.checking.item import Item, ItemReader

_AHEAD = 4
"""Number of items each thread may be ahead of the slowest one; this bounds memory."""


def scanned(reader: ItemReader, *, workers: int, done: Callable[[int], None]) -> Iterator[Item]:
    """The items of a part, in order.

    Args:
        reader: The part.
        workers: Number of threads; decoding releases the interpreter's lock.
        done: Called with the number of items read so far.
    """
    pool = ThreadPoolExecutor(max_workers=workers)
    pending: deque[Future[Item]] = deque()
    try:
        read_count = 0
        for index in range(len(reader)):
            pending.append(pool.submit(reader.item, index))
            if len(pending) > _AHEAD * workers:
                yield pending.popleft().result()
                read_count += 1
                done(read_count)
        while pending:
            yield pending.popleft().result()
            read_count += 1
            done(read_count)
    finally:
        # After Ctrl-C, do not wait for items that were not started.
        pool.shutdown(wait=True, cancel_futures=True)
