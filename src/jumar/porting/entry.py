"""Which script of a tree starts training, and where the op list has to lie."""

import re
from collections.abc import Mapping
from pathlib import Path, PurePosixPath

from jumar.errors import UserError, unknown_name
from jumar.porting.edits import TreeReport
from jumar.porting.options import PortOptions, mixlist_name
from jumar.porting.source import Unreadable, decode
from jumar.porting.tree import LARGEST_SCRIPT, tree_entries

_STARTS = re.compile(r"""^if\s+__name__\s*==\s*['"]__main__['"]""", re.MULTILINE)
_LIKELY = ("train", "main", "run")
_MOST_NAMED = 8


def find_entry(root: Path, given: str = "") -> str:
    """The path, within the tree, of the script that starts training.

    Args:
        root: What was ported: a folder or a script.
        given: The script as the user names it; without, it is looked for.

    Raises:
        UserError: There is no such script, or several could be it.
    """
    base, entries = tree_entries(root)
    scripts = {entry.path: entry.size for entry in entries if entry.kind == "script"}
    if given:
        return _named(given, base, list(scripts))
    if len(scripts) == 1:
        return next(iter(scripts))
    starting = [
        path for path, size in scripts.items() if size <= LARGEST_SCRIPT and _starts(base / path)
    ]
    if len(starting) == 1:
        return starting[0]
    for word in _LIKELY:
        exact = [path for path in starting if PurePosixPath(path).stem == word]
        if len(exact) == 1:
            return exact[0]
    shown = ", ".join(sorted(starting or scripts, key=_likeliness)[:_MOST_NAMED])
    raise UserError(
        "it does not show which script starts training",
        where=str(root),
        todo=f"Name it with --entry, such as one of: {shown}.",
    )


def _named(given: str, base: Path, scripts: list[str]) -> str:
    path = PurePosixPath(given).as_posix()
    if path in scripts:
        return path
    place = Path(given)
    if place.exists():
        inside = next((each for each in scripts if (base / each).samefile(place)), "")
        if inside:
            return inside
    raise unknown_name("script", given, scripts, where="--entry")


def _starts(place: Path) -> bool:
    try:
        return bool(_STARTS.search(decode(place.read_bytes()).text))
    except (OSError, Unreadable):
        return False


def _likeliness(path: str) -> tuple[int, int, str]:
    name = PurePosixPath(path).stem
    rank = next((number for number, word in enumerate(_LIKELY) if word in name), len(_LIKELY))
    return rank, path.count("/"), path


def read_mixlist(options: PortOptions) -> str:
    """The op list that sessions shall read.

    Raises:
        UserError: It is no JSON, or cannot be read.
    """
    import json

    place = Path(options.mixlist)
    try:
        text = place.read_text(encoding="utf-8")
        lists = json.loads(text)
    except OSError as error:
        raise UserError(
            f"cannot be read: {error.strerror}", where=f"--mixlist {place}", todo="Check the path."
        ) from error
    except ValueError as error:
        raise UserError(
            f"is no JSON: {error}", where=f"--mixlist {place}", todo="jumar precision check FILE"
        ) from error
    if not isinstance(lists, dict):
        raise UserError(
            "is no op list",
            where=f"--mixlist {place}",
            todo='Write {"black-list": {"to-add": ["Op"]}}.',
        )
    return text


def placed_mixlist(report: TreeReport, options: PortOptions, entry: str) -> Mapping[str, str]:
    """The op list beside every ported script that reads it, by path in the tree.

    Args:
        report: Of the port.
        options: Of the port.
        entry: The script that starts training, for a tree in which none reads it.
    """
    text = read_mixlist(options)
    name = mixlist_name(options)
    reading = [file.path for file in report.files if file.status == "ported" and name in file.after]
    folders = {PurePosixPath(path).parent for path in (reading or [entry])}
    return {str(folder / name): text for folder in sorted(folders)}
