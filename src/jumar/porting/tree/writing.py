"""Writes a ported tree: either completely or not at all, and nothing outside it."""

import os
import shutil
import stat
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from jumar.ground.errors import UserError
from jumar.ground.files import folder_beside, written_beside
from jumar.ground.paths import exists, is_file, is_folder, unwritable
from jumar.ground.processes import signals_held
from jumar.porting.edits import FileReport, TreeReport
from jumar.porting.script.project import Project
from jumar.porting.script.source import Unreadable, decode
from jumar.porting.tree.source_tree import SourceTree, as_tree
from jumar.porting.tree.walking import Entry


@dataclass(frozen=True, kw_only=True)
class Written:
    """The written path and the numbers of files; `left_out` are entries that were not copied."""

    place: Path
    ported: int
    copied: int
    added: tuple[str, ...]
    left_out: tuple[str, ...] = ()


def nothing() -> None:
    """Do nothing."""


def write_tree(
    report: TreeReport,
    root: Path | SourceTree,
    out: Path,
    added: Mapping[str, str] | None = None,
    *,
    done: Callable[[], None] = nothing,
) -> Written:
    """Write the ported tree with all other files under a temporary name, then rename it.

    Args:
        report: The report of a port of `root`.
        root: What was ported: a folder, a script, or its tree as read.
        out: A folder that does not exist yet or is empty; for a script, also the new script.
        added: Files that are not in the original, by their path in the tree.
        done: Called once everything is written: an interruption leaves nothing before, all after.

    Raises:
        UserError: `out` is within the original or already exists and is not empty, the original has
            changed since, or the disk is full; nothing is written in these cases.
    """
    tree = as_tree(root)
    base, entries = tree.folder, tree.entries
    added = checked_added(added or {})
    ported_files = {file.path: file for file in report.files if file.status == "ported"}
    missing = sorted(
        set(ported_files) - {entry.path for entry in entries if entry.kind == "script"}
    )
    if missing:
        raise _changed(base / missing[0])
    out = Path(os.path.realpath(out))
    _check_target(tree.resolved, out)
    if is_file(tree.resolved) and out.suffix == tree.root.suffix:
        return _write_script(ported_files, tree, entries[0], out, added, done)
    with ExitStack() as renaming:
        with folder_beside(out) as target_root:
            _write_entries(target_root, tree, ported_files, added)
            renaming.enter_context(signals_held())
        done()
    return Written(
        place=out,
        ported=len(ported_files),
        copied=sum(entry.kind in ("script", "file", "link") for entry in entries)
        - len(ported_files),
        added=tuple(added),
        left_out=tuple(entry.shown for entry in entries if entry.kind == "left out"),
    )


def _write_entries(
    target_root: Path,
    tree: SourceTree,
    ported_files: Mapping[str, FileReport],
    added: Mapping[str, str],
) -> None:
    written_entries: dict[str, Entry] = {}
    _make_folders(target_root, tree.entries)
    for entry in tree.entries:
        if entry.kind in ("script", "file"):
            _write_file(tree.project, target_root / entry.path, entry, ported_files.get(entry.path))
        if entry.kind != "left out":
            written_entries[entry.path] = entry
    _write_added(target_root, added, written_entries)
    # Links come last, so that nothing is ever written through one of them.
    for entry in tree.entries:
        if entry.kind == "link":
            (target_root / entry.path).symlink_to(entry.target)
    _set_modes(target_root, tree.folder, tree.entries)


def new_content(project: Project, file: FileReport) -> bytes:
    """Return the bytes of a ported script, in the encoding of the original.

    Args:
        project: The tree of the original.
        file: The report of the script.

    Raises:
        UserError: The original has changed since it was read.
    """
    path = project.root / file.path
    try:
        content = project.as_read(file.path)
        source = decode(path.read_bytes() if content is None else content)
    except (OSError, Unreadable) as error:
        raise _changed(path) from error
    if source.text != file.before.removeprefix("\ufeff"):
        raise _changed(path)
    try:
        return source.encoded(file.after.removeprefix("\ufeff"))
    except UnicodeEncodeError as error:
        raise UserError(
            f"cannot be written as {source.encoding}: {error}",
            where=str(path),
            todo="Save the script as UTF-8 first.",
        ) from error


