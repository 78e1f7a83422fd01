"""A ported tree in place of its original, which git can restore."""

import os
import shutil
import stat
import subprocess
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from jumar.ground.errors import UserError
from jumar.porting.edits import TreeReport
from jumar.porting.tree.source_tree import SourceTree, as_tree
from jumar.porting.tree.writing import Written, checked_added, new_content

_GIT_SECONDS = 120


def write_in_place(
    report: TreeReport,
    root: Path | SourceTree,
    added: Mapping[str, str] | None = None,
    *,
    force: bool = False,
) -> Written:
    """Write the ported scripts over their originals; all of them, or none.

    Args:
        report: The report of a port of `root`.
        root: What was ported: a folder, a script, or its tree as read.
        added: Files that are not in the original, by their path in the tree.
        force: Whether to overwrite files of which git has no copy.

    Raises:
        UserError: A file that would change is not committed, has changed since it was read, or
            cannot be written; files already written are restored.
    """
    tree = as_tree(root)
    base, entries = tree.folder, tree.entries
    added = checked_added(added or {})
    links = {entry.path for entry in entries if entry.kind == "link"}
    contents = {
        file.path: new_content(tree.project, file)
        for file in report.files
        if file.status == "ported"
    }
    for path, text in added.items():
        content = text.encode("utf-8")
        target = base / path
        links_on_path = [part for part in (path, *_folders(path)) if part in links]
        if links_on_path:
            raise UserError(
                f"is a link; {path} would be written through it",
                where=links_on_path[0],
                todo="Remove the link, or use --to.",
            )
        if not target.is_file() or target.read_bytes() != content:
            contents[path] = content
    overwritten = [path for path in contents if (base / path).exists()]
    if not force:
        _demand_committed(base, overwritten)
    _Exchange(base).write(contents)
    num_ported = len([file for file in report.files if file.status == "ported"])
    return Written(place=base, ported=num_ported, copied=0, added=tuple(added))


def _folders(path: str) -> list[str]:
    parts = path.split("/")[:-1]
    return ["/".join(parts[: count + 1]) for count in range(len(parts))]


def _demand_committed(base: Path, paths: list[str]) -> None:
    """Raise unless git can restore every overwritten file."""
    if not paths:
        return
    prefix = _git(base, "rev-parse", "--show-prefix").rstrip("\n")
    tracked_paths = set(_git(base, "ls-files", "-z").split("\0"))
    status = _git(base, "status", "--porcelain", "-z", "--untracked-files=no", "--", ".")
    dirty = {record[3:].removeprefix(prefix) for record in status.split("\0") if record}
    for path in paths:
        problem = "is not under git" if path not in tracked_paths else "is not committed"
        if path not in tracked_paths or path in dirty:
            raise UserError(
                f"{problem}: git could not restore what --in-place overwrites",
                where=str(base / path),
                todo="Commit it first, or add --force.",
            )


def _git(base: Path, *arguments: str) -> str:
    # `status` would run a file system monitor named in the repository's settings, and would give
    # the old name of a renamed file in a record of another form.
    settings = ["-c", "core.fsmonitor=false", "-c", "status.renames=false"]
    command = ["git", "-C", str(base), *settings, *arguments]
    try:
        result = subprocess.run(
            command,
            check=False,
            capture_output=True,
            timeout=_GIT_SECONDS,
            env={**os.environ, "GIT_OPTIONAL_LOCKS": "0", "LC_ALL": "C"},
        )
    except FileNotFoundError as error:
        raise UserError(
            "git is not installed, so the original could not be restored",
            where=str(base),
            todo="Use --to, or add --force.",
        ) from error
    except subprocess.TimeoutExpired as error:
        raise UserError(
            f"git took longer than {_GIT_SECONDS} s",
            where=str(base),
            todo="Use --to, or add --force.",
        ) from error
    if result.returncode:
        complaint = result.stderr.decode(errors="replace").strip().splitlines()
        raise UserError(
            f"is not under git ({complaint[0] if complaint else 'git failed'})",
            where=str(base),
            todo="Commit it to a repository first, use --to, or add --force.",
        )
    return os.fsdecode(result.stdout)


@dataclass(frozen=True)
class _Step:
    """One file: its path, its new content next to it, and the original under another name."""

    place: Path
    new: Path
    kept: Path | None


class _Exchange:
    """New contents for files; if one cannot be written, none is changed.

    Args:
        base: The folder that the paths are relative to.
    """

    def __init__(self, base: Path) -> None:
        self._base = base
        self._folders: list[Path] = []
        self._steps: list[_Step] = []

    def write(self, contents: Mapping[str, bytes]) -> None:
        """Write them all.

        Raises:
            UserError: One cannot be written.
        """
        target = self._base
        try:
            # A full disk is noticed here, before the first file is replaced.
            for path, content in contents.items():
                target = self._base / path
                self._prepare(target, content)
            for step in self._steps:
                target = step.place
                if step.kept:
                    _keep(target, step.kept)
                step.new.replace(target)
        except BaseException as error:
            lost = self._put_back()
            if isinstance(error, OSError):
                todo = "Check that the disk is not full and that the folder may be written to."
                if lost:
                    todo = f"Rename by hand: {', '.join(lost)}."
                raise UserError(
                    f"cannot be written: {error.strerror or error}", where=str(target), todo=todo
                ) from error
            raise
        for step in self._steps:
            if step.kept:
                step.kept.unlink(missing_ok=True)

    def _prepare(self, target: Path, content: bytes) -> None:
        missing = [folder for folder in target.parents if not folder.exists()]
        for folder in reversed(missing):
            folder.mkdir()
            self._folders.append(folder)
        number, name = tempfile.mkstemp(prefix=f".{target.name[:100]}.", dir=target.parent)
        new = Path(name)
        exists = target.exists()
        backup = new.with_name(f"{new.name}.original") if exists else None
        self._steps.append(_Step(target, new, backup))
        with os.fdopen(number, "wb") as stream:
            stream.write(content)
        if exists:
            new.chmod(stat.S_IMODE(target.stat().st_mode) & 0o777)
        else:
            new.chmod(0o755 if content.startswith(b"#!") else 0o644)

    def _put_back(self) -> list[str]:
        """Undo every step; returns originals that could not be restored, with their location."""
        lost: list[str] = []
        for step in reversed(self._steps):
            was_replaced = not step.new.exists()
            step.new.unlink(missing_ok=True)
            try:
                if was_replaced and step.kept:
                    step.kept.replace(step.place)
                elif was_replaced:
                    step.place.unlink(missing_ok=True)
                elif step.kept:
                    step.kept.unlink(missing_ok=True)
            except OSError:
                lost.append(f"{step.kept} to {step.place}")
        for folder in reversed(self._folders):
            with suppress(OSError):
                folder.rmdir()
        return lost


def _keep(original: Path, backup: Path) -> None:
    try:
        # A hard link to the original, so that the file exists at every moment.
        backup.hardlink_to(original)
    except OSError:
        shutil.copy2(original, backup)
