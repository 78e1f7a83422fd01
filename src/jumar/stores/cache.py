"""The local cache of store contents, limited in size and shared by all processes of a user.

Each folder belongs to one listing of a store: its name depends on keys, sizes and ETags, so a
changed object leads to another folder, and cached content never changes. Space is reserved before
the first byte is written; if there is too little, the least recently used folders are removed. A
folder in use has a lock of the operating system, which ends with its process.
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
_UNITS = {
    **{"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12},
    **{"ki": 2**10, "mi": 2**20, "gi": 2**30, "ti": 2**40},
}


def limit_bytes() -> int:
    """Return the maximum size of the cache in bytes: `$JUMAR_CACHE_LIMIT`, or 50 GiB.

    Raises:
        UserError: The variable's value is not a size.
    """
    text = os.environ.get(LIMIT_VARIABLE, "").strip()
    if not text:
        return _DEFAULT_LIMIT
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([kmgt]?i?)b?", text.lower())
    unit = _UNITS.get(match[2]) if match else None
    if match is None or unit is None:
        raise UserError(
            f"'{text}' is not a size", where=LIMIT_VARIABLE, todo="For instance 20GB or 500MiB."
        )
    return int(float(match[1]) * unit)


@dataclass(frozen=True, kw_only=True)
class CacheFolder:
    """A folder of the cache, which is not removed while this object exists.

    Attributes:
        root: The folder, including the cache's own files.
        path: The subfolder with only the content.
        granted: Bytes reserved for the content.
        pin: The open file whose lock protects the folder; forked processes share it.
    """

    root: Path
    path: Path
    granted: int
    pin: IO[bytes]

    @contextmanager
    def filling(self) -> Generator[None]:
        """Enter a context in which no other process adds to the folder."""
        with (self.root / _FILLED).open("ab") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            for leftover in self.root.glob(f"{OWN_PREFIX}part-*"):
                leftover.unlink(missing_ok=True)
            yield


def cache_root() -> Path:
    """Return the folder of this cache."""
    return cache_folder() / "stores"


def open_folder(name: str, size: int) -> CacheFolder:
    """Open or create a folder of the cache, and reserve space in it.

    Args:
        name: Its name, which identifies the content; the part before the last hyphen names the
            content's subfolder.
        size: Total size of its content, in bytes.

    Returns:
        The folder; if the limit or the disk leaves too little space, less is granted.

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
            if size > reserved:
                reserved += _make_space(root, size - reserved)
                (folder / _SIZE).write_text(str(reserved))
            content = folder / (name.rpartition("-")[0] or name)
            content.mkdir(exist_ok=True)
            return CacheFolder(root=folder, path=content, granted=reserved, pin=pin)
    except OSError as error:
        raise unwritable(
            root, error, more=f"To use another folder for the cache, set {CACHE_VARIABLE}."
        ) from error


def _make_space(root: Path, needed: int) -> int:
    """Remove unused folders if necessary, and return how much of the needed space there is."""
    folders = [entry for entry in root.iterdir() if entry.is_dir()]
    used_bytes = sum(map(_reserved, folders))
    limit = limit_bytes()
    for folder in sorted(folders, key=_last_used):
        if used_bytes + needed <= limit and _free(root) >= needed:
            break
        size = _reserved(folder)
        if size and _try_remove(folder):
            used_bytes -= size
    return max(0, min(needed, limit - used_bytes, _free(root)))


def _free(root: Path) -> int:
    return shutil.disk_usage(root).free - _KEPT_FREE


def _try_remove(folder: Path) -> bool:
    """Remove a folder unless it is in use, and return whether it is gone."""
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
