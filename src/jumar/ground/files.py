"""Atomic file writes: to a temporary file, then renamed."""

import os
import shutil
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from jumar.ground.paths import exists, unwritable

_LONGEST = 60
"""Characters of a name kept in its temporary file's: up to four bytes each, at most 255 bytes in
all."""


@contextmanager
def written_beside(
    path: Path, *, what: str = "cannot be written", more: str = ""
) -> Generator[Path]:
    """A temporary path to write to, which becomes the file when the block ends.

    So no reader sees half of a file, and after an error neither a partial file nor a folder created
    for it is left; what was at `path` before stays.

    Args:
        path: The file; its parent folders are created.
        what: What failed, for error messages.
        more: More advice, as a sentence.

    Raises:
        UserError: The system refuses: no permission, no space, or something is in the way.
    """
    with _temporary(path, what, more) as temporary:
        yield temporary
        temporary.replace(path)


@contextmanager
def folder_beside(
    path: Path, *, what: str = "cannot be written", more: str = "", replacing: bool = False
) -> Generator[Path]:
    """As `written_beside`, for a folder: a new one, which takes its place when the block ends.

    Args:
        path: The folder; its parent folders are created.
        what: What failed, for error messages.
        more: More advice, as a sentence.
        replacing: Whether it may replace a folder that is not empty.

    Raises:
        UserError: The system refuses: no permission, no space, or something is in the way.
    """
    with _temporary(path, what, more) as temporary:
        remove_folder(temporary)
        temporary.mkdir()
        yield temporary
        old_path = path.with_name(f".{path.name[:_LONGEST]}.old")
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
    """Remove a folder of ours with its content, as far as the system allows."""
    for parent, folders, _ in os.walk(folder):
        for name in folders:
            path = Path(parent, name)
            # A folder without write permission keeps its content.
            if not path.is_symlink():
                with suppress(OSError):
                    path.chmod(0o700)
    shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _temporary(path: Path, what: str, more: str) -> Generator[Path]:
    temporary = path.with_name(f".{path.name[:_LONGEST]}.{os.getpid()}")
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


def write_text(path: Path, text: str, *, errors: str = "backslashreplace") -> None:
    r"""Write a text atomically as UTF-8, keeping its line ends.

    Args:
        path: The file; its parent folders are created.
        text: Its content.
        errors: How unpaired surrogates, which UTF-8 cannot hold, are encoded; see `str.encode`.
            Names in untrusted JSON may have some: they are spelt out, as `\ud800`.

    Raises:
        UserError: The system refuses.
    """
    write_bytes(path, text.encode("utf-8", errors))


def write_bytes(path: Path, content: bytes) -> None:
    """Write bytes atomically; raises as `write_text`."""
    with written_beside(path) as temporary:
        temporary.write_bytes(content)


def is_at(file: IO[Any], path: Path) -> bool:
    """Whether an open file is the one that lies at a path now."""
    try:
        return os.path.samestat(os.fstat(file.fileno()), path.stat())
    except FileNotFoundError:
        return False
