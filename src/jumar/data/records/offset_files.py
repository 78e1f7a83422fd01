"""Files that threads and forked workers read at offsets, without sharing a position."""

import os
import stat
from collections.abc import Sequence
from pathlib import Path

from jumar.ground.text import size_text

MAX_IMAGE_BYTES = 256 * 2**20
"""Maximum size of an encoded image in bytes; larger ones are not read into memory."""

MAX_OPEN = 256
"""Maximum number of open files per source: 1024 ImageNet shards would exceed the usual limit of a
process."""


def _open_without_blocking(path: str, flags: int) -> int:
    # Opening a named pipe among the images would otherwise block the run forever.
    return os.open(path, flags | os.O_NONBLOCK | os.O_CLOEXEC)


class _Descriptor:
    def __init__(self, path: str) -> None:
        self.number = _open_without_blocking(path, os.O_RDONLY)
        self._close = os.close

    def __del__(self) -> None:
        number = getattr(self, "number", None)
        if number is not None:
            self._close(number)


class OffsetFiles:
    """Several files, opened on first use, that any thread or process may read at offsets.

    A file object has one position, which forked workers share, so concurrent reads would return
    wrong bytes. `os.pread` does not use the position. Pickling omits open files. There is no lock,
    because a lock held by another thread during a fork would stay locked in the child; each
    dictionary operation here is atomic.
    """

    def __init__(self, paths: Sequence[Path]) -> None:
        self._paths = tuple(str(path) for path in paths)
        self._open: dict[int, _Descriptor] = {}

    def __getstate__(self) -> tuple[str, ...]:
        return self._paths

    def __setstate__(self, paths: tuple[str, ...]) -> None:
        self._paths = paths
        self._open = {}

    def read(self, file_index: int, offset: int, length: int) -> bytes:
        """Read bytes of one file; fewer than `length` only at its end.

        Args:
            file_index: Index of the file.
            offset: First byte.
            length: Number of bytes, which the caller has checked against the size of the file.

        Raises:
            OSError: The file cannot be opened or read.
        """
        descriptor = self._open.get(file_index)
        if descriptor is None:
            descriptor = _Descriptor(self._paths[file_index])
            for oldest in list(self._open)[: len(self._open) + 1 - MAX_OPEN]:
                # It is closed with its last reference, since another thread may be reading it.
                self._open.pop(oldest, None)
            self._open[file_index] = descriptor
        try:
            return _read_at(descriptor.number, offset, length)
        except OSError:
            # A stale file handle on a network file system must be opened again.
            self._open.pop(file_index, None)
            raise


def _read_at(descriptor: int, offset: int, length: int) -> bytes:
    data = os.pread(descriptor, length, offset)
    if len(data) == length or not data:
        return data
    parts = [data]
    missing_bytes = length - len(data)
    while missing_bytes and (
        part := os.pread(descriptor, missing_bytes, offset + length - missing_bytes)
    ):
        parts.append(part)
        missing_bytes -= len(part)
    return b"".join(parts)


def read_whole(path: Path, max_bytes: int = MAX_IMAGE_BYTES) -> bytes:
    """Read the content of a regular file.

    Raises:
        OSError: It cannot be read.
        ValueError: It is not a regular file, or larger than `max_bytes`.
    """
    with open(path, "rb", buffering=0, opener=_open_without_blocking) as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode):
            raise ValueError("not a regular file")
        if status.st_size > max_bytes:
            raise ValueError(too_large(status.st_size, max_bytes))
        return file.readall()


def too_large(size: int, max_bytes: int = MAX_IMAGE_BYTES) -> str:
    """Return the reason for rejecting an image because of its size in bytes."""
    return f"{size_text(size)} for one image; the maximum is {size_text(max_bytes)}"
