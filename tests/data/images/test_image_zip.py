"""Class folders in a zip: the same images as unpacked, and hostile zips."""

import multiprocessing
import os
import pickle
import struct
import zipfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from jumar.data.images import image_zip
from jumar.data.images.class_folders import list_classes
from jumar.data.images.image_zip import ImageZip, ZipTree
from jumar.data.images.sources import open_source
from jumar.data.samples import CorruptRecord
from jumar.ground.errors import UserError
from tests.data.pictures import MIXED, pets, write_zip


def opened(path: Path) -> ImageZip:
    tree = ZipTree(path)
    return ImageZip(tree, list_classes(tree))


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_images_of_every_format_are_read_byte_for_byte(tmp_path: Path, method: int) -> None:
    files = {f"all/{name}": content for name, content in MIXED.items()}
    source = opened(write_zip(tmp_path / "mixed.zip", files, method))
    result = [source.read(index) for index in range(len(source))]
    assert {record.origin.rpartition("/")[2]: record.encoded for record in result} == MIXED


def test_real_zip_is_read_like_zipfile_does(shared: Path) -> None:
    path = shared / "data" / "sign-digits-100px" / "val.zip"
    source = opened(path)
    assert len(source) == 300
    assert list(source.classes) == [str(digit) for digit in range(10)]
    with zipfile.ZipFile(path) as archive:
        for index in range(300):
            record = source.read(index)
            name = record.origin.removeprefix(f"{path}, ")
            assert record.encoded == archive.read(name)
            assert source.classes[record.label] == name.partition("/")[0]


def test_forked_workers_read_independently(shared: Path) -> None:
    source = opened(shared / "data" / "sign-digits-100px" / "val.zip")
    source.read(0)
    sizes = [len(source.read(index).encoded) for index in range(len(source))]

    def reads_all() -> bool:
        return all(
            len(source.read(index).encoded) == sizes[index]
            for _ in range(3)
            for index in range(len(source))
        )

    context = multiprocessing.get_context("fork")
    workers = [context.Process(target=lambda: os._exit(not reads_all())) for _ in range(2)]
    for worker in workers:
        worker.start()
    assert reads_all()
    for worker in workers:
        worker.join(30)
    assert [worker.exitcode for worker in workers] == [0, 0]


def test_pickled_source_reads_the_same(tmp_path: Path) -> None:
    source = opened(write_zip(tmp_path / "pets.zip", pets()))
    copy = pickle.loads(pickle.dumps(source))
    assert [copy.read(index) for index in range(4)] == [source.read(index) for index in range(4)]


def test_backslashes_hidden_files_and_leading_bytes_are_tolerated(tmp_path: Path) -> None:
    path = tmp_path / "pets.zip"
    content = pets()
    write_zip(
        path,
        {
            "cat\\0.jpg": content["cat/0.jpg"],
            "horse/0.jpg": content["horse/0.jpg"],
            "__MACOSX/cat/._0.jpg": b"-",
            "cat/.DS_Store": b"-",
            "../../etc/0.jpg": b"-",
        },
    )
    path.write_bytes(b"#!/bin/sh\n" + path.read_bytes())
    source = opened(path)
    assert list(source.classes) == ["cat", "horse"]
    assert source.read(0).encoded == content["cat/0.jpg"]
    assert len(source) == 2


