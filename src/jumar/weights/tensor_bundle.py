"""Read checkpoints of TensorFlow 1 and 2 (format V2, "tensor bundle") without TensorFlow.

`PREFIX.index` is a sorted table of the variables; `PREFIX.data-00000-of-00002` and so on contain
their values, raw and little-endian. All lengths and positions are checked against the sizes of the
files before they are used, so a damaged checkpoint causes an error and does not exhaust the memory.
"""

import math
from collections.abc import Mapping
from pathlib import Path

import google_crc32c
import numpy as np
from numpy.typing import NDArray

from jumar.data.records.tfrecord import masked, masked_crc
from jumar.data.records.wire import varint
from jumar.ground.errors import UserError, did_you_mean
from jumar.ground.paths import unreadable
from jumar.weights.bundle_entries import (
    HEADER_KEY,
    BundleEntry,
    decode_entry,
    decode_header,
    encode_length,
    region,
    slice_key,
)
from jumar.weights.checkpoint_paths import find_prefix, index_file
from jumar.weights.index_table import read_table
from jumar.weights.tensor_types import Array, TensorEntry, printable, shape_text

_LARGEST_INDEX = 1 << 27
"""More than a million variables; an entry in memory takes many times its bytes in the file."""
_COPY_AGAIN = "The checkpoint is damaged: copy or download its files again."


