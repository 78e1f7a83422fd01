"""The local cache of store contents: bounded, shared by all processes of a user.

A folder has the content of one listing of a store: the same keys, sizes and ETags give the same
folder, a changed object another one, so that nothing in a folder ever changes. Room is reserved
before the first byte is written; if it is short, the least recently used folders are removed. A
folder in use is locked by the system, so that a killed process holds no locks.
"""

import fcntl
import os
import re
import shutil
from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from jumar.ground.cache import CACHE_VARIABLE, cache_folder
from jumar.ground.errors import UserError
from jumar.ground.files import remove_folder
from jumar.ground.paths import make_writable, unwritable

LIMIT_VARIABLE = "JUMAR_CACHE_LIMIT"
OWN_PREFIX = ".jumar-"
"""Prefix of the cache's own files."""
_DEFAULT_LIMIT = 50 * 2**30
_KEPT_FREE = 256 * 2**20
"""Bytes that the cache leaves free on its disk."""
_SIZE, _USED, _FILLED = (f"{OWN_PREFIX}{name}" for name in ("reserved", "used", "filling"))
_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}
_BINARY = {"ki": 2**10, "mi": 2**20, "gi": 2**30, "ti": 2**40}


def limit_bytes() -> int:
    """The most bytes that the cache may hold: `$JUMAR_CACHE_LIMIT`, or 50 GiB.

    Raises:
        UserError: It is not a size.
    """
    text = os.environ.get(LIMIT_VARIABLE, "").strip()
    if not text:
        return _DEFAULT_LIMIT
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([kmgt]?i?)b?", text.lower())
    unit = (_UNITS | _BINARY).get(match[2]) if match else None
    if match is None or unit is None:
        raise UserError(
            f"'{text}' is not a size", where=LIMIT_VARIABLE, todo="For instance 20GB or 500MiB."
        )
    return int(float(match[1]) * unit)


@dataclass(frozen=True, kw_only=True)
class CacheFolder:
    """A folder of the cache, kept as long as this object lives.

    Attributes:
        root: The folder with the cache's own files.
        path: The folder in it with the content alone.
        granted: Bytes that may be in it.
        pin: The open file whose lock keeps the folder; forked processes hold it too.
    """

    root: Path
    path: Path
    granted: int
    pin: IO[bytes]

    @contextmanager
    def filling(self) -> Generator[None]:
        """A context in which only one process adds to the folder."""
        with (self.root / _FILLED).open("ab") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            for leftover in self.root.glob(f"{OWN_PREFIX}part-*"):
                leftover.unlink(missing_ok=True)
            yield


def cache_root() -> Path:
    """The cache folder for stores."""
    return cache_folder() / "stores"


def open_folder(name: str, wanted: int) -> CacheFolder:
    """A folder of the cache with room for some bytes.

    Args:
        name: Its name, which identifies the content; up to its last hyphen, the content's own.
        wanted: Bytes that it should hold in all.

    Returns:
        The folder; where the limit or the disk leaves too little room, less is granted.

    Raises:
        UserError: The cache cannot be written.
    """
    root = cache_root()
    make_writable(root)
    try:
        with (root / f"{OWN_PREFIX}lock").open("ab") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            folder = root / name
            folder.mkdir(exist_ok=True)
            pin = (folder / _USED).open("ab")
            fcntl.flock(pin, fcntl.LOCK_SH)
            os.utime(pin.fileno())
            reserved = _reserved(folder)
            if wanted > reserved:
                reserved += _make_room(root, wanted - reserved)
                (folder / _SIZE).write_text(str(reserved))
            content = folder / (name.rpartition("-")[0] or name)
            content.mkdir(exist_ok=True)
            return CacheFolder(root=folder, path=content, granted=reserved, pin=pin)
    except OSError as error:
        raise unwritable(
            root, error, more=f"{CACHE_VARIABLE} names another folder for the cache."
        ) from error


def _make_room(root: Path, needed: int) -> int:
    """How much of the needed room there is, after removing unused folders."""
    folders = [entry for entry in root.iterdir() if entry.is_dir()]
    used_bytes = sum(map(_reserved, folders))
    limit = limit_bytes()
    for folder in sorted(folders, key=_last_used):
        if used_bytes + needed <= limit and _free(root) >= needed:
            break
        size = _reserved(folder)
        if size and _removed(folder):
            used_bytes -= size
    return max(0, min(needed, limit - used_bytes, _free(root)))


def _free(root: Path) -> int:
    return shutil.disk_usage(root).free - _KEPT_FREE


def _removed(folder: Path) -> bool:
    """Remove an unused folder."""
    with suppress(FileNotFoundError), (folder / _USED).open("ab") as pin:
        try:
            fcntl.flock(pin, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return False
        remove_folder(folder)
    return not folder.exists()


def _reserved(folder: Path) -> int:
    try:
        return int((folder / _SIZE).read_text())
    except (OSError, ValueError):
        return 0


def _last_used(folder: Path) -> float:
    try:
        return (folder / _USED).stat().st_mtime
    except OSError:
        return 0.0
