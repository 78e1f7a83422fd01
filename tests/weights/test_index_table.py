"""The table of an index, byte by byte as LevelDB's table_format.md lays it out."""

from collections.abc import Sequence

import google_crc32c
import pytest

from jumar.data.records.wire import encode_varint, varint
from jumar.weights.index_table import build_table, read_table

MAGIC = bytes.fromhex("57fb808b247547db")
ONE_WHOLE_KEY = b"\0\0\0\0\1\0\0\0"

Entries = Sequence[tuple[bytes, bytes]]


def trailed(block: bytes, kind: int = 0) -> bytes:
    """A block with its kind of compression and LevelDB's masked checksum."""
    crc = google_crc32c.value(block + bytes((kind,)))
    masked = ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF
    return block + bytes((kind,)) + masked.to_bytes(4, "little")


def plain(entries: Entries) -> bytes:
    """A block of whole keys alone."""
    block, places = b"", b""
    for key, value in entries:
        places += len(block).to_bytes(4, "little")
        block += b"\0" + encode_varint(len(key)) + encode_varint(len(value)) + key + value
    return block + places + len(entries).to_bytes(4, "little")


def table(*blocks: bytes, handles: Sequence[tuple[int, int]] | None = None) -> bytes:
    """A table of such blocks, or with an index that says something else."""
    data, listed = b"", b""
    places: list[tuple[int, int]] = []
    for block in blocks:
        places.append((len(data), len(block) - 5))
        data += block
    rows = [(b"k%d" % n, b"".join(map(encode_varint, each))) for n, each in enumerate(places)]
    if handles is not None:
        rows = [(b"k%d" % n, b"".join(map(encode_varint, each))) for n, each in enumerate(handles)]
    listed = plain(rows)
    footer = encode_varint(0) * 2 + encode_varint(len(data)) + encode_varint(len(listed))
    return data + trailed(listed) + footer.ljust(40, b"\0") + MAGIC


def blocks_of(data: bytes) -> list[tuple[bytes, int]]:
    """The last key and the length of each block, by the index; its keys have no common part."""
    numbers: list[int] = []
    place = len(data) - 48
    for _ in range(4):
        value, place = varint(data, place, len(data))
        numbers.append(value)
    begin, size = numbers[2:]
    index = data[begin : begin + size]
    result: list[tuple[bytes, int]] = []
    place, end = 0, size - 4 - 4 * int.from_bytes(index[-4:], "little")
    while place < end:
        shared, rest, length = index[place : place + 3]
        assert shared == 0
        key, handle = place + 3, place + 3 + rest
        place = handle + length
        _, after = varint(index, handle, place)
        result.append((index[key:handle], varint(index, after, place)[0]))
    return result


def test_small_table_has_the_expected_bytes() -> None:
    first = bytes((0, 1, 1)) + b"a1" + bytes((1, 1, 2)) + b"b23" + ONE_WHOLE_KEY
    index = bytes((0, 2, 2)) + b"ab" + bytes((0, len(first))) + ONE_WHOLE_KEY
    written = trailed(first) + trailed(ONE_WHOLE_KEY)
    footer = bytes((len(first) + 5, 8, len(written), len(index))).ljust(40, b"\0") + MAGIC
    expected = written + trailed(index) + footer
    assert build_table([(b"a", b"1"), (b"ab", b"23")]) == expected
    assert list(read_table(expected)) == [(b"a", b"1"), (b"ab", b"23")]


def test_every_sixteenth_key_is_stored_in_full() -> None:
    entries = [(b"key%02d" % number, b"") for number in range(33)]
    data = build_table(entries)
    # 31 keys, all but the first, the 17th and the 33rd, share "key" and a digit or not.
    shared = sum(len(b"key0") if number % 10 else len(b"key") for number in range(33))
    shared -= 3 + 4 + 4
    ((last, size),) = blocks_of(data)
    assert last == b"key32"
    assert size == 33 * (3 + 5) - shared + 4 * 3 + 4
    assert data[size - 16 : size - 4] == b"".join(
        place.to_bytes(4, "little") for place in (0, data.index(b"key16") - 3, size - 16 - 8)
    )
    assert list(read_table(data)) == entries


