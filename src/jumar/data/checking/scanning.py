"""Reading all items of a part by several threads, a few of them at once."""

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor

from jumar.data.checking.item import Item, ItemReader

_AHEAD = 4
"""Items each thread may be ahead of the slowest one: what bounds the memory."""


def scanned(reader: ItemReader, *, workers: int, done: Callable[[int], None]) -> Iterator[Item]:
    """The items of a part, in order.

    Args:
        reader: The part.
        workers: Threads; decoding leaves the interpreter's lock to others.
        done: Called with how many items were read.
    """
    pool = ThreadPoolExecutor(max_workers=workers)
    waiting: deque[Future[Item]] = deque()
    try:
        read = 0
        for index in range(len(reader)):
            waiting.append(pool.submit(reader.item, index))
            if len(waiting) > _AHEAD * workers:
                yield waiting.popleft().result()
                read += 1
                done(read)
        while waiting:
            yield waiting.popleft().result()
            read += 1
            done(read)
    finally:
        # After Ctrl-C nobody waits for what was not begun.
        pool.shutdown(wait=True, cancel_futures=True)