class TensorBundle:
    """The variables of a checkpoint by name; values are read on demand.

    Args:
        prefix: The prefix of the checkpoint's files.
        index: The content of the `.index` file.

    Raises:
        UserError: The index is damaged.
    """

    def __init__(self, prefix: Path, index: bytes) -> None:
        self.prefix = prefix
        self._index = index_file(prefix)
        self._shards: dict[int, NDArray[np.uint8]] = {}
        try:
            self._shard_count, entries = _decode_index(index)
            self._keys, self._variables = _named(entries)
            self._parts = {key: entries[key] for key in entries if key.startswith(b"\0")}
            _check_overlaps(entries)
        except ValueError as error:
            raise UserError(
                f"cannot be read: {error}", where=str(self._index), todo=_COPY_AGAIN
            ) from None

    def names(self) -> list[str]:
        """Return the variables' names, in the order of the index, which sorts them by bytes."""
        return list(self._variables)

    def entry(self, name: str) -> TensorEntry:
        """Return the shape and element type of a variable.

        Raises:
            UserError: There is no variable with that name.
        """
        variable = self._variable(name)
        return TensorEntry(name=name, shape=variable.shape, dtype=variable.kind.name)

    def read(self, name: str) -> Array:
        """Return the values of a variable after verifying their checksum.

        Numbers are a read-only view of the file if their bytes are aligned, otherwise a copy;
        bfloat16 becomes float32; strings are an array of bytes objects.

        Raises:
            UserError: There is no such variable, or its data file is missing or damaged.
        """
        entry = self._variable(name)
        try:
            if entry.slices:
                return self._read_parts(name, entry)
            return self._read_one(name, entry)
        except ValueError as error:
            raise UserError(
                f"cannot be read: {error}",
                where=f"{self.prefix}, variable '{name}'",
                todo=_COPY_AGAIN,
            ) from None

    def check_data(self) -> None:
        """Check that the data files exist and are as long as the index requires, reading none.

        Raises:
            UserError: A data file is missing or truncated.
        """
        ends: dict[int, tuple[int, str]] = {}
        for key, entry in (*self._variables.items(), *self._parts.items()):
            name = key if isinstance(key, str) else "a part of a variable"
            if entry.size and entry.offset + entry.size > ends.get(entry.shard, (0, ""))[0]:
                ends[entry.shard] = entry.offset + entry.size, name
        for number, (end, name) in sorted(ends.items()):
            try:
                num_bytes = len(self._shard(name, number))
            except ValueError as error:
                raise UserError(
                    f"cannot be read: {name}: {error}", where=str(self._index), todo=_COPY_AGAIN
                ) from None
            if num_bytes < end:
                raise UserError(
                    f"is truncated: it has {num_bytes:,} bytes, but '{name}' ends at byte {end:,}",
                    where=str(self._shard_path(number)),
                    todo=_COPY_AGAIN,
                )

    def _shard_path(self, number: int) -> Path:
        suffix = f".data-{number:05d}-of-{self._shard_count:05d}"
        return self.prefix.with_name(self.prefix.name + suffix)

    def _variable(self, name: str) -> BundleEntry:
        variable = self._variables.get(name)
        if variable is None:
            raise UserError(
                f"there is no variable '{name}'",
                where=str(self._index),
                todo=did_you_mean(name, self._variables).strip(),
            )
        return variable

    def _read_one(self, name: str, entry: BundleEntry) -> Array:
        if not entry.kind.is_string:
            num_bytes = math.prod(entry.shape) * entry.kind.stored.itemsize
            if entry.size != num_bytes:
                raise ValueError(
                    f"it has {entry.size} bytes, but {entry.kind.name} {shape_text(entry.shape)} "
                    f"needs {num_bytes}"
                )
        data = self._bytes(name, entry)
        if entry.kind.is_string:
            return _decode_strings(data.tobytes(), entry)
        if masked_crc(data) != entry.crc:
            raise ValueError("the checksum of its data does not match")
        array = data.view(entry.kind.stored).reshape(entry.shape)
        return entry.kind.values(array if array.flags.aligned else array.copy())

    def _read_parts(self, name: str, entry: BundleEntry) -> Array:
        """Assemble a partitioned variable, checking that its parts cover every element once."""
        parts: list[tuple[tuple[slice, ...], BundleEntry]] = []
        for extents in entry.slices:
            part = self._parts.get(slice_key(self._keys[name], extents))
            if part is None:
                raise ValueError("one of its parts is missing")
            part_slices = region(extents, entry.shape)
            sizes = tuple(axis.stop - axis.start for axis in part_slices)
            if part.kind != entry.kind or part.shape != sizes:
                raise ValueError(
                    f"one of its parts is {part.kind.name} {shape_text(part.shape)}, but should "
                    f"be {entry.kind.name} {shape_text(sizes)}"
                )
            parts.append((part_slices, part))
        # Parts share no bytes of the file, so the file size limits the memory they need.
        if len(set(entry.slices)) != len(parts) or sum(
            math.prod(part.shape) for _, part in parts
        ) != math.prod(entry.shape):
            raise ValueError(f"its parts do not cover {shape_text(entry.shape)} exactly once")
        values = [(part_slices, self._read_one(name, part)) for part_slices, part in parts]
        array = np.empty(entry.shape, dtype=values[0][1].dtype)
        is_filled = np.zeros(entry.shape, dtype=np.bool_)
        for part_slices, value in values:
            array[part_slices] = value
            is_filled[part_slices] = True
        if not is_filled.all():
            raise ValueError("its parts overlap")
        return array

    def _bytes(self, name: str, entry: BundleEntry) -> NDArray[np.uint8]:
        if entry.size == 0:
            return np.empty(0, dtype=np.uint8)
        data = self._shard(name, entry.shard)
        if entry.offset + entry.size > len(data):
            raise ValueError(
                f"its data file is too short: {len(data)} bytes, but the variable ends at byte "
                f"{entry.offset + entry.size}"
            )
        return data[entry.offset : entry.offset + entry.size]

    def _shard(self, name: str, number: int) -> NDArray[np.uint8]:
        """Return a data file, mapped into memory on first use."""
        if number not in self._shards:
            if number >= self._shard_count:
                raise ValueError(
                    f"it is in data file {number}, but there are only {self._shard_count}"
                )
            path = self._shard_path(number)
            try:
                size = path.stat().st_size
                self._shards[number] = (
                    np.memmap(path, dtype=np.uint8, mode="r") if size else np.empty(0, np.uint8)
                )
            except FileNotFoundError:
                raise UserError(
                    f"the data file with the variable '{name}' is missing",
                    where=str(path),
                    todo=f"Copy all files that begin with {self.prefix.name}.",
                ) from None
            except OSError as error:
                raise unreadable(path, error) from error
        return self._shards[number]


