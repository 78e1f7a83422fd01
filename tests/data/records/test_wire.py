"""Protobuf's wire at its edges: the longest numbers, the outermost fields, contents a byte off."""

import pytest

from jumar.data.records.wire import (
    DELIMITED,
    FIXED32,
    FIXED64,
    VARINT,
    encode_varint,
    fields,
    varint,
)

LARGEST_FIELD = 2**29 - 1


def read(data: bytes) -> list[tuple[int, int, int, int]]:
    return list(fields(data, 0, len(data)))


@pytest.mark.parametrize("value", [0, 1, 127, 128, 2**14 - 1, 2**14, 2**63, 2**64 - 1])
def test_varint_is_read_up_to_its_last_byte(value: int) -> None:
    written = encode_varint(value)
    assert len(written) == max(1, -(-value.bit_length() // 7))
    assert varint(b"\xff" + written + b"\xff", 1, len(written) + 1) == (value, len(written) + 1)


def test_varint_has_at_most_ten_bytes() -> None:
    ten = b"\xff" * 9 + b"\x01"
    assert varint(ten, 0, 10) == (2**64 - 1, 10)
    with pytest.raises(ValueError, match="longer than 10 bytes at byte 0"):
        varint(b"\xff" * 10 + b"\x01", 0, 11)
    with pytest.raises(ValueError, match="truncated at byte 0"):
        varint(ten, 0, 9)
    with pytest.raises(ValueError, match="truncated at byte 2"):
        varint(b"\x01\x01", 2, 2)


@pytest.mark.parametrize("number", [1, 15, 16, LARGEST_FIELD])
def test_field_number_may_have_29_bits(number: int) -> None:
    tag = encode_varint(number << 3 | VARINT)
    assert read(tag + b"\x05") == [(number, VARINT, len(tag), len(tag) + 1)]


@pytest.mark.parametrize("number", [0, LARGEST_FIELD + 1])
def test_other_field_numbers_are_refused(number: int) -> None:
    with pytest.raises(ValueError, match=f"field number {number} at byte 0"):
        read(encode_varint(number << 3 | VARINT) + b"\x05")


@pytest.mark.parametrize(("wire", "size"), [(FIXED32, 4), (FIXED64, 8)])
def test_fixed_field_has_all_its_bytes(wire: int, size: int) -> None:
    tag = bytes([1 << 3 | wire])
    assert read(tag + bytes(size)) == [(1, wire, 1, 1 + size)]
    with pytest.raises(ValueError, match=f"ends beyond its message, at byte {1 + size}"):
        read(tag + bytes(size - 1))


def test_delimited_field_ends_within_its_message() -> None:
    tag = bytes([2 << 3 | DELIMITED])
    assert read(tag + b"\x03abc" + tag + b"\x00") == [(2, DELIMITED, 2, 5), (2, DELIMITED, 7, 7)]
    with pytest.raises(ValueError, match="ends beyond its message, at byte 5"):
        read(tag + b"\x03ab")
    with pytest.raises(ValueError, match="ends beyond its message"):
        read(tag + encode_varint(2**64 - 1) + b"ab")
    # What follows the message is no part of it.
    with pytest.raises(ValueError, match="ends beyond its message"):
        list(fields(tag + b"\x03abc", 0, 4))


@pytest.mark.parametrize("wire", [3, 4, 6, 7])
def test_groups_and_unknown_kinds_are_refused(wire: int) -> None:
    with pytest.raises(ValueError, match=f"wire type {wire} at byte 0"):
        read(bytes([1 << 3 | wire, 0, 0, 0, 0, 0, 0, 0, 0]))
