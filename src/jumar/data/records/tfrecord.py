"""TFRecord files: framing, checksums, and an index for reading any record.

A record is the length of its payload (u64, little-endian), the masked CRC-32C of those eight
bytes, the payload, and the masked CRC-32C of the payload. Sources: TensorFlow,
core/lib/io/record_writer.h and core/lib/hash/crc32c.h.
"""

import os
from array import array
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Protocol

import google_crc32c
import numpy as np
from numpy.typing import NDArray

from jumar.data.records.offset_files import MAX_IMAGE_BYTES, too_large
from jumar.data.samples import CorruptRecord
from jumar.ground.errors import UserError
from jumar.ground.paths import open_to_read
from jumar.ground.text import counted

HEADER_BYTES = 12
FOOTER_BYTES = 4
_MASK_DELTA = 0xA282EAD8
_READ_AHEAD = 65536
_SMALL_RECORD = 4096


class RecordFileError(UserError):
    """The framing of a TFRecord file is damaged, so that later records cannot be found.

    Attributes:
        good: Index of the intact records before the damage.
    """

    def __init__(self, reason: str, *, where: str, good: "RecordIndex") -> None:
        super().__init__(
            f"{reason}, after {counted(len(good), 'intact record')}",
            where=where,
            todo="Copy, download or write this file again: the rest cannot be read.",
        )
        self.good = good


@dataclass(frozen=True, kw_only=True)
class RecordIndex:
    """The positions of the payloads in a plain TFRecord file."""

    offsets: NDArray[np.int64]
    """First byte of each payload."""
    lengths: NDArray[np.int64]
    """Bytes of each payload."""

    def __len__(self) -> int:
        return len(self.offsets)


def masked_crc(data: "bytes | NDArray[np.uint8]") -> int:
    """Return the CRC-32C of some bytes, masked as TFRecord stores it."""
    return masked(google_crc32c.value(data))


def masked(crc: int) -> int:
    """Mask a CRC-32C as TensorFlow stores it, because the CRC of data with its CRC is weak."""
    return ((crc >> 15 | crc << 17) + _MASK_DELTA) & 0xFFFFFFFF


def framed_payload(payload: bytes) -> bytes:
    """Return a payload as a record of a TFRecord file."""
    return b"".join((_header(len(payload)), payload, masked_crc(payload).to_bytes(4, "little")))


@lru_cache(maxsize=4096)
def _header(payload_length: int) -> bytes:
    length = payload_length.to_bytes(8, "little")
    return length + masked_crc(length).to_bytes(4, "little")


def header_length(header: bytes) -> int | None:
    """Return the payload length in a 12-byte header, or None if its checksum is wrong."""
    length = header[:8]
    if masked_crc(length) != int.from_bytes(header[8:], "little"):
        return None
    return int.from_bytes(length, "little")


def index_records(path: Path, name: str = "") -> RecordIndex:
    """Find every record of a plain TFRecord file by its headers, whose checksums are verified.

    Args:
        path: The uncompressed file.
        name: Its name in error messages; its path if empty.

    Raises:
        RecordFileError: A header is damaged, or the file ends inside a record. TensorFlow's reader
            silently stops at a truncated header.
        UserError: The file cannot be read.
    """
    name = name or str(path)
    try:
        with open_to_read(path) as file:
            descriptor = file.fileno()
            size = os.fstat(descriptor).st_size
            return scan_records(
                lambda length, position: os.pread(descriptor, length, position), size, name
            )
    except OSError as error:
        raise UserError(f"cannot be read: {error.strerror}", where=name) from error


def index_many(paths: Sequence[Path], names: Sequence[str], threads: int = 8) -> list[RecordIndex]:
    """Call `index_records` for several files, in threads because reads wait for the disk."""
    with ThreadPoolExecutor(max_workers=max(1, min(threads, len(paths)))) as pool:
        return list(pool.map(index_records, paths, names))


def scan_records(
    read: Callable[[int, int], bytes], size: int, name: str, *, block_bytes: int = HEADER_BYTES
) -> RecordIndex:
    """Find every record of a plain TFRecord file by its headers; see `index_records`.

    Args:
        read: Called with a number of bytes and their position; returns the bytes, fewer at the end.
        size: Size of the file in bytes.
        name: Its name in error messages.
        block_bytes: Minimum size of a read; should be large if each read is slow.

    Raises:
        RecordFileError: A header is damaged, or the file ends inside a record.
    """
    offsets, lengths = array("q"), array("q")

    def damaged(reason: str, offset: int) -> RecordFileError:
        return RecordFileError(
            reason, where=f"{name}, byte {offset}", good=_index(offsets, lengths)
        )

    position = 0
    block, block_start, ahead = b"", 0, block_bytes
    while position < size:
        offset = position - block_start
        if offset + HEADER_BYTES > len(block):
            block, block_start, offset = read(ahead, position), position, 0
            if len(block) < HEADER_BYTES:
                raise damaged(
                    f"the file ends inside a record header ({len(block)} of 12)", position
                )
        length = header_length(block[offset : offset + HEADER_BYTES])
        if length is None:
            raise damaged("the checksum of a record length does not match", position)
        end = position + HEADER_BYTES + length + FOOTER_BYTES
        if end > size:
            raise damaged(
                f"the file ends inside a record: {end - position} bytes expected, "
                f"{size - position} present",
                position,
            )
        offsets.append(position + HEADER_BYTES)
        lengths.append(length)
        # Reading ahead saves calls if many headers fit into a block, but would otherwise read the
        # whole file.
        ahead = max(block_bytes, _READ_AHEAD if length < _SMALL_RECORD else HEADER_BYTES)
        position = end
    return _index(offsets, lengths)


def _index(offsets: "array[int]", lengths: "array[int]") -> RecordIndex:
    return RecordIndex(
        offsets=np.array(offsets, dtype=np.int64), lengths=np.array(lengths, dtype=np.int64)
    )


class ReadAtOffsets(Protocol):
    """Files that are read at offsets: `OffsetFiles`, or objects of a store."""

    def read(self, file_index: int, offset: int, length: int) -> bytes:
        """Read bytes of one file; fewer only at its end. Raises OSError."""
        ...


def read_payload(
    files: ReadAtOffsets, file_index: int, offset: int, length: int, origin: str
) -> bytes:
    """Read the payload of one indexed record, and verify its checksum.

    Args:
        files: The plain files.
        file_index: Index of the file.
        offset: First byte of the payload.
        length: Size of the payload in bytes.
        origin: The record's origin, for errors.

    Raises:
        CorruptRecord: The payload cannot be read, is too large for an image, or does not match its
            checksum.
    """
    if length > MAX_IMAGE_BYTES:
        raise CorruptRecord(origin, too_large(length))
    try:
        data = files.read(file_index, offset, length + FOOTER_BYTES)
    except OSError as error:
        raise CorruptRecord(origin, error) from error
    if len(data) < length + FOOTER_BYTES:
        raise CorruptRecord(origin, "the file was truncated while in use")
    payload = data[:length]
    if masked_crc(payload) != int.from_bytes(data[length:], "little"):
        raise CorruptRecord(origin, f"the checksum of its {length} bytes does not match")
    return payload
