"""Write checkpoints that TensorFlow can restore (format V2), without TensorFlow.

A checkpoint is one data file, the index, and the file `checkpoint`, which names the newest
checkpoint in a folder. The index is renamed into place after the data: without an index there is no
checkpoint, so none is ever half-written. There is no `.meta` file; a Saver restores into a graph
that its program has built.
"""

import contextlib
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import BinaryIO

import google_crc32c
import numpy as np

from jumar.data.records.tfrecord import masked
from jumar.data.records.wire import encode_varint
from jumar.ground.paths import exists, unwritable
from jumar.weights.bundle_entries import (
    HEADER_KEY,
    BundleEntry,
    encode_entry,
    encode_header,
    encode_length,
)
from jumar.weights.checkpoint_paths import STATE, state_text, written_names
from jumar.weights.index_table import build_table
from jumar.weights.tensor_types import BOOL, ELEMENT_TYPES, STRING, Array, ElementType

_BY_DTYPE = {
    **{kind.stored: kind for kind in ELEMENT_TYPES.values() if kind.in_numpy},
    np.dtype(np.bool_): ELEMENT_TYPES[BOOL],
}


def write_bundle(prefix: Path, tensors: Mapping[str, Array]) -> None:
    """Write `PREFIX.index`, `PREFIX.data-00000-of-00001` and `checkpoint` next to them.

    Args:
        prefix: Prefix of the files, for instance `exported/model.ckpt-120`. A checkpoint with that
            name is replaced; `check_free` guards against that.
        tensors: Values by TensorFlow's names, looked up one at a time. Strings are arrays of
            bytes objects.

    Raises:
        UserError: The files cannot be written.
        ValueError: A name is empty or begins with a zero byte, or TensorFlow lacks an element
            type.
    """
    keys = sorted((name.encode("utf-8"), name) for name in tensors)
    if any(key[:1] in (b"", b"\0") for key, _ in keys):
        raise ValueError("a variable needs a name that does not begin with a zero byte")
    entries: list[tuple[bytes, bytes]] = [(HEADER_KEY, encode_header())]

    def write_data(file: BinaryIO) -> None:
        for key, name in keys:
            entries.append((key, encode_entry(_append(file, np.asarray(tensors[name])))))

    def write_index(file: BinaryIO) -> None:
        file.write(build_table(entries))

    def write_state(file: BinaryIO) -> None:
        file.write(state_text(prefix.name))

    data, index = (prefix.with_name(name) for name in written_names(prefix.name))
    pending: list[tuple[Path, Path]] = []
    is_new_folder = not exists(prefix.parent)
    try:
        prefix.parent.mkdir(parents=True, exist_ok=True)
        for path, write in (
            (data, write_data),
            (index, write_index),
            (prefix.with_name(STATE), write_state),
        ):
            pending.append((_temporary(path), path))
            _write_flushed(pending[-1][0], write)
        # An existing index would briefly refer to the data of another checkpoint.
        index.unlink(missing_ok=True)
        for temporary, path in pending:
            temporary.replace(path)
    except OSError as error:
        raise unwritable(prefix, error, what="the checkpoint cannot be written") from error
    finally:
        for temporary, _ in pending:
            with contextlib.suppress(OSError):
                temporary.unlink(missing_ok=True)
        if is_new_folder:
            with contextlib.suppress(OSError):
                prefix.parent.rmdir()  # Succeeds only if nothing was written.


def _temporary(path: Path) -> Path:
    return path.with_name(f".{path.name}.{os.getpid()}")


def _write_flushed(path: Path, write: Callable[[BinaryIO], None]) -> None:
    with path.open("wb") as file:
        write(file)
        file.flush()
        os.fsync(file.fileno())


def _append(file: BinaryIO, array: Array) -> BundleEntry:
    """Append a tensor to the data file and return its entry."""
    if array.dtype.kind in "OSU":
        return _append_strings(file, array)
    kind = _element_type(array)
    little_endian = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<"))
    data = little_endian.reshape(-1).view(np.uint8)
    offset = file.tell()
    file.write(data.data)
    return BundleEntry(
        kind=kind,
        shape=array.shape,
        offset=offset if len(data) else 0,
        size=len(data),
        crc=masked(google_crc32c.value(data)),
    )


def _append_strings(file: BinaryIO, array: Array) -> BundleEntry:
    texts = [text.encode() if isinstance(text, str) else bytes(text) for text in array.flat]
    crc: int = 0
    for text in texts:
        crc = google_crc32c.extend(crc, encode_length(len(text)))
    checksum = masked(crc).to_bytes(4, "little")
    content = b"".join(texts)
    data = b"".join(encode_varint(len(text)) for text in texts) + checksum + content
    offset = file.tell()
    file.write(data)
    crc = google_crc32c.extend(google_crc32c.extend(crc, checksum), content)
    return BundleEntry(
        kind=ELEMENT_TYPES[STRING],
        shape=array.shape,
        offset=offset,
        size=len(data),
        crc=masked(crc),
    )


def _element_type(array: Array) -> ElementType:
    kind = _BY_DTYPE.get(array.dtype.newbyteorder("<"))
    if kind is None:
        raise ValueError(f"TensorFlow has no element type for {array.dtype}")
    return kind
