"""Downloads objects: in parts, concurrently, each file atomically."""

import hashlib
import os
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from threading import Event, Lock

from jumar.ground.paths import unwritable
from jumar.stores.cache import OWN_PREFIX
from jumar.stores.client import Client, StoredObject, StoreError

PART_BYTES = 8 * 2**20
MAX_REQUESTS = 16
"""Maximum number of concurrent requests, which use at most 128 MiB of memory."""


@dataclass(frozen=True, kw_only=True)
class DownloadItem:
    """An object and its destination file.

    Attributes:
        stored: The object.
        path: The file.
        sha256: The hash that its content must have; empty if none is known.
    """

    stored: StoredObject
    path: Path
    sha256: str = ""


class _Unfinished:
    """A file that several threads write, until its last part is complete."""

    def __init__(self, wanted: DownloadItem, temporary: Path) -> None:
        self.wanted = wanted
        self.part_count = max(1, -(-wanted.stored.size // PART_BYTES))
        self._missing_count = self.part_count
        self._temporary = temporary
        self._lock = Lock()
        self._file = -1

    def add(self, client: Client, part: int) -> None:
        size = self.wanted.stored.size
        start = part * PART_BYTES
        content = client.read(self.wanted.stored, start, min(size, start + PART_BYTES))
        with self._lock:
            if self._file < 0:
                flags = os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC
                self._file = os.open(self._temporary, flags, 0o644)
                os.truncate(self._file, size)
        written_bytes = 0
        while written_bytes < len(content):
            written_bytes += os.pwrite(self._file, content[written_bytes:], start + written_bytes)
        with self._lock:
            self._missing_count -= 1
            if not self._missing_count:
                self._finish()

    def _finish(self) -> None:
        os.fsync(self._file)
        self.close()
        if self.wanted.sha256 and sha256_of(self._temporary) != self.wanted.sha256:
            self._temporary.unlink()
            raise StoreError(
                "its content has changed or is damaged: the SHA-256 differs from the recorded one",
                where=str(self.wanted.stored.location),
            )
        self._temporary.replace(self.wanted.path)

    def close(self) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def drop(self) -> None:
        self.close()
        self._temporary.unlink(missing_ok=True)


def download(client: Client, wanted: Sequence[DownloadItem], *, scratch: Path) -> None:
    """Write objects of one bucket to files, each atomically.

    Args:
        client: The client of their bucket.
        wanted: Objects and their destination files; missing folders are created.
        scratch: A folder on the same disk for incomplete files.

    Raises:
        StoreError: The store does not respond, or an object has changed or has another hash.
        UserError: The files cannot be written.
    """
    files = [
        _Unfinished(item, scratch / f"{OWN_PREFIX}part-{os.getpid()}-{number}")
        for number, item in enumerate(wanted)
    ]
    stopping = Event()

    def fetch_part(file: _Unfinished, part: int) -> None:
        if stopping.is_set():
            return
        try:
            file.add(client, part)
        except BaseException:
            stopping.set()
            raise

    try:
        for folder in {item.path.parent for item in wanted}:
            folder.mkdir(parents=True, exist_ok=True)
        with ThreadPoolExecutor(max_workers=MAX_REQUESTS) as pool:
            pending = [
                pool.submit(fetch_part, file, part)
                for file in files
                for part in range(file.part_count)
            ]
            try:
                for future in pending:
                    future.result()
            except BaseException:
                stopping.set()
                raise
    except OSError as error:
        raise unwritable(scratch, error) from error
    finally:
        if stopping.is_set():
            for file in files:
                file.drop()


def sha256_of(path: Path) -> str:
    """Return the SHA-256 of a file's content, in hex."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def total_size(files: Mapping[str, StoredObject]) -> int:
    """Return the total size of some objects, in bytes."""
    return sum(stored.size for stored in files.values())
