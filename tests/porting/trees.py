"""Trees that the tests of porting write."""

from collections.abc import Mapping
from pathlib import Path

from jumar.porting.edits import FileReport, TreeReport

SESSION = "import tensorflow as tf\n\nwith tf.Session() as sess:\n    sess.run([])\n"


def write_files(root: Path, files: Mapping[str, str | bytes]) -> Path:
    """Write files below a folder, made with their folders."""
    for name, content in files.items():
        place = root / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content.encode() if isinstance(content, str) else content)
    return root


def by_path(report: TreeReport) -> dict[str, FileReport]:
    """The reports of the files of a tree."""
    return {file.path: file for file in report.files}


def content(root: Path) -> dict[str, str | bytes]:
    """Everything below a folder: bytes of files, targets of links, modes of folders."""
    found: dict[str, str | bytes] = {}
    for place in sorted(root.rglob("*")):
        name = place.relative_to(root).as_posix()
        if place.is_symlink():
            found[name] = f"-> {place.readlink()}"
        elif place.is_dir():
            found[name] = "folder"
        else:
            found[name] = place.read_bytes()
    return found