def open_checkpoint(path: Path) -> TensorBundle:
    """Open the checkpoint that a path refers to; `find_prefix` documents the accepted paths.

    Only the index is read. Data files are opened when a variable is read.

    Raises:
        UserError: There is no such checkpoint, or its index is damaged.
    """
    prefix = find_prefix(path)
    index = index_file(prefix)
    try:
        if index.stat().st_size > _LARGEST_INDEX:
            raise UserError("is too large for the index of a checkpoint", where=str(index))
        data = index.read_bytes()
    except OSError as error:
        raise unreadable(index, error) from error
    return TensorBundle(prefix, data)


def _decode_index(data: bytes) -> tuple[int, dict[bytes, BundleEntry]]:
    table = read_table(data)
    key, value = next(table, (None, b""))
    if key != HEADER_KEY:
        raise ValueError("it has no header")
    shards = decode_header(value)
    entries: dict[bytes, BundleEntry] = {}
    for key, value in table:
        try:
            entries[key] = decode_entry(value)
        except ValueError as error:
            raise ValueError(f"variable '{printable(key)}': {error}") from None
    return shards, entries


def _named(
    entries: Mapping[bytes, BundleEntry],
) -> tuple[dict[str, bytes], dict[str, BundleEntry]]:
    """Return the variables' keys and entries by name, without parts of partitioned variables."""
    variable_keys = [key for key in entries if not key.startswith(b"\0")]
    keys = {printable(key): key for key in variable_keys}
    if len(keys) != len(variable_keys):
        raise ValueError("two variables have the same name")
    return keys, {name: entries[key] for name, key in keys.items()}


def _check_overlaps(entries: Mapping[bytes, BundleEntry]) -> None:
    """Check that no two variables share bytes, which limits the memory to the files' size."""
    previous_end, previous_key = (-1, 0), b""
    for key, entry in sorted(entries.items(), key=lambda item: (item[1].shard, item[1].offset)):
        if entry.size == 0:
            continue
        if (entry.shard, entry.offset) < previous_end:
            raise ValueError(
                f"'{printable(previous_key)}' and '{printable(key)}' share bytes of the data file"
            )
        previous_end, previous_key = (entry.shard, entry.offset + entry.size), key


def _decode_strings(data: bytes, entry: BundleEntry) -> Array:
    """Decode strings: their lengths, the lengths' checksum, and then the strings themselves.

    The checksums are computed over lengths of four bytes each (eight if necessary), regardless of
    the number of bytes that a length occupies in the file.
    """
    count = math.prod(entry.shape)
    if count > len(data):
        raise ValueError(f"it has {count} strings, but only {len(data)} bytes")
    lengths: list[int] = []
    position = 0
    crc: int = 0
    for _ in range(count):
        length, position = varint(data, position, len(data))
        if length > len(data):
            raise ValueError(f"it has a string of {length} bytes, but only {len(data)} bytes")
        lengths.append(length)
        crc = google_crc32c.extend(crc, encode_length(length))
    stored_crc = data[position : position + 4]
    position += 4
    if masked(crc) != int.from_bytes(stored_crc, "little"):
        raise ValueError("the checksum of its strings' lengths does not match")
    crc = google_crc32c.extend(google_crc32c.extend(crc, stored_crc), data[position:])
    if masked(crc) != entry.crc:
        raise ValueError("the checksum of its strings does not match")
    if position + sum(lengths) != len(data):
        raise ValueError(
            f"its strings should have {sum(lengths)} bytes, but have {len(data) - position}"
        )
    texts = np.empty(count, dtype=object)
    for number, length in enumerate(lengths):
        texts[number] = data[position : position + length]
        position += length
    return texts.reshape(entry.shape)
