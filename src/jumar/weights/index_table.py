"""The sorted table in which a checkpoint's index is kept: LevelDB's format, read and written.

A table is blocks and a footer. A block is entries, whose keys omit the prefix they share with the
previous key, then the positions where keys are complete; it is followed by a byte for the
compression and the masked CRC-32C of both. One block, the index, lists the others. Facts: LevelDB,
doc/table_format.md; TensorFlow, core/lib/io/table_builder.cc.
"""

from collections.abc import Iterable, Iterator

from jumar.data.records.tfrecord import masked_crc
from jumar.data.records.wire import encode_varint, varint

MAGIC = (0xDB4775248B80FB57).to_bytes(8, "little")
_FOOTER_BYTES = 48
_TRAILER_BYTES = 5
_BLOCK_BYTES = 1 << 18
_WHOLE_KEY_EVERY = 16
_KEYS_PER_BYTE = 20
"""How much longer all keys may be than the file. A writer that stores every 16th key whole stays
below 17; without a limit a file of a megabyte could spell out a terabyte of keys."""

Entry = tuple[bytes, bytes]


def read_table(data: bytes) -> Iterator[Entry]:
    """Keys and values of a table, in order, with the checksum of every block verified.

    Args:
        data: The whole file.

    Raises:
        ValueError: The bytes are not such a table, or damaged.
    """
    if len(data) < _FOOTER_BYTES or not data.endswith(MAGIC):
        raise ValueError("it does not end like an index: it is truncated, or another kind of file")
    footer = len(data) - _FOOTER_BYTES
    _, position = _handle(data, footer, len(data) - len(MAGIC))
    (begin, end), _ = _handle(data, position, len(data) - len(MAGIC))
    behind, last = 0, None
    allowance = _KEYS_PER_BYTE * len(data)
    for _, value in _entries(_block(data, begin, end, footer)):
        (begin, end), _ = _handle(value, 0, len(value))
        # Each block follows the previous one, which also rules out endless loops.
        if begin < behind:
            raise ValueError(f"the block at byte {begin} overlaps the one before it")
        behind = end
        for key, content in _entries(_block(data, begin, end, footer)):
            if last is not None and key <= last:
                raise ValueError(f"names are not in order in the block at byte {begin}")
            allowance -= len(key)
            if allowance < 0:
                raise ValueError("names are too long for the size of the file")
            last = key
            yield key, content


def build_table(entries: Iterable[Entry]) -> bytes:
    """The bytes of a table.

    Args:
        entries: Keys and values; keys ascending.
    """
    table = bytearray()
    index: list[Entry] = []
    pending: list[Entry] = []
    size = 0
    for key, value in entries:
        pending.append((key, value))
        size += len(key) + len(value)
        if size >= _BLOCK_BYTES:
            index.append((key, _append_block(table, pending)))
            pending, size = [], 0
    if pending:
        index.append((pending[-1][0], _append_block(table, pending)))
    handles = _append_block(table, []) + _append_block(table, index)
    return bytes(table + handles.ljust(_FOOTER_BYTES - len(MAGIC), b"\0") + MAGIC)


def _handle(data: bytes, position: int, end: int) -> tuple[tuple[int, int], int]:
    """Start and end of a block, and the position after the handle."""
    begin, position = varint(data, position, end)
    size, position = varint(data, position, end)
    return (begin, begin + size), position


def _block(data: bytes, begin: int, end: int, footer: int) -> bytes:
    if end + _TRAILER_BYTES > footer:
        raise ValueError(f"the block at byte {begin} ends beyond the file, at byte {end}")
    kind = data[end]
    stored_crc = int.from_bytes(data[end + 1 : end + _TRAILER_BYTES], "little")
    if masked_crc(data[begin : end + 1]) != stored_crc:
        raise ValueError(f"the checksum of the block at byte {begin} does not match")
    if kind:
        name = "Snappy" if kind == 1 else f"kind {kind}"
        raise ValueError(
            f"the block at byte {begin} is compressed ({name}); TensorFlow writes it plain"
        )
    return data[begin:end]


def _entries(block: bytes) -> Iterator[Entry]:
    whole_keys = int.from_bytes(block[-4:], "little")
    end = len(block) - 4 - 4 * whole_keys
    if end < 0:
        raise ValueError("a block is shorter than its own list of whole keys")
    key, position = b"", 0
    while position < end:
        num_shared, position = varint(block, position, end)
        num_unshared, position = varint(block, position, end)
        length, position = varint(block, position, end)
        value = position + num_unshared
        if num_shared > len(key) or value + length > end:
            raise ValueError("an entry of a block is longer than the block")
        key = key[:num_shared] + block[position:value]
        position = value + length
        yield key, block[value:position]


def _append_block(table: bytearray, entries: list[Entry]) -> bytes:
    """Add a block with its trailer; returns its handle."""
    block = bytearray()
    whole_keys: list[int] = []
    last = b""
    for number, (key, value) in enumerate(entries):
        num_shared = 0
        if number % _WHOLE_KEY_EVERY:
            num_shared = _shared(last, key)
        else:
            whole_keys.append(len(block))
        for count in (num_shared, len(key) - num_shared, len(value)):
            block += encode_varint(count)
        block += key[num_shared:] + value
        last = key
    for position in whole_keys or [0]:
        block += position.to_bytes(4, "little")
    block += max(len(whole_keys), 1).to_bytes(4, "little")
    handle = encode_varint(len(table)) + encode_varint(len(block))
    block += b"\0"
    table += block + masked_crc(bytes(block)).to_bytes(4, "little")
    return handle


def _shared(first: bytes, second: bytes) -> int:
    """The length of the common prefix of two keys."""
    count = 0
    for first_byte, second_byte in zip(first, second, strict=False):
        if first_byte != second_byte:
            break
        count += 1
    return count
