"""A variable's entry in a checkpoint's index, and the names of a partitioned variable's parts.

BundleHeaderProto {1: data files, 2: byte order, 3: version}, BundleEntryProto {1: element type,
2: shape, 3: data file, 4: offset, 5: size, 6: masked CRC-32C, 7: parts}, TensorSliceProto {1:
extent {1: start, 2: length, absent for the whole axis}}. The data of a part is stored under a key
made of the variable's name and the part's extents. Sources: TensorFlow,
core/protobuf/tensor_bundle.proto, core/framework/tensor_slice.proto,
core/util/saved_tensor_slice_util.cc, core/lib/strings/ordered_code.cc.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from jumar.data.records.wire import (
    DELIMITED,
    FIXED32,
    VARINT,
    delimited,
    encode_varint,
    fields,
    varint,
)
from jumar.weights.tensor_types import ElementType, decode_shape, element_type

HEADER_KEY = b""
_VERSION = 1
_INT64 = 2**63
_ESCAPES = {0x00: b"\0\xff", 0xFF: b"\xff\0"}


@dataclass(frozen=True)
class Extent:
    """The part of an axis that a slice covers: the whole axis if `length` is None."""

    start: int = 0
    length: int | None = None


Slice = tuple[Extent, ...]


@dataclass(frozen=True, kw_only=True)
class BundleEntry:
    """A variable, or a part of one, in a checkpoint.

    Attributes:
        shard: Number of the data file.
        offset: First byte in the data file.
        size: Number of bytes in the data file; 0 for a variable that is stored in parts.
        crc: Masked CRC-32C of those bytes.
        slices: The parts of a partitioned variable; empty for any other.
    """

    kind: ElementType
    shape: tuple[int, ...]
    shard: int = 0
    offset: int = 0
    size: int = 0
    crc: int = 0
    slices: tuple[Slice, ...] = ()


def decode_header(data: bytes) -> int:
    """Decode the header of an index and return the number of data files.

    Raises:
        ValueError: The bytes are not a header, or the checkpoint is in an unsupported format.
    """
    shards = 0
    for field, wire, begin, end in fields(data, 0, len(data)):
        if field == 1 and wire == VARINT:
            shards = varint(data, begin, end)[0]
        elif field == 2 and wire == VARINT and varint(data, begin, end)[0]:
            raise ValueError("it was written on a big-endian machine")
        elif field == 3 and wire == DELIMITED:
            for number, kind, start, stop in fields(data, begin, end):
                if number == 2 and kind == VARINT and varint(data, start, stop)[0] > _VERSION:
                    raise ValueError("it is in a newer format than TensorFlow 1 and 2 write")
    return shards


def encode_header() -> bytes:
    """Return the header of a checkpoint with one data file."""
    return b"\x08\x01" + delimited(3, b"\x08\x01")


def decode_entry(data: bytes) -> BundleEntry:
    """Decode a variable's entry.

    Raises:
        ValueError: The bytes are not an entry, or its fields contradict each other.
    """
    numbers = {1: 0, 3: 0, 4: 0, 5: 0}
    shape: tuple[int, ...] = ()
    slices: list[Slice] = []
    crc = 0
    for field, wire, begin, end in fields(data, 0, len(data)):
        if field in numbers and wire == VARINT:
            numbers[field] = varint(data, begin, end)[0]
        elif field == 2 and wire == DELIMITED:
            shape = decode_shape(data, begin, end)
        elif field == 6 and wire == FIXED32:
            crc = int.from_bytes(data[begin:end], "little")
        elif field == 7 and wire == DELIMITED:
            slices.append(_decode_slice(data, begin, end))
    number, shard, offset, size = numbers.values()
    if offset + size >= _INT64:
        raise ValueError("its position in the data file is negative")
    if any(len(part) != len(shape) for part in slices):
        raise ValueError(f"the number of axes of one of its parts is not {len(shape)}")
    return BundleEntry(
        kind=element_type(number),
        shape=shape,
        shard=shard,
        offset=offset,
        size=size,
        crc=crc,
        slices=tuple(slices),
    )


def encode_entry(entry: BundleEntry) -> bytes:
    """Encode an entry stored in one piece; integer fields and sizes of 0 are omitted."""
    axes = b"".join(delimited(2, _number(1, size)) for size in entry.shape)
    return b"".join(
        (
            _number(1, entry.kind.number),
            delimited(2, axes),
            _number(4, entry.offset),
            _number(5, entry.size),
            b"\x35" + entry.crc.to_bytes(4, "little"),
        )
    )


def encode_length(length: int) -> bytes:
    """Return the length of a string as its checksum covers it: four bytes, eight if necessary."""
    return length.to_bytes(4 if length < 2**32 else 8, "little")


def slice_key(name: bytes, part: Slice) -> bytes:
    """Return the index key of one part of a partitioned variable."""
    key = b"\0" + _ordered_text(name) + _ordered_count(len(part))
    for extent in part:
        length = -1 if extent.length is None else extent.length
        key += _ordered_number(extent.start) + _ordered_number(length)
    return key


def region(part: Slice, shape: Sequence[int]) -> tuple[slice, ...]:
    """Return the indices of the array elements that a slice covers.

    Raises:
        ValueError: The slice reaches beyond the array.
    """
    slices: list[slice] = []
    for extent, size in zip(part, shape, strict=True):
        stop = size if extent.length is None else extent.start + extent.length
        if stop > size:
            raise ValueError(f"one of its parts ends at {stop} on an axis of size {size}")
        slices.append(slice(extent.start, stop))
    return tuple(slices)


def _decode_slice(data: bytes, begin: int, end: int) -> Slice:
    return tuple(
        _decode_extent(data, start, stop)
        for field, wire, start, stop in fields(data, begin, end)
        if field == 1 and wire == DELIMITED
    )


def _decode_extent(data: bytes, begin: int, end: int) -> Extent:
    first, length = 0, None
    for field, wire, start, stop in fields(data, begin, end):
        if field == 1 and wire == VARINT:
            first = varint(data, start, stop)[0]
        elif field == 2 and wire == VARINT:
            length = varint(data, start, stop)[0]
    if first + (length or 0) >= _INT64:
        raise ValueError("one of its parts begins or ends before the array")
    return Extent(first, length)


def _number(field: int, value: int) -> bytes:
    return encode_varint(field << 3 | VARINT) + encode_varint(value) if value else b""


def _ordered_count(value: int) -> bytes:
    """Encode a non-negative number so that bytes sort like numbers: its length, then its bytes."""
    content = value.to_bytes((value.bit_length() + 7) // 8, "big")
    return bytes((len(content),)) + content


def _ordered_text(text: bytes) -> bytes:
    """Encode text so that bytes sort like text: escaped, with a terminator that sorts first."""
    return b"".join(_ESCAPES.get(byte) or bytes((byte,)) for byte in text) + b"\0\1"


def _ordered_number(value: int) -> bytes:
    """Encode a signed number so that bytes sort like numbers: a sign and 7n - 1 bits in n bytes.

    The first bits give the number of bytes: n ones and a zero for a non-negative number, the
    opposite for a negative one.
    """
    magnitude = ~value if value < 0 else value
    length = max(1, (magnitude.bit_length() + 7) // 7)
    header = (1 << length) - 1 << 7 * length
    bits = (value & (1 << 8 * length) - 1) ^ header
    return bits.to_bytes(length, "big")
