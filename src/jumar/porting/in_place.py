"""A ported tree in the place of its original, which git can give back."""

import os
import shutil
import stat
import subprocess
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from jumar.errors import UserError
from jumar.porting.edits import TreeReport
from jumar.porting.tree import tree_entries
from jumar.porting.writing import Written, checked_added, new_content

_GIT_SECONDS = 120


def write_in_place(
    report: TreeReport, root: Path, added: Mapping[str, str] | None = None, *, force: bool = False
) -> Written:
    """Write the ported scripts over their originals; all of them, or none.

    Args:
        report: Of a port of `root`.
        root: What was ported: a folder or a script.
        added: Files that are not in the original, by their path in the tree.
        force: Also where git has no copy of what is overwritten.

    Raises:
        UserError: A file that would change is not committed, has changed since it was read, or
            cannot be written; what was written before is put back.
    """
    base, entries = tree_entries(root)
    added = checked_added(added or {})
    links = {entry.path for entry in entries if entry.kind == "link"}
    contents = {
        file.path: new_content(base / file.path, file)
        for file in report.files
        if file.status == "ported"
    }
    for path, text in added.items():
        content = text.encode("utf-8")
        place = base / path
        through = [part for part in (path, *_folders(path)) if part in links]
        if through:
            raise UserError(
                f"is a link, through which {path} would be written",
                where=through[0],
                todo="Remove the link, or use --to.",
            )
        if not place.is_file() or place.read_bytes() != content:
            contents[path] = content
    overwritten = [path for path in contents if (base / path).exists()]
    if not force:
        _demand_committed(base, overwritten)
    _Exchange(base).write(contents)
    ported = len([file for file in report.files if file.status == "ported"])
    return Written(place=base, ported=ported, copied=0, added=tuple(added))


def _folders(path: str) -> list[str]:
    parts = path.split("/")[:-1]
    return ["/".join(parts[: count + 1]) for count in range(len(parts))]


def _demand_committed(base: Path, paths: list[str]) -> None:
    """Raise unless git could give back every file that is overwritten."""
    if not paths:
        return
    prefix = _git(base, "rev-parse", "--show-prefix").rstrip("\n")
    tracked = set(_git(base, "ls-files", "-z").split("\0"))
    status = _git(base, "status", "--porcelain", "-z", "--untracked-files=no", "--", ".")
    # A renamed file is followed by its old name, in a record without the two letters.
    dirty = {record[3:].removeprefix(prefix) for record in status.split("\0") if record}
    for path in paths:
        what = "is not under git" if path not in tracked else "is not committed"
        if path not in tracked or path in dirty:
            raise UserError(
                f"{what}: what --in-place overwrites could not be given back",
                where=str(base / path),
                todo="Commit it first, or add --force.",
            )


def _git(base: Path, *arguments: str) -> str:
    # A monitor of the file system named in the repository's settings would be run by `status`.
    command = ["git", "-C", str(base), "-c", "core.fsmonitor=false", *arguments]
    try:
        done = subprocess.run(
            command,
            check=False,
            capture_output=True,
            timeout=_GIT_SECONDS,
            env={**os.environ, "GIT_OPTIONAL_LOCKS": "0", "LC_ALL": "C"},
        )
    except FileNotFoundError as error:
        raise UserError(
            "git is not installed, so nothing could give the original back",
            where=str(base),
            todo="Use --to, or add --force.",
        ) from error
    except subprocess.TimeoutExpired as error:
        raise UserError(
            f"git took longer than {_GIT_SECONDS} s",
            where=str(base),
            todo="Use --to, or add --force.",
        ) from error
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip().splitlines()
        raise UserError(
            f"is not under git ({said[0] if said else 'git failed'})",
            where=str(base),
            todo="Commit it to a repository first, use --to, or add --force.",
        )
    return os.fsdecode(done.stdout)


class _Exchange:
    """New contents for files; if one cannot be written, none is changed."""

    def __init__(self, base: Path) -> None:
        self._base = base
        self._made: list[Path] = []
        self._kept: list[tuple[Path, Path]] = []
        self._new: list[Path] = []

    def write(self, contents: Mapping[str, bytes]) -> None:
        """Write them all.

        Raises:
            UserError: One cannot be written.
        """
        beside: list[tuple[Path, Path]] = []
        place = self._base
        try:
            # A full disk shows here, before the first file is replaced.
            for path, content in contents.items():
                place = self._base / path
                beside.append((self._beside(place, content), place))
            for new, place in beside:
                self._replace(new, place)
        except BaseException as error:
            self._put_back()
            for new, _ in beside:
                new.unlink(missing_ok=True)
            if isinstance(error, OSError):
                raise UserError(
                    f"cannot be written: {error.strerror or error}",
                    where=str(place),
                    todo="Check that the disk is not full and that the folder may be written to.",
                ) from error
            raise
        for _, kept in self._kept:
            kept.unlink(missing_ok=True)

    def _beside(self, place: Path, content: bytes) -> Path:
        missing = [each for each in place.parents if not each.exists()]
        for folder in reversed(missing):
            folder.mkdir()
            self._made.append(folder)
        number, name = tempfile.mkstemp(prefix=f".{place.name[:100]}.", dir=place.parent)
        new = Path(name)
        try:
            with os.fdopen(number, "wb") as stream:
                stream.write(content)
            if place.exists():
                new.chmod(stat.S_IMODE(place.stat().st_mode) & 0o777)
            else:
                new.chmod(0o755 if content.startswith(b"#!") else 0o644)
        except BaseException:
            new.unlink(missing_ok=True)
            raise
        return new

    def _replace(self, new: Path, place: Path) -> None:
        if place.exists():
            kept = new.with_name(f"{new.name}.original")
            self._kept.append((place, kept))
            try:
                # A second name for the original: at no moment is there no file.
                kept.hardlink_to(place)
            except OSError:
                shutil.copy2(place, kept)
        else:
            self._new.append(place)
        new.replace(place)

    def _put_back(self) -> None:
        for place, kept in reversed(self._kept):
            with suppress(OSError):
                kept.replace(place)
                # Two names of one file are left as they are by renaming.
                kept.unlink(missing_ok=True)
        for place in self._new:
            place.unlink(missing_ok=True)
        for folder in reversed(self._made):
            with suppress(OSError):
                folder.rmdir()
