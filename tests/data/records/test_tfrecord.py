"""Framing: what is written is read, and no damage goes unseen."""

import struct
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jumar.data.records.offset_files import OffsetFiles
from jumar.data.records.tfrecord import (
    RecordFileError,
    frame,
    index_many,
    index_records,
    masked_crc,
    read_payload,
)
from jumar.data.samples import CorruptRecord
from jumar.ground.errors import UserError

PAYLOADS = st.lists(st.binary(max_size=300), max_size=8)


def framed(payloads: list[bytes]) -> bytes:
    parts: list[bytes] = []
    for payload in payloads:
        header, footer = frame(payload)
        parts += [header, payload, footer]
    return b"".join(parts)


def read_all(path: Path) -> list[bytes]:
    index, files = index_records(path), OffsetFiles([path])
    return [
        read_payload(files, 0, int(offset), int(length), "here")
        for offset, length in zip(index.offsets, index.lengths, strict=True)
    ]


@pytest.fixture(scope="module")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("records") / "one.tfrecord"


@given(payloads=PAYLOADS)
def test_every_payload_that_was_framed_is_read_back(scratch: Path, payloads: list[bytes]) -> None:
    scratch.write_bytes(framed(payloads))
    assert read_all(scratch) == payloads


@given(payloads=PAYLOADS.filter(bool), where=st.data())
def test_any_flipped_bit_is_detected_and_harms_no_record_before_it(
    scratch: Path, payloads: list[bytes], where: st.DataObject
) -> None:
    content = bytearray(framed(payloads))
    bit = where.draw(st.integers(0, 8 * len(content) - 1))
    content[bit // 8] ^= 1 << bit % 8
    scratch.write_bytes(content)
    damaged = next(
        number for number in range(len(payloads)) if bit // 8 < len(framed(payloads[: number + 1]))
    )
    try:
        index = index_records(scratch)
    except RecordFileError as error:
        index = error.good
    assert len(index) in (damaged, len(payloads))
    files = OffsetFiles([scratch])
    for number, (offset, length) in enumerate(zip(index.offsets, index.lengths, strict=True)):
        if number == damaged:
            with pytest.raises(CorruptRecord, match="checksum"):
                read_payload(files, 0, int(offset), int(length), "here")
        else:
            read = read_payload(files, 0, int(offset), int(length), "here")
            assert read == payloads[number]


@given(payloads=PAYLOADS.filter(bool), where=st.data())
def test_a_file_cut_anywhere_but_between_records_is_an_error(
    scratch: Path, payloads: list[bytes], where: st.DataObject
) -> None:
    content = framed(payloads)
    edges = [len(framed(payloads[:number])) for number in range(len(payloads) + 1)]
    cut = where.draw(st.integers(0, len(content)))
    scratch.write_bytes(content[:cut])
    if cut in edges:
        assert read_all(scratch) == payloads[: edges.index(cut)]
        return
    with pytest.raises(RecordFileError, match="ends inside") as caught:
        index_records(scratch)
    assert len(caught.value.good) == sum(edge <= cut for edge in edges) - 1


@settings(max_examples=20)
@given(length=st.integers(2**20, 2**64 - 1))
def test_a_hostile_length_with_a_valid_checksum_is_refused_without_memory(
    scratch: Path, length: int
) -> None:
    head = struct.pack("<Q", length)
    scratch.write_bytes(head + struct.pack("<I", masked_crc(head)) + bytes(50))
    with pytest.raises(RecordFileError, match="ends inside a record"):
        index_records(scratch)


def test_the_error_of_a_damaged_length_names_file_byte_and_what_to_do(tmp_path: Path) -> None:
    path = tmp_path / "train-00000-of-00001"
    content = bytearray(framed([b"first", b"second"]))
    content[12 + 5 + 4] ^= 1
    path.write_bytes(content)
    with pytest.raises(RecordFileError) as caught:
        index_records(path)
    assert str(caught.value).startswith(f"{path}, byte 21: the checksum of a record length")
    assert "after 1 intact record" in str(caught.value)
    assert "Copy or download" in caught.value.todo


def test_small_and_large_records_may_alternate(tmp_path: Path) -> None:
    payloads = [bytes([number % 251]) * (9 if number % 3 else 70_000) for number in range(60)]
    path = tmp_path / "mixed"
    path.write_bytes(framed(payloads))
    assert read_all(path) == payloads


def test_many_files_are_indexed_in_the_order_given(tmp_path: Path) -> None:
    paths = [tmp_path / str(number) for number in range(12)]
    for number, path in enumerate(paths):
        path.write_bytes(framed([b"x"] * number))
    found = index_many(paths, [str(path) for path in paths])
    assert [len(index) for index in found] == list(range(12))


def test_a_file_that_shrank_after_indexing_is_a_fault_of_its_record(tmp_path: Path) -> None:
    path = tmp_path / "shrinks"
    path.write_bytes(framed([b"abc" * 100]))
    files = OffsetFiles([path])
    path.write_bytes(path.read_bytes()[:50])
    with pytest.raises(CorruptRecord, match="truncated while in use"):
        read_payload(files, 0, 12, 300, "here")


def test_a_record_too_large_for_an_image_is_not_read(tmp_path: Path) -> None:
    with pytest.raises(CorruptRecord, match=r"300 MiB for one image; at most 256 MiB"):
        read_payload(OffsetFiles([tmp_path / "none"]), 0, 12, 300 * 2**20, "here")


def test_a_file_that_is_not_there_is_an_error_of_the_user(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="there is no such file"):
        index_records(tmp_path / "none")
