"""Everything in a tree, without following links or opening what could block."""

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
"""A copy of these would commit into the original's history."""

EntryKind = Literal["script", "file", "folder", "link", "left out"]
"""`left out`: neither read nor copied; the note says why, except for version control folders."""

_SHEBANG_BYTES = 256


@dataclass(frozen=True, kw_only=True)
class Entry:
    """Something in a tree.

    `path` is relative, with forward slashes, as the file system has it; `target` is what a copy of
    a link points at; `mode` are its permissions.
    """

    path: str
    kind: EntryKind
    mode: int = 0o644
    size: int = 0
    note: Text | None = None
    target: str = ""

    @property
    def shown(self) -> str:
        """The path as text: bytes that are not UTF-8 are escaped."""
        return self.path.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def walk(root: Path) -> tuple[Entry, ...]:
    """The contents of a folder, or a single file, sorted by path; folders before their contents.

    Args:
        root: A folder, without links in its own path; or a file.
    """
    if not root.is_dir():
        entry = _entry(root, root.name, root.parent)
        return (entry,)
    entries: list[Entry] = []
    waiting = [""]
    while waiting:
        folder = waiting.pop()
        for entry in _inside(root, folder):
            entries.append(entry)
            if entry.kind == "folder":
                waiting.append(entry.path)
    return tuple(sorted(entries, key=lambda entry: entry.path.split("/")))


def _inside(root: Path, folder: str) -> Iterator[Entry]:
    try:
        names = os.listdir(root / folder)  # noqa: PTH208 - names alone, unlike paths, are cheap
    except OSError as error:
        yield Entry(path=folder or ".", kind="left out", note=_unread(error))
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
        return Entry(path=path, kind="left out", note=_unread(error))


def _file(full_path: Path, path: str, size: int, mode: int) -> Entry:
    if not os.access(full_path, os.R_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    is_script = full_path.suffix.lower() in (".py", ".pyw")
    if not full_path.suffix and not full_path.name.startswith("."):
        with full_path.open("rb") as stream:
            line = stream.read(_SHEBANG_BYTES).split(b"\n", 1)[0]
        is_script = line.startswith(b"#!") and b"python" in line
    if is_script and not _is_text(path):
        return Entry(path=path, kind="file", mode=mode, size=size, note=_NO_TEXT)
    return Entry(path=path, kind="script" if is_script else "file", mode=mode, size=size)


def _is_text(path: str) -> bool:
    try:
        path.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _link(full_path: Path, path: str, root: Path) -> Entry:
    """A link, with the target that a copy of it needs to mean the same."""
    # Texts, not paths: `Path` changes what a link says (`./a/` to `a`), and raises on cycles.
    text = os.readlink(full_path)  # noqa: PTH115
    folder = posixpath.dirname(path)
    lexical = posixpath.normpath(posixpath.join(folder, text))
    stays = not text.startswith("/") and not (lexical == ".." or lexical.startswith("../"))
    printable_target = text.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
    real = posixpath.realpath(full_path)
    base = posixpath.realpath(root)
    outward = text if stays or text.startswith("/") else real
    if posixpath.islink(real):
        return Entry(path=path, kind="link", target=outward, note=_CYCLIC)
    if not posixpath.exists(real):
        return Entry(
            path=path, kind="link", target=outward, note=_DANGLING.filled(target=printable_target)
        )
    if posixpath.commonpath([base, real]) != base:
        return Entry(
            path=path, kind="link", target=outward, note=_OUTWARD.filled(target=printable_target)
        )
    above = posixpath.commonpath([real, posixpath.join(base, path)]) == real
    inward = text if stays else posixpath.relpath(real, posixpath.join(base, folder))
    note = (_ABOVE if above else _INWARD).filled(target=printable_target)
    return Entry(path=path, kind="link", target=inward, note=note)


def _unread(error: OSError) -> Text:
    return Text(
        en=f"cannot be read ({error.strerror}): left out of the copy",
        zh=f"无法读取（{error.strerror}），未复制",
    )


_SPECIAL = Text(
    en="a socket, pipe or device: left out of the copy",
    zh="套接字、管道或设备文件：未复制",
)
_NO_TEXT = Text(
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
    en="a link out of the tree, to {target}: kept, not followed; what it points at is not ported",
    zh="指向目录树之外（{target}）的链接：保留，未跟随；其目标未移植",
)
_ABOVE = Text(
    en="a link to {target}, a folder above it: kept, not followed",
    zh="指向上级目录 {target} 的链接：保留，未跟随",
)
_INWARD = Text(en="a link to {target}: kept as a link", zh="指向 {target} 的链接：保留为链接")
