"""Unpacks compressed TFRecord files once, so that any record can be read.

A gzip or zlib stream can only be read from its start. When first opened, such a file is unpacked
into a cache folder, from which this or any other process reads it later.
"""

import errno
import fcntl
import hashlib
import os
import shutil
import zlib
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import CancelledError, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from threading import Event
from typing import BinaryIO

from jumar.data.records.tfrecord import HEADER_BYTES, header_length
from jumar.ground.cache import CACHE_VARIABLE, cache_folder
from jumar.ground.errors import UserError
from jumar.ground.files import is_at
from jumar.ground.paths import exists, open_to_read
from jumar.ground.text import size_text

MAX_EXPANSION = 100
"""Ratio of unpacked to packed size above which a file is rejected as a decompression bomb: encoded
images hardly shrink, and DEFLATE's ratio is about 1000 for constant bytes."""
ALWAYS_ALLOWED = 256 * 2**20
"""Unpacked size up to which the ratio is not checked."""
KEPT_FREE = 256 * 2**20
"""Bytes that unpacking leaves free on the cache's disk."""
_CHUNK = 2**20
_GZIP_MAGIC = b"\x1f\x8b"
_AUTO_DETECT = zlib.MAX_WBITS | 32


def is_record_file(path: Path) -> bool:
    """Return whether a file starts like a TFRecord, plain or compressed; an empty file counts."""
    return _packing(path) != "unknown"


def plain_files(paths: Sequence[Path], notice: Callable[[str], None]) -> list[Path]:
    """Return a plain file for each TFRecord file: the file itself, or an unpacked one in the cache.

    Args:
        paths: TFRecord files, plain, gzip or zlib.
        notice: Called once, before the first file is unpacked.

    Raises:
        UserError: A file is not a TFRecord, is damaged, expands too much, or does not fit on the
            disk of the cache.
    """
    packings = [_packing(path) for path in paths]
    for path, packing in zip(paths, packings, strict=True):
        if packing == "unknown":
            raise UserError(
                "this is not a TFRecord file, or its first record length is damaged",
                where=f"{path}, byte 0",
                todo="Expected a record header with a valid checksum, or gzip or zlib around one.",
            )
    packed_paths = [
        path for path, packing in zip(paths, packings, strict=True) if packing == "packed"
    ]
    new_paths = [path for path in packed_paths if not exists(_entry(path))]
    if new_paths:
        notice(f"unpacking {len(new_paths)} compressed TFRecord files into {_folder()}, once")
    stop = Event()
    with ThreadPoolExecutor(max_workers=4) as pool:
        try:
            unpacked_paths = list(pool.map(partial(_unpacked, stop=stop), packed_paths))
        except BaseException:
            # Otherwise, all files would be unpacked before Ctrl-C or an error takes effect.
            stop.set()
            raise
    plain_by_path = dict(zip(packed_paths, unpacked_paths, strict=True))
    return [plain_by_path.get(path, path) for path in paths]


def _packing(path: Path) -> str:
    with open_to_read(path) as file:
        head = file.read(HEADER_BYTES)
    # The checksum is tested first: a plain record of 35,615 bytes begins with gzip's magic number.
    if not head or (len(head) == HEADER_BYTES and header_length(head) is not None):
        return "plain"
    zlib_header = len(head) > 1 and head[0] & 15 == 8 and int.from_bytes(head[:2], "big") % 31 == 0
    return "packed" if head.startswith(_GZIP_MAGIC) or zlib_header else "unknown"


def _folder() -> Path:
    return cache_folder() / "tfrecord"


def _entry(path: Path) -> Path:
    status = path.stat()
    path_digest = hashlib.sha256(os.fsencode(path.resolve())).hexdigest()[:24]
    return _folder() / f"{path_digest}-{status.st_size:x}-{status.st_mtime_ns:x}.tfrecord"


