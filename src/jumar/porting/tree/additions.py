"""The files that a port adds to a tree: launch files, and the op list that sessions read."""

import re
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from jumar.ground.errors import UserError, unknown_name
from jumar.ground.json_text import parse_json
from jumar.ground.paths import read_text
from jumar.porting.edits import TreeReport
from jumar.porting.launch_files import ADDED_NAMES, added_files
from jumar.porting.options import PortOptions, mixlist_name
from jumar.porting.script.project import MAX_SCRIPT_BYTES, Project
from jumar.porting.script.source import Unreadable, decode
from jumar.porting.tree.source_tree import SourceTree, as_tree

_MAIN_GUARD = re.compile(r"""^if\s+__name__\s*==\s*['"]__main__['"]""", re.MULTILINE)
_RELATIVE_IMPORT = re.compile(r"^from\s+\.", re.MULTILINE)
_LIKELY_STEMS = ("train", "training", "main", "run")


@dataclass(frozen=True, kw_only=True)
class Additions:
    """The files to add, by path; `kept` are paths that already exist with different content.

    `entry` is the script that starts training, empty if it is not known.
    """

    entry: str = ""
    files: dict[str, str] = field(default_factory=dict[str, str])
    kept: tuple[str, ...] = ()


def additions(
    report: TreeReport, root: Path | SourceTree, options: PortOptions, *, entry: str = ""
) -> Additions:
    """Determine the files that a port adds.

    Args:
        report: The report of a port of `root`.
        root: What was ported: a folder, a script, or its tree as read.
        options: The port's options.
        entry: The script that starts training, as the user names it; detected if empty.

    Raises:
        UserError: There is no such script, or the op list is not valid.
    """
    tree = as_tree(root)
    base = tree.folder
    scripts = {path: size for path, size in tree.scripts.items() if path not in ADDED_NAMES}
    start = (
        _named_script(entry, base, list(scripts)) if entry else _likely_entry(tree.project, scripts)
    )
    launch_requested = bool(entry) or options.distributed or options.modelarts
    files: dict[str, str] = {}
    # Files that were not requested are not added to a lone script or an unchanged tree.
    if launch_requested or (base == tree.resolved and report.count("ported")):
        files |= added_files(options, entry=start)
    existing = [path for path in files if (base / path).exists()]
    kept_paths = tuple(path for path in existing if not _has_text(base / path, files[path]))
    files = {path: text for path, text in files.items() if path not in existing}
    if options.mixlist:
        files |= _mixlists(report, options, start)
    return Additions(entry=start, files=files, kept=kept_paths)


def _likely_entry(project: Project, scripts: dict[str, int]) -> str:
    """Return the script that starts training, or an empty string if several could."""
    if len(scripts) == 1:
        return next(iter(scripts))
    candidates = [
        path
        for path, size in scripts.items()
        if size <= MAX_SCRIPT_BYTES and _is_entry_point(project, path)
    ]
    if len(candidates) == 1:
        return candidates[0]
    for stem in _LIKELY_STEMS:
        matches = [path for path in candidates if PurePosixPath(path).stem == stem]
        if len(matches) == 1:
            return matches[0]
    return ""


def _named_script(name: str, base: Path, scripts: list[str]) -> str:
    path = PurePosixPath(name).as_posix()
    if path in scripts:
        return path
    entry_path = Path(name)
    if entry_path.exists():
        inside = next((script for script in scripts if (base / script).samefile(entry_path)), "")
        if inside:
            return inside
    raise unknown_name("script", name, scripts, where="--entry")


def _is_entry_point(project: Project, path: str) -> bool:
    """Return whether a script can be started by its path; a package module needs `-m`."""
    try:
        text = decode(project.content(path)).text
    except (OSError, Unreadable):
        return False
    return bool(_MAIN_GUARD.search(text)) and not _RELATIVE_IMPORT.search(text)


def _has_text(path: Path, text: str) -> bool:
    try:
        return not path.is_symlink() and path.read_bytes() == text.encode("utf-8")
    except OSError:
        return False


def _mixlists(report: TreeReport, options: PortOptions, start: str) -> dict[str, str]:
    """Place the op list next to every script that reads it: each looks in its own folder."""
    text = _read_mixlist(options)
    name = mixlist_name(options)
    readers = [file.path for file in report.files if file.status == "ported" and name in file.after]
    folders = {PurePosixPath(path).parent for path in (readers or [start or name])}
    return {str(folder / name): text for folder in sorted(folders)}


def _read_mixlist(options: PortOptions) -> str:
    path = Path(options.mixlist)
    where = f"--mixlist {path}"
    try:
        text = read_text(path)
        lists = parse_json(text)
    except ValueError as error:
        raise UserError(
            f"is not JSON: {error}", where=where, todo="Check it: jumar precision lint FILE"
        ) from error
    if not isinstance(lists, dict):
        raise UserError(
            "is not an op list", where=where, todo='Write {"black-list": {"to-add": ["Op"]}}.'
        )
    return text
