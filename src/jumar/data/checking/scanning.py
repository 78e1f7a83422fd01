"""Reads all items of a part with several threads, a limited number of items ahead."""

from collections.abc import Callable, Iterator
from contextlib import closing

from jumar.data.checking.item import Item, ItemReader
from jumar.ground.processes import in_order

_AHEAD = 4
"""Items per thread that are read ahead; this limits memory."""


def scanned(reader: ItemReader, *, workers: int, done: Callable[[int], None]) -> Iterator[Item]:
    """Yield the items of a part, in order.

    Args:
        reader: The part.
        workers: Number of threads; decoding releases the interpreter's lock.
        done: Called with the number of items read so far.
    """
    ahead = _AHEAD * workers + 1
    with closing(in_order(reader.item, range(len(reader)), threads=workers, ahead=ahead)) as items:
        for read_count, item in enumerate(items, start=1):
            yield item
            done(read_count)