def _unpacked(path: Path, stop: Event) -> Path:
    entry = _entry(path)
    if entry.exists():
        return entry
    try:
        entry.parent.mkdir(parents=True, exist_ok=True)
        with _locked_target(entry) as target:
            if target is not None:
                _unpack(path, target, stop)
                target.flush()
                Path(target.name).rename(entry)
                _remove_earlier(entry)
    except OSError as error:
        is_full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        raise UserError(
            "the disk is full" if is_full else f"failed: {error.strerror}",
            where=f"unpacking {path} into {entry.parent}",
            todo=f"Free some space, or set {CACHE_VARIABLE} to a folder on another disk.",
        ) from error
    return entry


@contextmanager
def _locked_target(entry: Path) -> Generator[BinaryIO | None, None, None]:
    """Yield a locked temporary file for the entry, or None if another process has created it.

    All ranks of a job open the same data at once; without the lock, each would unpack a separate
    copy. The lock ends with the process, so nothing needs to be cleaned up after a kill.
    """
    partial_file = entry.with_suffix(".partial")
    while True:
        with partial_file.open("ab") as target:
            fcntl.flock(target, fcntl.LOCK_EX)
            is_current = is_at(target, partial_file)
            if entry.exists():
                if is_current:
                    partial_file.unlink()
                yield None
                return
            if not is_current:
                # The previous owner of the lock failed and removed the file that is open here.
                continue
            try:
                target.truncate(0)
                yield target
            finally:
                if is_at(target, partial_file):
                    partial_file.unlink()
            return


def _remove_earlier(entry: Path) -> None:
    path_digest = entry.name.partition("-")[0]
    for earlier in entry.parent.glob(f"{path_digest}-*.tfrecord"):
        if earlier != entry:
            with suppress(OSError):
                earlier.unlink()


def _unpack(path: Path, target: BinaryIO, stop: Event) -> None:
    allowed_bytes = max(ALWAYS_ALLOWED, MAX_EXPANSION * path.stat().st_size)
    written_bytes = 0
    for piece in _inflate(path):
        if stop.is_set():
            raise CancelledError
        head = piece[:HEADER_BYTES]
        if not written_bytes and len(head) == HEADER_BYTES and header_length(head) is None:
            raise UserError(
                "the compressed data is not a TFRecord, or its first record length is damaged",
                where=str(path),
            )
        written_bytes += len(piece)
        if written_bytes > allowed_bytes:
            raise UserError(
                f"unpacks to more than {size_text(allowed_bytes)}, over {MAX_EXPANSION} times "
                "its size: rejected as a decompression bomb",
                where=str(path),
                todo="If you trust the file, decompress it yourself and specify the result.",
            )
        if shutil.disk_usage(target.name).free < KEPT_FREE:
            raise OSError(errno.ENOSPC, "the disk is full")
        target.write(piece)


def _inflate(path: Path) -> Iterator[bytes]:
    """Yield the unpacked bytes in pieces of at most one MiB, across consecutive gzip members."""
    stream = zlib.decompressobj(_AUTO_DETECT)
    unpacked_bytes = 0

    def damaged(reason: str) -> UserError:
        return UserError(
            f"{reason} (after {unpacked_bytes} unpacked bytes)",
            where=str(path),
            todo="Copy, download or write this file again.",
        )

    with open_to_read(path) as file:
        pending = b""
        while True:
            pending = pending or file.read(_CHUNK)
            if stream.eof:
                if not pending:
                    return
                if not pending.startswith(_GZIP_MAGIC[: len(pending)]):
                    raise damaged("unexpected bytes follow the compressed data")
                stream = zlib.decompressobj(_AUTO_DETECT)
            try:
                # Without input, this returns output that the last call omitted due to its limit.
                piece = stream.decompress(pending, _CHUNK)
            except zlib.error as error:
                raise damaged(f"the compressed data is damaged: {error}") from error
            if not (pending or piece or stream.eof):
                raise damaged("the compressed data is truncated")
            pending = stream.unused_data if stream.eof else stream.unconsumed_tail
            unpacked_bytes += len(piece)
            if piece:
                yield piece