def checked_added(added: Mapping[str, str]) -> dict[str, str]:
    """Return the added files with normalised paths.

    Raises:
        UserError: A path leads outside the tree.
    """
    for path in added:
        parts = PurePosixPath(path).parts
        if not parts or path.startswith("/") or ".." in parts or "\0" in path:
            raise UserError(
                "would be outside the tree", where=path, todo="Use a path within the tree."
            )
    return {str(PurePosixPath(path)): text for path, text in added.items()}


def _check_target(root: Path, out: Path) -> None:
    if out == root:
        raise UserError(
            "is the original", where=str(out), todo="Specify a new folder, or use --in-place."
        )
    if root in out.parents:
        raise UserError(
            "is within the original", where=str(out), todo="Specify a folder outside it."
        )
    if out in root.parents and exists(out):
        raise UserError("contains the original", where=str(out), todo="Specify a new folder.")
    if exists(out) and not is_folder(out):
        raise UserError("already exists", where=str(out), todo="Use a new name.")
    try:
        has_files = is_folder(out) and any(out.iterdir())
    except OSError as error:
        raise unwritable(out, error) from error
    if has_files:
        raise UserError(
            "is not empty", where=str(out), todo="Specify a new folder, or remove this one."
        )


def _make_folders(target_root: Path, entries: tuple[Entry, ...]) -> None:
    for entry in entries:
        if entry.kind == "folder":
            (target_root / entry.path).mkdir()


def _set_modes(target_root: Path, base: Path, entries: tuple[Entry, ...]) -> None:
    """Set the permissions of folders, which may forbid writing, from the innermost to the root."""
    for entry in reversed(entries):
        if entry.kind == "folder":
            (target_root / entry.path).chmod(entry.mode)
    target_root.chmod(stat.S_IMODE(base.stat().st_mode) & 0o777)


def _write_file(
    project: Project, target: Path, entry: Entry, ported_file: FileReport | None
) -> None:
    content = (
        project.as_read(entry.path) if ported_file is None else new_content(project, ported_file)
    )
    if content is not None:
        target.write_bytes(content)
    else:
        source = project.root / entry.path
        try:
            # If the file has become a link in the meantime, it is not followed.
            shutil.copyfile(source, target, follow_symlinks=False)
        except (FileNotFoundError, PermissionError, shutil.SpecialFileError) as error:
            raise UserError(
                "cannot be read", where=str(source), todo="Check its permissions."
            ) from error
    target.chmod(entry.mode)


def _write_added(
    target_root: Path, added: Mapping[str, str], written_entries: Mapping[str, Entry]
) -> None:
    for path, text in added.items():
        parents = [str(parent) for parent in PurePosixPath(path).parents][:-1]
        for parent in reversed(parents):
            if parent in written_entries and written_entries[parent].kind != "folder":
                raise _in_the_way(parent, path)
            (target_root / parent).mkdir(exist_ok=True)
        content = text.encode("utf-8")
        if path in written_entries:
            if written_entries[path].kind not in ("script", "file") or (
                (target_root / path).read_bytes() != content
            ):
                raise _in_the_way(path, path)
            continue
        (target_root / path).write_bytes(content)
        if text.startswith("#!"):
            (target_root / path).chmod(0o755)


def _write_script(
    ported_files: Mapping[str, FileReport],
    tree: SourceTree,
    entry: Entry,
    out: Path,
    added: Mapping[str, str],
    done: Callable[[], None],
) -> Written:
    if added:
        raise UserError(
            f"{', '.join(added)} cannot be added next to a single script",
            where=str(out),
            todo="Specify a folder with --to.",
        )
    with ExitStack() as renaming:
        with written_beside(out) as target:
            _write_file(tree.project, target, entry, ported_files.get(entry.path))
            renaming.enter_context(signals_held())
        done()
    return Written(place=out, ported=len(ported_files), copied=1 - len(ported_files), added=())


def _changed(path: Path) -> UserError:
    return UserError("has changed since it was read", where=str(path), todo="Port it again.")


def _in_the_way(existing: str, path: str) -> UserError:
    return UserError(
        f"already exists in the tree and would be overwritten by the new {path}",
        where=existing,
        todo="Rename or remove it in the original.",
    )
