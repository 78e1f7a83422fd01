"""Paths from users: the only place where they are checked, opened and created.

Python's own checks are inconsistent: for a folder without search permission, they raise in one
release and return False in another; for a loop of links they return False, and for a name of 300
characters they raise. Here, a check returns True or False only if the file system can tell, and
otherwise raises a `UserError` with the path and the system's reason.
"""

import errno
import os
import re
import shlex
import stat
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

from jumar.ground.errors import UserError, nearest

_ABSENT = (errno.ENOENT, errno.ENOTDIR)

_REMEDIES = {
    errno.ENOSPC: "Free some space on that disk, or choose another.",
    errno.EDQUOT: "Your quota on that disk is used up: delete something, or choose another disk.",
    errno.EROFS: "Choose a path on a writable disk.",
    errno.EFBIG: "The file would be larger than the file system or `ulimit -f` allows.",
    errno.EIO: "The disk or the network behind it is failing; see the kernel's log (dmesg).",
    errno.EMFILE: "Allow this process more open files: ulimit -n 4096",
    errno.ENFILE: "The whole system has too many files open: close other programs.",
    errno.ELOOP: "The links there form a loop; `ls -l` shows where they point.",
    errno.EISDIR: "It is a folder: name a file.",
    errno.EAGAIN: "The system allows no more processes or threads: raise ulimit -u, or use fewer.",
}
_MACHINE_ERRORS = {*_REMEDIES, errno.ENAMETOOLONG, errno.ENOMEM} - {errno.EISDIR}
"""Error numbers that are not the program's fault, even if the error names no file."""
_TRANSIENT = {
    errno.EAGAIN,
    errno.EBUSY,
    errno.EIO,
    errno.ENFILE,
    errno.ESTALE,
    errno.ETIMEDOUT,
    errno.ECONNRESET,
    errno.ENETDOWN,
    errno.ENETUNREACH,
    errno.EHOSTUNREACH,
}
"""Error numbers of network disks while their server is slow or restarting."""


def exists(path: Path) -> bool:
    """Return whether the path exists, following links.

    Raises:
        UserError: The file system cannot tell: no permission, a name too long, a loop of links.
    """
    return _mode(path) is not None


def is_file(path: Path) -> bool:
    """Return whether the path is a regular file, following links; raises like `exists`."""
    mode = _mode(path)
    return mode is not None and stat.S_ISREG(mode)


def is_folder(path: Path) -> bool:
    """Return whether the path is a folder, following links; raises like `exists`."""
    mode = _mode(path)
    return mode is not None and stat.S_ISDIR(mode)


def open_to_read(path: Path) -> BinaryIO:
    """Open a file for reading in binary mode.

    Raises:
        UserError: It cannot be opened, or is not a regular file: opening a pipe without a writer
            would block forever.
    """
    mode = _mode(path)
    if mode is None:
        raise missing(path, "file")
    if not stat.S_ISREG(mode):
        raise UserError(f"it is {_kind_of(mode)}, not a file", where=str(path))
    try:
        return path.open("rb")
    except OSError as error:
        raise unreadable(path, error) from error


def read_bytes(path: Path, max_bytes: int = -1) -> bytes:
    """Return the content of a file, or its first `max_bytes`; raises like `open_to_read`."""
    with open_to_read(path) as file:
        try:
            return file.read(max_bytes)
        except OSError as error:
            raise unreadable(path, error) from error


def read_text(path: Path) -> str:
    """Return the content of a UTF-8 file.

    Raises:
        UserError: It cannot be read, or is not UTF-8.
    """
    try:
        return read_bytes(path).decode("utf-8")
    except UnicodeDecodeError as error:
        raise UserError(f"is not UTF-8 text: {error}", where=str(path)) from error


_STORE_URL = re.compile(r"^(s3|obs):/{1,2}(?=[^/])")
_fetchers: list[Callable[[str], Path]] = []


def store_url(path: Path | str) -> str | None:
    """Return a path's `s3://` or `obs://` URL, restoring the slash that `Path` removes; or None."""
    text = str(path)
    match = _STORE_URL.match(text)
    return None if match is None else f"{match[1]}://{text[match.end() :]}"


def fetch_urls_with(fetch: Callable[[str], Path]) -> None:
    """Register how `expanded` fetches URLs of object stores.

    Args:
        fetch: Called with the URL; returns the local file or folder.
    """
    _fetchers[:] = [fetch]


def expanded(path: Path | str) -> Path:
    """Expand `~` and `~name` in a path; for a store's URL, return the local copy.

    Raises:
        UserError: There is no such user, or the URL cannot be fetched.
    """
    url = store_url(path)
    if url is not None and _fetchers:
        return _fetchers[-1](url)
    try:
        return Path(path).expanduser()
    except RuntimeError as error:
        raise UserError(
            "no home directory is known for that user",
            where=str(path),
            todo=f"If the name begins with ~, write ./{path}",
        ) from error


def resolved(path: Path) -> Path:
    """Resolve links in a path as far as possible; a loop of links is left unresolved.

    Before Python 3.13, `Path.resolve` raises a RuntimeError for a loop.
    """
    return Path(os.path.realpath(path))


def check_no_file(path: Path, option: str) -> None:
    """Check that a path for a folder to be written, given with an option, is not taken by a file.

    Raises:
        UserError: The path exists and is not a folder.
    """
    if exists(path) and not is_folder(path):
        raise UserError("is not a folder", where=str(path), todo=f"Choose another with {option}.")


def make_folder(path: Path) -> None:
    """Create a folder and its parents; an existing one is kept.

    Raises:
        UserError: It cannot be created, or the path exists and is not a folder.
    """
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise unwritable(path, error) from error


