"""Framing: what is written can be read, and all damage is detected."""

import struct
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jumar.data.records.offset_files import OffsetFiles
from jumar.data.records.tfrecord import (
    RecordFileError,
    framed_payload,
    header_length,
    index_many,
    index_records,
    masked,
    masked_crc,
    read_payload,
    scan_records,
)
from jumar.data.samples import CorruptRecord
from jumar.ground.errors import UserError

PAYLOADS = st.lists(st.binary(max_size=300), max_size=8)


def framed(payloads: list[bytes]) -> bytes:
    return b"".join(map(framed_payload, payloads))


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
def test_every_framed_payload_round_trips(scratch: Path, payloads: list[bytes]) -> None:
    scratch.write_bytes(framed(payloads))
    assert read_all(scratch) == payloads


@given(payloads=PAYLOADS.filter(bool), where=st.data())
def test_any_flipped_bit_is_detected_without_affecting_earlier_records(
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
def test_file_truncated_within_a_record_is_an_error(
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
def test_hostile_length_with_a_valid_checksum_is_refused_without_allocation(
    scratch: Path, length: int
) -> None:
    head = struct.pack("<Q", length)
    scratch.write_bytes(head + struct.pack("<I", masked_crc(head)) + bytes(50))
    with pytest.raises(RecordFileError, match="ends inside a record"):
        index_records(scratch)


def test_damaged_length_error_names_file_offset_and_remedy(tmp_path: Path) -> None:
    path = tmp_path / "train-00000-of-00001"
    content = bytearray(framed([b"first", b"second"]))
    content[12 + 5 + 4] ^= 1
    path.write_bytes(content)
    with pytest.raises(RecordFileError) as caught:
        index_records(path)
    assert str(caught.value).startswith(f"{path}, byte 21: the checksum of a record length")
    assert "after 1 intact record" in str(caught.value)
    assert "Copy, download or write" in caught.value.todo


def test_small_and_large_records_may_alternate(tmp_path: Path) -> None:
    payloads = [bytes([number % 251]) * (9 if number % 3 else 70_000) for number in range(60)]
    path = tmp_path / "mixed"
    path.write_bytes(framed(payloads))
    assert read_all(path) == payloads


def test_many_files_are_indexed_in_the_order_given(tmp_path: Path) -> None:
    paths = [tmp_path / str(number) for number in range(12)]
    for number, path in enumerate(paths):
        path.write_bytes(framed([b"x"] * number))
    result = index_many(paths, [str(path) for path in paths])
    assert [len(index) for index in result] == list(range(12))


def test_file_that_shrank_after_indexing_is_a_fault_of_its_record(tmp_path: Path) -> None:
    path = tmp_path / "shrinks"
    path.write_bytes(framed([b"abc" * 100]))
    files = OffsetFiles([path])
    path.write_bytes(path.read_bytes()[:50])
    with pytest.raises(CorruptRecord, match="truncated while in use"):
        read_payload(files, 0, 12, 300, "here")


def test_record_too_large_for_an_image_is_not_read(tmp_path: Path) -> None:
    with pytest.raises(CorruptRecord, match=r"300 MiB for one image; the maximum is 256 MiB"):
        read_payload(OffsetFiles([tmp_path / "none"]), 0, 12, 300 * 2**20, "here")


def test_missing_file_is_a_user_error(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="there is no such file"):
        index_records(tmp_path / "none")


def test_frame_is_length_and_masked_checksums() -> None:
    """CRC-32C of "123456789" is 0xE3069283 (RFC 3720's polynomial), of nothing 0."""
    assert masked(0) == 0xA282EAD8
    rotated = (0xE3069283 >> 15 | 0xE3069283 << 17) % 2**32
    assert masked_crc(b"123456789") == masked(0xE3069283) == (rotated + 0xA282EAD8) % 2**32
    record = framed_payload(b"123456789")
    header, footer = record[:12], record[21:]
    assert record == header + b"123456789" + footer
    assert header[:8] == (9).to_bytes(8, "little")
    assert header[8:] == struct.pack("<I", masked_crc(header[:8]))
    assert footer == struct.pack("<I", masked_crc(b"123456789"))
    assert header_length(header) == 9
    assert header_length(header[:8] + bytes(4)) is None


def test_index_has_the_offset_of_each_payload(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(framed([b"abc", b"", b"d" * 5000, b"e"]))
    index = index_records(path)
    assert index.offsets.tolist() == [12, 31, 47, 5063]
    assert index.lengths.tolist() == [3, 0, 5000, 1]
    assert (index.offsets.dtype, index.lengths.dtype) == (np.int64, np.int64)
    assert len(index) == 4
    path.write_bytes(b"")
    assert len(index_records(path)) == 0


def test_headers_are_read_in_bulk_for_small_records_and_singly_for_large_ones() -> None:
    content = framed([b"a", b"b", b"c" * 4095, b"d" * 4096, b"e" * 9000, b"f", b"g" * 70_000, b"h"])
    lengths = [1, 1, 4095, 4096, 9000, 1, 70_000, 1]
    starts = [sum(16 + length for length in lengths[:number]) for number in range(8)]

    def calls(block_bytes: int | None) -> list[tuple[int, int]]:
        made: list[tuple[int, int]] = []

        def read(length: int, position: int) -> bytes:
            made.append((length, position))
            return content[position : position + length]

        more = {} if block_bytes is None else {"block_bytes": block_bytes}
        assert scan_records(read, len(content), "a", **more).lengths.tolist() == lengths
        return made

    # A block of 64 KiB after the first record holds the headers of all up to the largest.
    assert calls(None) == [(12, 0), (65536, starts[1]), (12, starts[7])]
    assert calls(20_000) == [(20_000, 0), (20_000, starts[7])]
    large = framed([b"d" * 4096, b"e" * 4095, b"f"])

    def read_large(length: int, position: int) -> bytes:
        seen.append((length, position))
        return large[position : position + length]

    seen: list[tuple[int, int]] = []
    scan_records(read_large, len(large), "a")
    assert seen == [(12, 0), (12, 4112), (65536, 4112 + 4111)]


def test_damage_is_reported_with_the_actual_bytes(tmp_path: Path) -> None:
    path = tmp_path / "a"
    content = framed([b"first", b"second"])

    def refused(changed: bytes, name: str = "") -> RecordFileError:
        path.write_bytes(changed)
        with pytest.raises(RecordFileError) as error:
            index_records(path, name)
        return error.value

    todo = "Copy, download or write this file again: the rest cannot be read."
    assert str(refused(content[:32])) == (
        f"{path}, byte 21: the file ends inside a record header (11 of 12), after 1 intact record\n"
        f"  {todo}"
    )
    error = refused(content[:-1], "its name")
    assert str(error) == (
        "its name, byte 21: the file ends inside a record: 22 bytes expected, 21 present, after 1 "
        f"intact record\n  {todo}"
    )
    assert error.good.offsets.tolist() == [12]
    damaged = refused(b"\x07" + content[1:])
    assert damaged.what == (
        "the checksum of a record length does not match, after 0 intact records"
    )
    path.write_bytes(content)
    assert len(index_records(path)) == 2


def test_payloads_are_refused_with_the_reason(tmp_path: Path) -> None:
    path = tmp_path / "a"
    content = bytearray(framed([b"first", b"second"]))
    content[-5] ^= 1
    path.write_bytes(content)
    files = OffsetFiles([path])
    assert read_payload(files, 0, 12, 5, "here") == b"first"

    def refused(offset: int, length: int, which: int = 0) -> str:
        with pytest.raises(CorruptRecord) as error:
            read_payload(OffsetFiles([path, tmp_path / "none"]), which, offset, length, "here")
        return str(error.value.fault)

    assert refused(33, 6) == "here: the checksum of its 6 bytes does not match"
    path.write_bytes(content[:-1])
    assert refused(33, 6) == "here: the file was truncated while in use"
    largest = 256 * 2**20
    # As large as allowed is read, or would be if there were a file.
    assert refused(12, largest, which=1) == "here: cannot be read: No such file or directory"
    assert refused(12, largest + 1, which=1) == (
        "here: 256 MiB for one image; the maximum is 256 MiB"
    )