def test_empty_class_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="1 of 3 class folders contains no image: 'dog'"):
        open_source(str(write_zip(tmp_path / "pets.zip", {**pets(), "dog/": b""})), "train")


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(where=st.data())
def test_flipped_bit_never_yields_wrong_bytes(tmp_path: Path, where: st.DataObject) -> None:
    path = write_zip(tmp_path / "pets.zip", pets())
    right = {
        record.origin: record.encoded for index in range(4) if (record := opened(path).read(index))
    }
    content = bytearray(path.read_bytes())
    bit = where.draw(st.integers(0, 8 * len(content) - 1))
    content[bit // 8] ^= 1 << bit % 8
    path.write_bytes(content)
    try:
        source = opened(path)
    except UserError:
        return
    for index in range(len(source)):
        try:
            record = source.read(index)
        except CorruptRecord:
            continue
        # A flipped bit in the directory may rename a file, which no checksum covers.
        assert record.encoded in right.values()


@pytest.mark.parametrize("content", [b"", b"no zip at all", b"PK\x03\x04 cut off"])
def test_non_zip_file_is_a_user_error(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "x.zip").write_bytes(content)
    with pytest.raises(UserError, match="not a zip file, or damaged"):
        opened(tmp_path / "x.zip")


def directory_entry(content: bytearray) -> int:
    return content.index(b"PK\x01\x02")


def test_encrypted_zip_is_refused_when_opened(tmp_path: Path) -> None:
    path = write_zip(tmp_path / "secret.zip", pets())
    content = bytearray(path.read_bytes())
    content[directory_entry(content) + 8] |= 1
    path.write_bytes(content)
    with pytest.raises(UserError, match=r"'cat/0\.jpg' is encrypted"):
        opened(path)


def test_absurd_declared_size_allocates_no_memory(tmp_path: Path) -> None:
    path = write_zip(tmp_path / "large.zip", pets())
    content = bytearray(path.read_bytes())
    struct.pack_into("<I", content, directory_entry(content) + 24, 2**32 - 2)
    path.write_bytes(content)
    with pytest.raises(CorruptRecord, match="the maximum is 256 MiB"):
        opened(path).read(0)


def test_zip_bomb_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(image_zip, "ALWAYS_ALLOWED", 2**16)
    path = write_zip(tmp_path / "bomb.zip", {"cat/0.bmp": bytes(2**22)})
    with pytest.raises(CorruptRecord, match="rejected as a zip bomb"):
        opened(path).read(0)


def test_other_compressions_are_a_fault_that_names_the_method(tmp_path: Path) -> None:
    path = write_zip(tmp_path / "lzma.zip", pets(), zipfile.ZIP_LZMA)
    with pytest.raises(CorruptRecord, match="packed with method 14"):
        opened(path).read(0)


def test_empty_member_is_a_fault(tmp_path: Path) -> None:
    with pytest.raises(CorruptRecord, match=r"pets\.zip, cat/0\.jpg: the file is empty"):
        opened(write_zip(tmp_path / "pets.zip", {"cat/0.jpg": b""})).read(0)


def test_tree_lists_folders_and_files_of_every_depth_without_hidden_ones(tmp_path: Path) -> None:
    names = [".hidden/a", "b/c/d.jpg", "b/c/e.jpg", "b/.x/y", "a.txt", "b/f/", "z/", "b/a.png"]
    tree = ZipTree(write_zip(tmp_path / "a.zip", dict.fromkeys(names, b"")))
    assert tree.entries("") == (["b", "z"], ["a.txt"])
    assert tree.entries("b") == (["c", "f"], ["a.png"])
    assert tree.entries("b/c") == ([], ["d.jpg", "e.jpg"])
    assert tree.entries("b/f") == tree.entries("z") == ([], [])
    assert sorted(tree.members) == ["a.txt", "b/a.png", "b/c/d.jpg", "b/c/e.jpg"]


def patched(path: Path, place: int, kind: str, value: int) -> ImageZip:
    """A zip whose directory says something else about its first member."""
    content = bytearray(path.read_bytes())
    struct.pack_into(kind, content, directory_entry(content) + place, value)
    path.write_bytes(content)
    return opened(path)


FLAGS, PACKED, SIZE, OFFSET = 8, 20, 24, 42
"""Where an entry of the directory has them."""


def reason(source: ImageZip) -> str:
    with pytest.raises(CorruptRecord) as caught:
        source.read(0)
    return caught.value.fault.reason


def test_folder_may_be_marked_as_encrypted(tmp_path: Path) -> None:
    path = write_zip(tmp_path / "a.zip", {"cat/": b"", **pets()})
    assert len(patched(path, FLAGS, "<H", 1)) == 4


def test_compression_ratio_above_200_is_a_bomb(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(image_zip, "ALWAYS_ALLOWED", 0)
    path = write_zip(tmp_path / "a.zip", {"cat/0.bmp": bytes(100_000)})
    packed = zipfile.ZipFile(path).infolist()[0].compress_size
    stated = f"does not have the {200 * packed} bytes that the zip's directory states"
    assert reason(patched(path, SIZE, "<I", 200 * packed)) == stated
    assert reason(patched(path, SIZE, "<I", 200 * packed + 1)) == (
        f"{packed} bytes that unpack to {200 * packed + 1}: rejected as a zip bomb"
    )


def test_up_to_16_mib_is_never_a_bomb(tmp_path: Path) -> None:
    path = write_zip(tmp_path / "a.zip", {"cat/0.bmp": bytes(2**24), "cat/1.bmp": bytes(2**24 + 1)})
    source = opened(path)
    assert source.read(0).encoded == bytes(2**24)
    with pytest.raises(CorruptRecord, match="unpack to 16777217: rejected as a zip bomb"):
        source.read(1)


@pytest.mark.parametrize("place", [PACKED, SIZE])
def test_members_are_limited_to_256_mib(tmp_path: Path, place: int) -> None:
    path = write_zip(tmp_path / "a.zip", pets(), zipfile.ZIP_STORED)
    accepted = reason(patched(path, place, "<I", 2**28))
    assert "rejected as a zip bomb" in accepted or "does not have the" in accepted
    assert "the maximum is 256 MiB" in reason(patched(path, place, "<I", 2**28 + 1))


def test_wrong_declared_size_is_a_fault(tmp_path: Path) -> None:
    size = len(pets()["cat/0.jpg"])
    for method in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        for wrong in (size - 1, size + 1):
            source = patched(write_zip(tmp_path / "a.zip", pets(), method), SIZE, "<I", wrong)
            assert reason(source) == (
                f"does not have the {wrong} bytes that the zip's directory states"
            )
    source = patched(write_zip(tmp_path / "a.zip", pets()), 16, "<I", 1)
    assert reason(source) == "its checksum does not match: the zip is damaged"


def test_offset_without_a_member_is_a_fault(tmp_path: Path) -> None:
    path = write_zip(tmp_path / "a.zip", pets())
    assert reason(patched(path, OFFSET, "<I", 7)) == (
        "no member begins at byte 7: the zip is damaged or was changed"
    )
    path = write_zip(tmp_path / "b.zip", pets())
    with zipfile.ZipFile(path, "a") as archive:
        archive.comment = b"PK\x03\x04"  # the beginning of a member at the end of the file
    end = path.stat().st_size - 4
    assert reason(patched(path, OFFSET, "<I", end)) == (
        f"no member begins at byte {end}: the zip is damaged or was changed"
    )


def test_extra_fields_before_the_data_are_skipped(tmp_path: Path) -> None:
    content = pets()["cat/0.jpg"]
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        for name in ("cat/0.jpg", "cat/1.jpg"):
            info = zipfile.ZipInfo(name)
            info.extra = struct.pack("<HH5s", 0x7075, 5, b"extra")
            archive.writestr(info, content)
    source = opened(tmp_path / "a.zip")
    assert [source.read(index).encoded for index in range(2)] == [content, content]
    assert source.labels.tolist() == [0, 0]
    assert [source.key(index) for index in range(len(source))] == ["cat/0.jpg", "cat/1.jpg"]
