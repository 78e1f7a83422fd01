"""Protobuf's wire format: reading and writing the fields of messages.

Before memory is allocated based on a length in a message, the field is checked to end inside the
message. Source: protobuf's encoding guide.
"""

from collections.abc import Iterator

VARINT, FIXED64, DELIMITED, FIXED32 = 0, 1, 2, 5
"""Wire types: how the content of a field is stored."""
_FIXED_BYTES = {FIXED64: 8, FIXED32: 4}


def fields(data: bytes, position: int, end: int) -> Iterator[tuple[int, int, int, int]]:
    """Yield field number, wire type, start and end of the content, for each field of a message.

    Raises:
        ValueError: The bytes are not a message; the error states the position.
    """
    while position < end:
        field_start = position
        tag, begin = varint(data, position, end)
        wire = tag & 7
        if wire == DELIMITED:
            length, begin = varint(data, begin, end)
            position = begin + length
        elif wire == VARINT:
            position = varint(data, begin, end)[1]
        elif wire in _FIXED_BYTES:
            position = begin + _FIXED_BYTES[wire]
        else:
            raise ValueError(f"wire type {wire} at byte {field_start}")
        if position > end:
            raise ValueError(
                f"the field at byte {field_start} ends beyond its message, at byte {position}"
            )
        if not 8 <= tag < 2**32:
            raise ValueError(f"field number {tag >> 3} at byte {field_start}")
        yield tag >> 3, wire, begin, position


def varint(data: bytes, position: int, end: int) -> tuple[int, int]:
    """Return the number at a position, and the position after it.

    Raises:
        ValueError: The number does not end before `end`, or has more than 10 bytes.
    """
    if position < end and data[position] < 128:
        return data[position], position + 1
    value = 0
    for index in range(position, min(end, position + 10)):
        byte = data[index]
        value |= (byte & 127) << 7 * (index - position)
        if byte < 128:
            return value, index + 1
    reason = "longer than 10 bytes" if end - position >= 10 else "truncated"
    raise ValueError(f"a varint {reason} at byte {position}")


def encode_varint(value: int) -> bytes:
    """Encode a non-negative number as a varint."""
    if value < 128:
        return bytes((value,))
    parts = bytearray()
    while value > 127:
        parts.append(value & 127 | 128)
        value >>= 7
    parts.append(value)
    return bytes(parts)


def delimited(field: int, content: bytes) -> bytes:
    """Encode a field whose content is bytes, text or a message."""
    return encode_varint(field << 3 | DELIMITED) + encode_varint(len(content)) + content
