"""Read and write the sorted table that stores a checkpoint's index, in LevelDB's format.

A table consists of blocks and a footer. A block consists of entries, whose keys omit the prefix
they share with the previous key, and the positions of complete keys; it is followed by a byte for
the compression and the masked CRC-32C of both. One block, the index, lists the others. Sources:
LevelDB, doc/table_format.md; TensorFlow, core/lib/io/table_builder.cc.
"""

from collections.abc import Iterable, Iterator
from itertools import takewhile

from jumar.data.records.tfrecord import masked_crc
from jumar.data.records.wire import encode_varint, varint

MAGIC = (0xDB4775248B80FB57).to_bytes(8, "little")
_FOOTER_BYTES = 48
_TRAILER_BYTES = 5
_BLOCK_BYTES = 1 << 18
_WHOLE_KEY_EVERY = 16
_KEYS_PER_BYTE = 20
"""Maximum ratio of the keys' total length to the file size. A writer that stores every 16th key
whole stays below 17; without a limit, a file of a megabyte could expand to a terabyte of keys."""

Entry = tuple[bytes, bytes]


def read_table(data: bytes) -> Iterator[Entry]:
    """Yield the keys and values of a table, in order, verifying the checksum of every block.

    Args:
        data: The whole file.

    Raises:
        ValueError: The bytes are not a table, or it is damaged.
    """
    if len(data) < _FOOTER_BYTES or not data.endswith(MAGIC):
        raise ValueError("it does not end like an index: it is truncated or not an index")
    footer = len(data) - _FOOTER_BYTES
    _, position = _handle(data, footer, len(data) - len(MAGIC))
    (begin, end), _ = _handle(data, position, len(data) - len(MAGIC))
    previous_end, previous_key = 0, None
    key_bytes_left = _KEYS_PER_BYTE * len(data)
    for _, value in _entries(_block(data, begin, end, footer)):
        (begin, end), _ = _handle(value, 0, len(value))
        # Each block follows the previous one, which also rules out endless loops.
        if begin < previous_end:
            raise ValueError(f"the block at byte {begin} overlaps the previous one")
        previous_end = end
        for key, content in _entries(_block(data, begin, end, footer)):
            if previous_key is not None and key <= previous_key:
                raise ValueError(f"the names in the block at byte {begin} are not sorted")
            key_bytes_left -= len(key)
            if key_bytes_left < 0:
                raise ValueError("the names are too long for the size of the file")
            previous_key = key
            yield key, content


def build_table(entries: Iterable[Entry]) -> bytes:
    """Return the bytes of a table.

    Args:
        entries: Keys and values, sorted by key.
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
    """Decode a handle: return the start and end of its block, and the position after it."""
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
            f"the block at byte {begin} is compressed ({name}), which TensorFlow never writes"
        )
    return data[begin:end]


def _entries(block: bytes) -> Iterator[Entry]:
    whole_keys = int.from_bytes(block[-4:], "little")
    end = len(block) - 4 - 4 * whole_keys
    if end < 0:
        raise ValueError("a block is shorter than its list of complete keys")
    key, position = b"", 0
    while position < end:
        num_shared, position = varint(block, position, end)
        num_unshared, position = varint(block, position, end)
        length, position = varint(block, position, end)
        value = position + num_unshared
        if num_shared > len(key) or value + length > end:
            raise ValueError("an entry extends beyond its block")
        key = key[:num_shared] + block[position:value]
        position = value + length
        yield key, block[value:position]


def _append_block(table: bytearray, entries: list[Entry]) -> bytes:
    """Append a block with its trailer and return its handle."""
    block = bytearray()
    whole_keys: list[int] = []
    previous_key = b""
    for number, (key, value) in enumerate(entries):
        num_shared = 0
        if number % _WHOLE_KEY_EVERY:
            num_shared = _shared_length(previous_key, key)
        else:
            whole_keys.append(len(block))
        for count in (num_shared, len(key) - num_shared, len(value)):
            block += encode_varint(count)
        block += key[num_shared:] + value
        previous_key = key
    for position in whole_keys or [0]:
        block += position.to_bytes(4, "little")
    block += max(len(whole_keys), 1).to_bytes(4, "little")
    handle = encode_varint(len(table)) + encode_varint(len(block))
    block += b"\0"
    table += block + masked_crc(bytes(block)).to_bytes(4, "little")
    return handle


def _shared_length(first: bytes, second: bytes) -> int:
    """Return the length of the common prefix of two keys."""
    pairs = zip(first, second, strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
