"""Files that threads and forked workers read at offsets, without a shared position."""

import os
import stat
from collections.abc import Sequence
from pathlib import Path

from jumar.ground.text import size_text

LARGEST_IMAGE = 256 * 2**20
"""Size in bytes above which an encoded image is rejected instead of read into memory."""

MAX_OPEN = 256
"""Open files per source: 1024 ImageNet shards would hit the usual limit of 1024 per process."""


def _open_without_waiting(path: str, flags: int) -> int:
    # Opening a named pipe among the images would otherwise block the run forever.
    return os.open(path, flags | os.O_NONBLOCK | os.O_CLOEXEC)


class _Descriptor:
    def __init__(self, path: str) -> None:
        self.number = _open_without_waiting(path, os.O_RDONLY)
        self._close = os.close

    def __del__(self) -> None:
        number = getattr(self, "number", None)
        if number is not None:
            self._close(number)


class OffsetFiles:
    """Several files, opened on first use, that any thread or process may read at offsets.

    A file object has one position, which forked workers share, so that two of them reading at
    once would get each other's bytes. `os.pread` does not use it. No file is open when the object
    is pickled. There is no lock, because a fork while another thread holds one would leave it
    locked in the child; each dictionary operation here is atomic.
    """

    def __init__(self, paths: Sequence[Path]) -> None:
        self._paths = tuple(str(path) for path in paths)
        self._open: dict[int, _Descriptor] = {}

    def __getstate__(self) -> tuple[str, ...]:
        return self._paths

    def __setstate__(self, paths: tuple[str, ...]) -> None:
        self._paths = paths
        self._open = {}

    def read(self, which: int, offset: int, length: int) -> bytes:
        """Bytes of one file; fewer than `length` only at its end.

        Args:
            which: Index of the file.
            offset: First byte.
            length: Number of bytes; the caller has checked it against the size of the file.

        Raises:
            OSError: The file cannot be opened or read.
        """
        descriptor = self._open.get(which)
        if descriptor is None:
            descriptor = _Descriptor(self._paths[which])
            for oldest in list(self._open)[: len(self._open) + 1 - MAX_OPEN]:
                # Another thread may still be reading from it: it closes with its last reference.
                self._open.pop(oldest, None)
            self._open[which] = descriptor
        try:
            return _read_at(descriptor.number, offset, length)
        except OSError:
            # A file handle that went stale on a network file system must be opened again.
            self._open.pop(which, None)
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


def read_whole(path: Path, largest: int = LARGEST_IMAGE) -> bytes:
    """The content of a regular file.

    Raises:
        OSError: It cannot be read.
        ValueError: It is not a regular file, or larger than `largest` bytes.
    """
    with open(path, "rb", buffering=0, opener=_open_without_waiting) as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode):
            raise ValueError("not a regular file")
        if status.st_size > largest:
            raise ValueError(too_large(status.st_size, largest))
        return file.readall()


def too_large(size: int, largest: int = LARGEST_IMAGE) -> str:
    """The reason given for an image that is refused because of its size in bytes."""
    return f"{size_text(size)} for one image; at most {size_text(largest)} are read"
