"""The import graph of a tree: a quick text search, which includes imports in functions."""

import re
from collections.abc import Container, Iterable, Mapping

from jumar.porting.edits import FileReport
from jumar.porting.script.project import Project
from jumar.porting.script.source import Unreadable, decode

_IMPORTS = re.compile(
    r"^[ \t]*(?:from[ \t]+(?P<module>[.\w]+)[ \t]+import[ \t(]+(?P<members>[\w*, \t]+)"
    r"|import[ \t]+(?P<names>[\w., \t]+))",
    re.MULTILINE,
)

_KERAS = re.compile(r"^\s*(?:from|import)\s+[\w., ]*\bkeras\b|\btf\.keras\b", re.MULTILINE)
_FITS = re.compile(r"\.(?:fit|fit_generator|train_on_batch)\s*\(")


def import_graph(texts: Mapping[str, str], project: Project) -> dict[str, list[str]]:
    """Return, for each script, the scripts of the tree that it imports anywhere.

    Args:
        texts: The texts of all scripts, by path.
        project: The tree.
    """
    return {path: _imported(text, path, project, texts) for path, text in texts.items()}


def reached(start: str, imports: Mapping[str, list[str]]) -> list[str]:
    """Return a script and all that it imports within the tree, nearest first."""
    reachable = [start]
    visited = {start}
    for path in reachable:
        new = [inner for inner in imports[path] if inner not in visited]
        visited.update(new)
        reachable += new
    return reachable


def keras_through_imports(paths: Iterable[str], project: Project) -> frozenset[str]:
    """Return the scripts that may train with Keras through their imports alone.

    Args:
        paths: All scripts of the tree.
        project: The tree.
    """
    texts: dict[str, str] = {}
    for path in paths:
        try:
            texts[path] = project.content(path).decode("utf-8", "replace")
        except OSError:
            continue
    if not any(_KERAS.search(text) for text in texts.values()):
        return frozenset()
    fitting = {path for path, text in texts.items() if _FITS.search(text)}
    imports = import_graph(texts, project) if fitting else {}
    return frozenset(path for path in imports if fitting.intersection(reached(path, imports)))


def ported_text(report: FileReport, path: str, project: Project) -> str:
    """Return the text of a script after the port; empty if the script cannot be read."""
    if report.after or report.status == "unreadable":
        return report.after.removeprefix("\ufeff")
    try:
        return decode(project.content(path)).text
    except (OSError, Unreadable):
        return ""


def _imported(text: str, path: str, project: Project, scripts: Container[str]) -> list[str]:
    names: list[str] = []
    for match in _IMPORTS.finditer(text):
        if match["module"] is None:
            names += [part.split()[0] for part in match["names"].split(",") if part.split()]
            continue
        names.append(match["module"])
        members = [part.split()[0] for part in match["members"].split(",") if part.split()]
        dot = "" if match["module"].endswith(".") else "."
        names += [f"{match['module']}{dot}{member}" for member in members if member != "*"]
    paths = [inner for name in names if (inner := project.find(name, path))]
    return list(dict.fromkeys(inner for inner in paths if inner in scripts and inner != path))
