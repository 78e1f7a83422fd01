"""Class folders on the disk."""

import pickle
from pathlib import Path

import pytest

from jumar.data.images.class_folders import DiskTree, list_classes
from jumar.data.images.image_folder import ImageFolder
from jumar.data.samples import CorruptRecord
from tests.data.pictures import MIXED, pets, write_files


def opened(root: Path) -> ImageFolder:
    return ImageFolder(root, list_classes(DiskTree(root)))


def test_images_of_every_format_are_read_byte_for_byte(tmp_path: Path) -> None:
    write_files(tmp_path, {f"all/{name}": content for name, content in MIXED.items()})
    source = opened(tmp_path)
    result = {(record := source.read(index)).origin: record for index in range(len(source))}
    assert {Path(origin).name: record.encoded for origin, record in result.items()} == MIXED
    assert {record.label for record in result.values()} == {0}


def test_labels_are_positions_in_the_classes(tmp_path: Path) -> None:
    source = opened(write_files(tmp_path, pets()))
    labels = [source.read(index).label for index in range(len(source))]
    assert list(source.classes) == ["cat", "horse"]
    assert labels == [0, 0, 1, 1]


def test_unreadable_file_is_a_fault_with_its_path(tmp_path: Path) -> None:
    source = opened(write_files(tmp_path, {**pets(), "cat/empty.jpg": b""}))
    with pytest.raises(CorruptRecord, match=r"empty\.jpg: the file is empty"):
        source.read(2)
    (tmp_path / "cat/0.jpg").unlink()
    with pytest.raises(CorruptRecord, match=r"0\.jpg: cannot be read: No such file"):
        source.read(0)


def test_pickled_source_reads_the_same(tmp_path: Path) -> None:
    source = opened(write_files(tmp_path, pets()))
    copy = pickle.loads(pickle.dumps(source))
    assert [copy.read(index) for index in range(4)] == [source.read(index) for index in range(4)]


def test_labels_keys_and_fingerprint_match_the_listing(tmp_path: Path) -> None:
    source = opened(write_files(tmp_path, pets()))
    listing = list_classes(DiskTree(tmp_path))
    assert source.labels.tolist() == [0, 0, 1, 1]
    assert [source.key(index) for index in range(4)] == list(listing.paths)
    assert source.fingerprint == listing.fingerprint
    assert len(source) == 4
