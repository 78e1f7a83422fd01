"""Atomic file writes: to a temporary file, then renamed."""

import os
import shutil
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from jumar.ground.errors import UserError
from jumar.ground.paths import exists, unwritable

_MAX_PREFIX = 60
"""Maximum characters of a file's name in the name of its temporary file: each has up to four bytes,
and a file name at most 255."""


@contextmanager
def written_beside(path: Path, *, what: str = "cannot be written") -> Generator[Path]:
    """Yield a temporary path, which is renamed to `path` when the block ends.

    Readers never see an incomplete file. After an error, the partial file and the folders created
    for it are removed, and an existing file at `path` is kept.

    Args:
        path: The file; its parent folders are created.
        what: What failed, for error messages.

    Raises:
        UserError: The write fails: no permission, no space, or `path` is of another type.
    """
    with _temporary(path, what) as temporary:
        yield temporary
        temporary.replace(path)


@contextmanager
def folder_beside(
    path: Path, *, what: str = "cannot be written", more: str = "", replacing: bool = False
) -> Generator[Path]:
    """Like `written_beside`, but yield a new folder, which is moved to `path` when the block ends.

    Args:
        path: The folder; its parent folders are created.
        what: What failed, for error messages.
        more: More advice, as a sentence.
        replacing: Whether to replace an existing folder even if it is not empty.

    Raises:
        UserError: The write fails: no permission, no space, or `path` is of another type.
    """
    with _temporary(path, what, more) as temporary:
        remove_folder(temporary)
        temporary.mkdir()
        yield temporary
        old_path = path.with_name(f".{path.name[:_MAX_PREFIX]}.old")
        if replacing and exists(path):
            remove_folder(old_path)
            path.replace(old_path)
        try:
            temporary.replace(path)
        except OSError:
            if replacing:
                with suppress(OSError):
                    old_path.replace(path)
            raise
        if replacing:
            remove_folder(old_path)


def remove_folder(folder: Path) -> None:
    """Remove a folder and its content, as far as the system allows."""
    for parent, folders, _ in os.walk(folder):
        for name in folders:
            path = Path(parent, name)
            # The content of a folder without write permission cannot be deleted.
            if not path.is_symlink():
                with suppress(OSError):
                    path.chmod(0o700)
    shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _temporary(path: Path, what: str, more: str = "") -> Generator[Path]:
    temporary = path.with_name(f".{path.name[:_MAX_PREFIX]}.{os.getpid()}")
    missing_parents = [folder for folder in path.parents if not exists(folder)]
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        yield temporary
    except BaseException as error:
        with suppress(OSError):
            temporary.unlink()
        remove_folder(temporary)
        for folder in missing_parents:
            with suppress(OSError):
                folder.rmdir()
        if isinstance(error, OSError):
            raise unwritable(path, error, what=what, more=more) from error
        raise


@contextmanager
def folder_locked(folder: Path, what: str, where: Path) -> Generator[None]:
    """Hold an existing folder's lock during the block; it also ends with the process.

    Args:
        folder: The folder.
        what: What is wrong if another process holds the lock.
        where: The folder that messages name.

    Raises:
        UserError: Another process holds the lock.
    """
    import fcntl  # not available on Windows

    descriptor = os.open(folder, os.O_RDONLY)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise UserError(what, where=str(where)) from error
        yield
    finally:
        os.close(descriptor)


def write_text(path: Path, text: str, *, errors: str = "backslashreplace") -> None:
    r"""Write text atomically as UTF-8, without converting line endings.

    Args:
        path: The file; its parent folders are created.
        text: Its content.
        errors: How to encode unpaired surrogates, which UTF-8 cannot represent; see `str.encode`.
            Names in untrusted JSON may contain them; by default they are escaped, as `\ud800`.

    Raises:
        UserError: The file cannot be written.
    """
    write_bytes(path, text.encode("utf-8", errors))


def write_bytes(path: Path, content: bytes) -> None:
    """Write bytes atomically; raises like `write_text`."""
    with written_beside(path) as temporary:
        temporary.write_bytes(content)


def is_at(file: IO[Any], path: Path) -> bool:
    """Return whether an open file is still the one at a path."""
    try:
        return os.path.samestat(os.fstat(file.fileno()), path.stat())
    except FileNotFoundError:
        return False
