"""Writes a ported tree over its original, which git can restore."""

import os
import shutil
import stat
import subprocess
import tempfile
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from jumar.ground.errors import UserError
from jumar.ground.processes import signals_held
from jumar.porting.edits import TreeReport
from jumar.porting.tree.source_tree import SourceTree, as_tree
from jumar.porting.tree.writing import Written, checked_added, new_content, nothing

_GIT_SECONDS = 120


def write_in_place(
    report: TreeReport,
    root: Path | SourceTree,
    added: Mapping[str, str] | None = None,
    *,
    force: bool = False,
    done: Callable[[], None] = nothing,
) -> Written:
    """Write the ported scripts over their originals; all of them, or none.

    Args:
        report: The report of a port of `root`.
        root: What was ported: a folder, a script, or its tree as read.
        added: Files that are not in the original, by their path in the tree.
        force: Whether to overwrite files of which git has no copy.
        done: Called once everything is written: an interruption changes nothing before, all after.

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
        link = next(
            (
                str(part)
                for part in (PurePosixPath(path), *PurePosixPath(path).parents)
                if str(part) in links
            ),
            None,
        )
        if link:
            raise UserError(
                f"is a link; {path} would be written through it",
                where=link,
                todo="Remove the link, or use --to.",
            )
        if not target.is_file() or target.read_bytes() != content:
            contents[path] = content
    overwritten = [path for path in contents if (base / path).exists()]
    if not force:
        _require_committed(base, overwritten)
    _Replacement(base).write(contents, done)
    return Written(place=base, ported=report.count("ported"), copied=0, added=tuple(added))


def _require_committed(base: Path, paths: list[str]) -> None:
    """Raise unless git can restore every overwritten file."""
    if not paths:
        return
    prefix = _git(base, "rev-parse", "--show-prefix").rstrip("\n")
    tracked_paths = set(_git(base, "ls-files", "-z").split("\0"))
    status = _git(base, "status", "--porcelain", "-z", "--untracked-files=no", "--", ".")
    dirty = {record[3:].removeprefix(prefix) for record in status.split("\0") if record}
    for path in paths:
        problem = "is not tracked by git" if path not in tracked_paths else "is not committed"
        if path not in tracked_paths or path in dirty:
            raise UserError(
                f"{problem}: git could not restore what --in-place overwrites",
                where=str(base / path),
                todo="Commit it first, or add --force.",
            )


def _git(base: Path, *arguments: str) -> str:
    # By default, `status` would run the file system monitor in the repository's settings, and list
    # the old name of a renamed file in a record without a status.
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
        raise _git_failed(base, result.stderr.decode(errors="replace"))
    return os.fsdecode(result.stdout)


def _git_failed(base: Path, message: str) -> UserError:
    lines = [line.strip() for line in message.splitlines() if line.strip()] or ["git failed"]
    if "not a git repository" in lines[0]:
        return UserError(
            f"is not tracked by git ({lines[0]})",
            where=str(base),
            todo="Commit it to a repository first, use --to, or add --force.",
        )
    # For others, such as a repository of another user, git itself knows the remedy.
    return UserError(
        f"git could not tell whether it is committed: {lines[0]}",
        where=str(base),
        todo="\n  ".join([*lines[1:], "Or use --to, or add --force."]),
    )


@dataclass(frozen=True)
class _Step:
    """A file to replace, its new content next to it, and a backup of the original if it exists."""

    target: Path
    new: Path
    backup: Path | None


class _Replacement:
    """Replaces the contents of files; if one cannot be written, none is changed.

    Args:
        base: The folder that the paths are relative to.
    """

    def __init__(self, base: Path) -> None:
        self._base = base
        self._folders: list[Path] = []
        self._steps: list[_Step] = []

    def write(self, contents: Mapping[str, bytes], done: Callable[[], None]) -> None:
        """Write all files, and say so.

        Raises:
            UserError: A file cannot be written.
        """
        target = self._base
        with ExitStack() as replacing:
            try:
                # A full disk is noticed here, before the first file is replaced.
                for path, content in contents.items():
                    target = self._base / path
                    self._prepare(target, content)
                replacing.enter_context(signals_held())
                for step in self._steps:
                    target = step.target
                    if step.backup:
                        _back_up(target, step.backup)
                    step.new.replace(target)
            except BaseException as error:
                with signals_held():
                    lost = self._roll_back()
                if isinstance(error, OSError):
                    todo = "Check that the disk is not full and that the folder may be written to."
                    if lost:
                        todo = f"Rename by hand: {', '.join(lost)}."
                    raise UserError(
                        f"cannot be written: {error.strerror or error}",
                        where=str(target),
                        todo=todo,
                    ) from error
                raise
            for step in self._steps:
                if step.backup:
                    step.backup.unlink(missing_ok=True)
            done()

    def _prepare(self, target: Path, content: bytes) -> None:
        missing = [folder for folder in target.parents if not folder.exists()]
        for folder in reversed(missing):
            folder.mkdir()
            self._folders.append(folder)
        descriptor, name = tempfile.mkstemp(prefix=f".{target.name[:100]}.", dir=target.parent)
        new = Path(name)
        exists = target.exists()
        backup = new.with_name(f"{new.name}.original") if exists else None
        self._steps.append(_Step(target, new, backup))
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(content)
        if exists:
            new.chmod(stat.S_IMODE(target.stat().st_mode) & 0o777)
        else:
            new.chmod(0o755 if content.startswith(b"#!") else 0o644)

    def _roll_back(self) -> list[str]:
        """Undo every step; return the originals that could not be restored, with their backups."""
        lost: list[str] = []
        for step in reversed(self._steps):
            was_replaced = not step.new.exists()
            step.new.unlink(missing_ok=True)
            try:
                if was_replaced and step.backup:
                    step.backup.replace(step.target)
                elif was_replaced:
                    step.target.unlink(missing_ok=True)
                elif step.backup:
                    step.backup.unlink(missing_ok=True)
            except OSError:
                lost.append(f"{step.backup} to {step.target}")
        for folder in reversed(self._folders):
            with suppress(OSError):
                folder.rmdir()
        return lost


def _back_up(original: Path, backup: Path) -> None:
    try:
        # A hard link to the original, so that the file exists at every moment.
        backup.hardlink_to(original)
    except OSError:
        shutil.copy2(original, backup)
