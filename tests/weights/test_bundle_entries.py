"""Entries and keys of a checkpoint's index, byte by byte as TensorFlow's protos and OrderedCode."""

import pytest

from jumar.data.records.wire import delimited, encode_varint
from jumar.weights.bundle_entries import (
    BundleEntry,
    Extent,
    decode_entry,
    decode_header,
    encode_entry,
    encode_header,
    region,
    slice_key,
)
from jumar.weights.tensor_types import ELEMENT_TYPES


def number(field: int, value: int) -> bytes:
    return encode_varint(field << 3) + encode_varint(value)


def extent(start: int | None, length: int | None) -> bytes:
    content = b"" if start is None else number(1, start)
    return delimited(1, content + (b"" if length is None else number(2, length)))


def test_header_has_one_data_file_and_the_version() -> None:
    assert encode_header() == bytes.fromhex("0801 1a02 0801")
    assert decode_header(encode_header()) == 1
    # Other versions of the writer, and a little-endian machine named as such.
    assert decode_header(number(1, 300) + number(2, 0) + delimited(3, number(1, 9))) == 300
    assert decode_header(delimited(3, number(2, 1))) == 0


@pytest.mark.parametrize(
    ("header", "message"),
    [
        (number(2, 1), "it was written on a big-endian machine"),
        (delimited(3, number(2, 2)), "it is in a newer format than TensorFlow 1 and 2 write"),
    ],
)
def test_headers_of_other_formats_are_refused(header: bytes, message: str) -> None:
    with pytest.raises(ValueError, match=f"^{message}$"):
        decode_header(header)


def test_entry_has_the_expected_bytes_and_round_trips() -> None:
    entry = BundleEntry(kind=ELEMENT_TYPES[1], shape=(2, 300), offset=5, size=2400, crc=0x01020304)
    data = bytes.fromhex("0801 1209 1202 0802 1203 08ac02 2005 28e012 35 04030201")
    assert encode_entry(entry) == data
    assert decode_entry(data) == entry
    empty = BundleEntry(kind=ELEMENT_TYPES[9], shape=())
    assert encode_entry(empty) == bytes.fromhex("0809 1200 35 00000000")
    assert decode_entry(bytes.fromhex("0809")) == empty


def test_entry_in_parts_is_read_with_its_data_file() -> None:
    shape = delimited(2, delimited(2, number(1, 4)) + delimited(2, number(1, 6)))
    parts = (
        delimited(7, extent(0, 3) + extent(None, None)),
        delimited(7, extent(3, 1) + extent(2, 4)),
    )
    data = number(1, 3) + shape + number(3, 2) + number(4, 7) + number(5, 96) + b"".join(parts)
    assert decode_entry(data) == BundleEntry(
        kind=ELEMENT_TYPES[3],
        shape=(4, 6),
        shard=2,
        offset=7,
        size=96,
        slices=((Extent(0, 3), Extent()), (Extent(3, 1), Extent(2, 4))),
    )
    assert Extent() == Extent(0, None)


ONE_AXIS = delimited(2, delimited(2, number(1, 4)))


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (
            number(1, 1) + number(4, 2**63 - 8) + number(5, 8),
            "its position in the data file is negative",
        ),
        (number(1, 1) + number(5, 2**63), "its position in the data file is negative"),
        (
            number(1, 1) + ONE_AXIS + delimited(7, extent(0, 1)) + delimited(7, extent(1, 3) * 2),
            "the number of axes of one of its parts is not 1",
        ),
        (
            number(1, 1) + ONE_AXIS + delimited(7, extent(2**63 - 1, 1)),
            "one of its parts begins or ends before the array",
        ),
        (
            number(1, 1) + ONE_AXIS + delimited(7, extent(2**63, None)),
            "one of its parts begins or ends before the array",
        ),
        (b"", "the element type 0 is not supported"),
    ],
)
def test_entries_with_inconsistent_numbers_are_refused(data: bytes, message: str) -> None:
    with pytest.raises(ValueError, match=f"^{message}"):
        decode_entry(data)


def test_positions_are_valid_up_to_the_largest_integer() -> None:
    entry = decode_entry(number(1, 1) + number(4, 2**63 - 9) + number(5, 8))
    assert (entry.offset, entry.size) == (2**63 - 9, 8)
    part = delimited(7, extent(2**63 - 2, 1))
    assert decode_entry(number(1, 1) + ONE_AXIS + part).slices == ((Extent(2**63 - 2, 1),),)


@pytest.mark.parametrize(
    ("name", "part", "key"),
    [
        (b"v", (), "00 76 0001 00"),
        (b"v", (Extent(0, 2),), "00 76 0001 0101 80 82"),
        (b"v", (Extent(), Extent(3, 63)), "00 76 0001 0102 80 7f 83 bf"),
        # Two bytes from 64 and below -64, three from 8192, as OrderedCode writes them.
        (b"v", (Extent(64, 8191), Extent(8192, 1)), "00 76 0001 0102 c040 dfff e02000 81"),
        (b"v", (Extent(-64, -65),), "00 76 0001 0101 40 3fbf"),
        (b"a\0b\xff", (Extent(1, 1),), "00 61 00ff 62 ff00 0001 0101 81 81"),
    ],
)
def test_key_of_a_part_uses_ordered_code(name: bytes, part: tuple[Extent, ...], key: str) -> None:
    assert slice_key(name, part) == bytes.fromhex(key)


def test_parts_cover_regions_up_to_the_end_of_an_axis() -> None:
    assert region((Extent(1, 2), Extent(), Extent(4)), (3, 5, 9)) == (
        slice(1, 3),
        slice(0, 5),
        slice(4, 9),
    )
    with pytest.raises(ValueError, match=r"^one of its parts ends at 4 on an axis of size 3$"):
        region((Extent(), Extent(2, 2)), (9, 3))
    with pytest.raises(ValueError, match=r"argument"):
        region((Extent(),), (9, 3))
