"""Keys and labels of all items, and sources of some of them."""

import hashlib
from pathlib import Path

import numpy as np

from jumar.data.images.class_folders import DiskTree, list_classes
from jumar.data.images.image_folder import ImageFolder
from jumar.data.images.listed import UNREADABLE, Chosen, keys_and_labels, labels_of
from jumar.data.samples import Record, fingerprint
from tests.data.pictures import pets, write_files
from tests.data.scenes import MemorySource


def test_files_are_identified_by_path_without_reading_them(tmp_path: Path) -> None:
    source = ImageFolder(tmp_path, list_classes(DiskTree(write_files(tmp_path, pets()))))
    for path in tmp_path.rglob("*.jpg"):
        path.write_bytes(b"")
    messages: list[str] = []
    keys, labels = keys_and_labels(source, messages.append)
    assert keys == [b"cat/0.jpg", b"cat/1.jpg", b"horse/0.jpg", b"horse/1.jpg"]
    assert (labels.tolist(), labels.dtype) == ([0, 0, 1, 1], np.int64)
    assert messages == []


def test_other_sources_are_read_and_identified_by_content() -> None:
    source = MemorySource([b"one", None, b"two", b"one"], [7, 8, 9, 0])
    keys, labels = keys_and_labels(source, lambda _: None)
    one, two = (hashlib.blake2b(each, digest_size=16).digest() for each in (b"one", b"two"))
    assert keys == [one, b"memory, entry 1", two, one]
    assert (labels.tolist(), labels.dtype) == ([7, -1, 9, 0], np.int64)
    assert labels_of(source, lambda _: None).tolist() == [7, UNREADABLE, 9, 0]


class Equal:
    """A source of many equal records."""

    classes = ()

    def __init__(self, count: int) -> None:
        self.count = count

    def __len__(self) -> int:
        return self.count

    def read(self, index: int) -> Record:
        del index
        return RECORD


RECORD = Record(encoded=b"-", label=2, origin="-")


def test_reading_more_than_a_hundred_thousand_items_is_announced() -> None:
    messages: list[str] = []
    assert labels_of(Equal(100_000), messages.append).tolist() == [2] * 100_000
    assert messages == []
    labels_of(Equal(100_001), messages.append)
    assert messages == ["reading the labels of 100001 samples, which takes a while"]


class Ahead(MemorySource):
    """A source that notes what is read ahead."""

    fingerprint = "of the whole"

    def __init__(self) -> None:
        super().__init__([b"0", b"1", b"2", b"3"], [4, 5, 6, 7], ("a", "b"))
        self.noted: list[list[int]] = []

    def read_ahead(self, items: list[int]) -> None:
        self.noted.append(items)


def test_selected_items_form_a_source_in_the_given_order() -> None:
    source, indices = Ahead(), np.array([3, 0, 3])
    chosen = Chosen(source, indices)
    assert len(chosen) == 3
    assert tuple(chosen.classes) == ("a", "b")
    assert [chosen.read(index).label for index in range(3)] == [7, 4, 7]
    chosen.read_ahead([1, 2])
    assert source.noted == [[0, 3]]
    assert chosen.fingerprint == fingerprint(b"of the whole", indices.tobytes())
    assert Chosen(source, indices, "own").fingerprint == "own"
    plain = Chosen(MemorySource([b"0"]), np.array([0]))
    plain.read_ahead([0])
    assert plain.fingerprint == fingerprint(b"", bytes(8))
