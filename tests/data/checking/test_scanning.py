"""Items come in order, are counted, and are not read far ahead."""

import threading
import time

import pytest

from jumar.data.checking.item import Item
from jumar.data.checking.scanning import scanned


class Numbered:
    """Items named by their number, the first of each few the slowest."""

    def __init__(self, count: int, seconds: float = 0.0) -> None:
        self.count = count
        self.seconds = seconds
        self.begun: list[int] = []
        self.ended: list[int] = []

    def __len__(self) -> int:
        return self.count

    def item(self, index: int) -> Item:
        self.begun.append(index)
        time.sleep(self.seconds * (index % 3 == 0))
        self.ended.append(index)
        return Item(where=str(index))


@pytest.mark.parametrize("count", [0, 3, 40])
def test_items_from_several_threads_arrive_in_order_and_are_counted(count: int) -> None:
    done: list[int] = []
    items = list(scanned(Numbered(count, 0.002), workers=3, done=done.append))
    assert [item.where for item in items] == [str(index) for index in range(count)]
    assert done == list(range(1, count + 1))


@pytest.mark.parametrize("workers", [1, 2])
def test_each_thread_is_at_most_four_items_ahead(workers: int) -> None:
    reader = Numbered(30)
    items = scanned(reader, workers=workers, done=lambda _: None)
    assert reader.begun == []
    for taken in range(3):
        assert next(items).where == str(taken)
        until = time.monotonic() + 5
        while len(reader.ended) <= 4 * workers + taken and time.monotonic() < until:
            time.sleep(0.001)
        time.sleep(0.02)
        assert sorted(reader.ended) == list(range(4 * workers + taken + 1))
    items.close()


def test_stopping_waits_only_for_started_items() -> None:
    threads = threading.active_count()
    reader = Numbered(30, 0.05)
    items = scanned(reader, workers=1, done=lambda _: None)
    next(items)
    items.close()
    assert reader.begun == reader.ended
    assert len(reader.begun) < 5
    assert threading.active_count() <= threads