def make_writable(path: Path) -> None:
    """Create a folder if it does not exist, and check that it is writable.

    Raises:
        UserError: It cannot be created, or is not writable.
    """
    make_folder(path)
    if not os.access(path, os.W_OK | os.X_OK):
        raise unwritable(path, PermissionError(errno.EACCES, "Permission denied"))


def missing(
    path: Path, kind: str = "file or folder", *, where: str = "", more: str = ""
) -> UserError:
    """Return the error for a path that does not exist, with the most similar existing name.

    Args:
        path: The missing path.
        kind: What was expected, such as `run directory`.
        where: The option or field that the path comes from, if more helpful than the path.
        more: More advice, as a sentence.
    """
    mode = _mode(path)
    if mode is not None:  # a pipe or a device, or a file where a folder is expected
        return UserError(f"it is {_kind_of(mode)}, not a {kind}", where=str(path), todo=more)
    message = f"there is no such {kind}"
    return UserError(
        f"{message}: {path}" if where else message,
        where=where or str(path),
        todo=_joined(_nearest_to(path), more),
    )


def unreadable(path: Path | str, error: BaseException, *, more: str = "") -> UserError:
    """Return the error for a path that cannot be read, with the system's reason and advice."""
    if isinstance(error, OSError) and error.errno in _ABSENT:
        return missing(Path(path), more=more)
    return _path_error("cannot be read", Path(path), error, more)


def unwritable(
    path: Path | str, error: BaseException, *, what: str = "cannot be written", more: str = ""
) -> UserError:
    """Return the error for a path that cannot be written, with the system's reason.

    Args:
        path: The path to be written.
        error: The exception.
        what: What failed.
        more: More advice, as a sentence.
    """
    return _path_error(what, Path(path), error, more)


def reason(error: BaseException) -> str:
    """Return the system's message, without number and path."""
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return str(error) or type(error).__name__


def remedy(error: BaseException, path: Path) -> str:
    """Return advice about an error for a path; empty if there is none."""
    number = error.errno if isinstance(error, OSError) else None
    if number in (errno.EACCES, errno.EPERM):
        return _locked_part(path)
    if number == errno.ENAMETOOLONG:
        max_bytes = max((len(os.fsencode(part)) for part in path.parts), default=0)
        return f"Its longest name has {max_bytes} bytes; the usual limits are 255, and 4095 in all."
    if number == errno.ENOENT:
        return "The file system accepts no new files, or a folder in the path was deleted."
    if number in (errno.ENOTDIR, errno.EEXIST):
        part = next(
            (candidate for candidate in (path, *path.parents) if _is_not_a_folder(candidate)),
            path,
        )
        return f"{part} is not a folder."
    return _REMEDIES.get(number or 0, "")


def is_machine_error(error: OSError) -> bool:
    """Return whether an error is caused by the disk, limits or links, not by the program."""
    return error.errno in _MACHINE_ERRORS


def is_transient(error: BaseException | None) -> bool:
    """Return whether the same call may succeed a moment later."""
    return isinstance(error, OSError) and error.errno in _TRANSIENT


def _path_error(what: str, path: Path, error: BaseException, more: str = "") -> UserError:
    return UserError(
        f"{what}: {reason(error)}", where=str(path), todo=_joined(remedy(error, path), more)
    )


def _joined(*sentences: str) -> str:
    return " ".join(filter(None, sentences))


def _mode(path: Path) -> int | None:
    """Return the mode of a path's target, or None if it does not exist."""
    try:
        return path.stat().st_mode
    except OSError as error:
        if error.errno in _ABSENT:
            return None
        raise _path_error("cannot be reached", path, error) from error
    except ValueError as error:  # a null character
        raise UserError(f"is not a path: {error}", where=repr(str(path))) from error


def _kind_of(mode: int) -> str:
    kinds: list[tuple[Callable[[int], bool], str]] = [
        (stat.S_ISREG, "a file"),
        (stat.S_ISDIR, "a folder"),
        (stat.S_ISFIFO, "a pipe"),
        (stat.S_ISSOCK, "a socket"),
    ]
    return next((name for is_kind, name in kinds if is_kind(mode)), "a device")


def _nearest_to(path: Path) -> str:
    """Return advice naming the part of a path that does not exist and a similar name."""
    parent = next((candidate for candidate in path.parents if os.path.lexists(candidate)), Path())
    try:
        if path.is_symlink():
            return f"It is a link to {path.readlink()}, which does not exist."
        names = [candidate.name for candidate in parent.iterdir()]
    except NotADirectoryError:
        return f"{parent} is a file, so nothing can be below it."
    except (OSError, ValueError):
        return ""
    missing_name = (
        path.parts[len(parent.parts)] if len(path.parts) > len(parent.parts) else path.name
    )
    similar_name = nearest(missing_name, names)
    missing_folder = (
        f"There is no {parent / missing_name}. " if parent / missing_name != path else ""
    )
    return (
        f"{missing_folder}Did you mean {parent / similar_name}?"
        if similar_name
        else missing_folder.strip()
    )


def _locked_part(path: Path) -> str:
    """Return advice naming the part of a path that this user may not enter."""
    for folder in reversed(path.absolute().parents):
        if not os.access(folder, os.X_OK):
            return f"This user may not enter {folder}."
    existing = next(
        (candidate for candidate in (path, *path.parents) if os.path.lexists(candidate)), path
    )
    return f"Check its permissions: ls -ld {shlex.quote(str(existing))}"


def _is_not_a_folder(path: Path) -> bool:
    return os.path.lexists(path) and not os.path.isdir(path)  # noqa: PTH112 - never raises
