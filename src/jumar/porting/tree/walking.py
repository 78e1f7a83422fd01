"""Lists a tree without following links or opening files that could block."""

import errno
import os
import posixpath
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from jumar.porting.edits import Text

VERSION_CONTROL = (".git", ".hg", ".svn")
"""Commits in a copy of these would go into the original's history."""

EntryKind = Literal["script", "file", "folder", "link", "left out"]
"""`left out`: neither read nor copied; the note says why, except for version control folders."""

_SHEBANG_BYTES = 256


@dataclass(frozen=True, kw_only=True)
class Entry:
    """A file, folder or link in a tree.

    `path` is relative, with forward slashes and the file system's bytes; `target` is the target for
    a copy of a link; `mode` contains the permissions; `is_unreadable` says that the system refused
    to read it.
    """

    path: str
    kind: EntryKind
    mode: int = 0o644
    size: int = 0
    note: Text | None = None
    target: str = ""
    is_unreadable: bool = False

    @property
    def shown(self) -> str:
        """The path as text: bytes that are not UTF-8 are escaped."""
        return _printable(self.path)


def _printable(path: str) -> str:
    return path.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def walk(root: Path) -> tuple[Entry, ...]:
    """List a folder or a single file, sorted by path, with folders before their contents.

    Args:
        root: A folder, without links in its own path; or a file.

    Raises:
        OSError: The folder itself cannot be listed.
    """
    if not root.is_dir():
        return (_entry(root, root.name, root.parent),)
    entries: dict[str, Entry] = {}
    waiting = [""]
    while waiting:
        folder = waiting.pop()
        for entry in _children(root, folder):
            # A folder that cannot be listed takes the place of its own entry: it is left out.
            entries[entry.path] = entry
            if entry.kind == "folder":
                waiting.append(entry.path)
    return tuple(sorted(entries.values(), key=lambda entry: entry.path.split("/")))


def _children(root: Path, folder: str) -> Iterator[Entry]:
    try:
        names = os.listdir(root / folder)  # noqa: PTH208 - names alone, unlike paths, are cheap
    except OSError as error:
        if not folder:
            raise
        yield _unreadable(folder, error)
        return
    for name in names:
        yield _entry(root / folder / name, f"{folder}/{name}" if folder else name, root)


def _entry(full_path: Path, path: str, root: Path) -> Entry:
    try:
        status = full_path.lstat()
        mode = stat.S_IMODE(status.st_mode) & 0o777
        if full_path.name in VERSION_CONTROL:
            return Entry(path=path, kind="left out", mode=mode)
        if stat.S_ISLNK(status.st_mode):
            return _link(full_path, path, root)
        if stat.S_ISDIR(status.st_mode):
            return Entry(path=path, kind="folder", mode=mode)
        if not stat.S_ISREG(status.st_mode):
            return Entry(path=path, kind="left out", mode=mode, note=_SPECIAL)
        return _file(full_path, path, status.st_size, mode)
    except OSError as error:
        return _unreadable(path, error)


def _file(full_path: Path, path: str, size: int, mode: int) -> Entry:
    if not os.access(full_path, os.R_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    is_script = full_path.suffix.lower() in (".py", ".pyw")
    if not full_path.suffix and not full_path.name.startswith("."):
        with full_path.open("rb") as stream:
            line = stream.read(_SHEBANG_BYTES).split(b"\n", 1)[0]
        is_script = line.startswith(b"#!") and b"python" in line
    if is_script and _printable(path) != path:
        return Entry(path=path, kind="file", mode=mode, size=size, note=_UNDECODABLE)
    return Entry(path=path, kind="script" if is_script else "file", mode=mode, size=size)


def _link(full_path: Path, path: str, root: Path) -> Entry:
    """Return the entry of a link, with the target that a copy needs to point to the same file."""
    # Strings, because `Path` normalises targets (`./a/` becomes `a`) and raises on cycles.
    text = os.readlink(full_path)  # noqa: PTH115
    folder = posixpath.dirname(path)
    lexical = posixpath.normpath(posixpath.join(folder, text))
    stays = not text.startswith("/") and not (lexical == ".." or lexical.startswith("../"))
    real = posixpath.realpath(full_path)
    base = posixpath.realpath(root)
    target = text if stays or text.startswith("/") else real
    if posixpath.islink(real):
        note = _CYCLIC
    elif not posixpath.exists(real):
        note = _DANGLING
    elif posixpath.commonpath([base, real]) != base:
        note = _OUTWARD
    else:
        is_above = posixpath.commonpath([real, posixpath.join(base, path)]) == real
        note = _ABOVE if is_above else _INWARD
        target = text if stays else posixpath.relpath(real, posixpath.join(base, folder))
    return Entry(path=path, kind="link", target=target, note=note.filled(target=_printable(text)))


def _unreadable(path: str, error: OSError) -> Entry:
    note = Text(
        en=f"cannot be read ({error.strerror}): left out of the copy",
        zh=f"无法读取（{error.strerror}），未复制",
    )
    return Entry(path=path, kind="left out", note=note, is_unreadable=True)


_SPECIAL = Text(
    en="a socket, pipe or device: left out of the copy",
    zh="套接字、管道或设备文件：未复制",
)
_UNDECODABLE = Text(
    en="the file name is not UTF-8: copied as it is, not ported",
    zh="文件名不是 UTF-8：原样复制，未移植",
)
_CYCLIC = Text(
    en="a link that leads back to itself: kept, not followed",
    zh="指向自身的循环链接：保留，未跟随",
)
_DANGLING = Text(
    en="a link to {target}, which does not exist: kept, not followed",
    zh="指向 {target} 的链接，目标不存在：保留，未跟随",
)
_OUTWARD = Text(
    en="a link to {target}, outside the tree: kept, not followed; its target is not ported",
    zh="指向目录树之外（{target}）的链接：保留，未跟随；其目标未移植",
)
_ABOVE = Text(
    en="a link to {target}, a folder that contains it: kept, not followed",
    zh="指向上级目录 {target} 的链接：保留，未跟随",
)
_INWARD = Text(en="a link to {target}: kept as a link", zh="指向 {target} 的链接：保留为链接")