@pytest.mark.parametrize(("size", "blocks"), [(2**18 - 2, [b"b"]), (2**18 - 1, [b"a", b"b"])])
def test_block_ends_with_the_entry_that_fills_a_quarter_of_a_mebibyte(
    size: int, blocks: list[bytes]
) -> None:
    data = build_table([(b"a", bytes(size)), (b"b", b"")])
    assert [key for key, _ in blocks_of(data)] == blocks
    assert [key for key, _ in read_table(data)] == [b"a", b"b"]


GOOD = trailed(plain([(b"a", b"1")]))
"""18 bytes: 3 lengths, a key, a value, 8 for the whole key, 5 behind."""


def test_tables_from_other_writers_are_read() -> None:
    assert list(read_table(table(GOOD, trailed(plain([(b"b", b"")]))))) == [
        (b"a", b"1"),
        (b"b", b""),
    ]
    assert list(read_table(table())) == []


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (
            MAGIC.rjust(47, b"\0"),
            "it does not end like an index: it is truncated or not an index",
        ),
        (MAGIC.rjust(48, b"\0"), "the block at byte 0 ends beyond the file, at byte 0"),
        (table(GOOD, handles=[(0, 13), (12, 5)]), "the block at byte 12 overlaps the previous one"),
        (table(GOOD, handles=[(0, 500)]), "the block at byte 0 ends beyond the file, at byte 500"),
        (table(GOOD, GOOD), "the names in the block at byte 18 are not sorted"),
        (
            table(GOOD, trailed(plain([(b"b", b"")]), kind=1)),
            "the block at byte 18 is compressed (Snappy), which TensorFlow never writes",
        ),
        (
            table(trailed(plain([(b"b", b"")]), kind=2)),
            "the block at byte 0 is compressed (kind 2), which TensorFlow never writes",
        ),
        (
            table(GOOD[:-1] + bytes((GOOD[-1] ^ 1,))),
            "the checksum of the block at byte 0 does not match",
        ),
        (table(trailed(b"\1\0\0\0")), "a block is shorter than its list of complete keys"),
        (
            table(trailed(b"\1\1\0a" + ONE_WHOLE_KEY)),
            "an entry extends beyond its block",
        ),
        (
            table(trailed(b"\0\1\1a" + ONE_WHOLE_KEY)),
            "an entry extends beyond its block",
        ),
    ],
)
def test_invalid_table_error_names_the_offset(data: bytes, message: str) -> None:
    with pytest.raises(ValueError, match=r".") as caught:
        list(read_table(data))
    assert str(caught.value).startswith(message)


def test_block_without_keys_is_empty() -> None:
    assert list(read_table(table(trailed(b"\0\0\0\0"), GOOD))) == [(b"a", b"1")]


def test_keys_are_limited_to_twenty_times_the_file_size() -> None:
    """Forty keys of 500 bytes, of which all but the first share all but their last two."""
    keys = [b"n" * 498 + bytes((0, number)) for number in range(40)]
    block = b"\0" + encode_varint(500) + b"\0" + keys[0]
    block += b"".join(encode_varint(498) + b"\2\0" + key[-2:] for key in keys[1:])
    listed = plain([(b"k", encode_varint(0) + encode_varint(len(block) + 8))])
    data = trailed(block + ONE_WHOLE_KEY)
    for size, fits in ((1000, True), (999, False)):
        gap = size - len(data) - len(listed) - 5 - 48
        footer = b"\0\0" + encode_varint(len(data) + gap) + encode_varint(len(listed))
        whole = data + bytes(gap) + trailed(listed) + footer.ljust(40, b"\0") + MAGIC
        assert len(whole) == size
        if fits:
            assert [key for key, _ in read_table(whole)] == keys
        else:
            with pytest.raises(
                ValueError, match=r"^the names are too long for the size of the file$"
            ):
                list(read_table(whole))
