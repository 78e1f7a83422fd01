"""The tree to port: walked and read once, whatever is done with it afterwards."""

from pathlib import Path

from jumar.ground.errors import UserError
from jumar.ground.paths import exists, is_file, is_folder, missing
from jumar.porting.script.project import Project
from jumar.porting.tree.walking import walk


class SourceTree:
    """The contents of a folder, or a single script, when a call begins.

    Args:
        root: A folder or a script.

    Raises:
        UserError: There is no such path.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self.place = _place(root)
        """Without links in its path."""
        self.folder = self.place if is_folder(self.place) else self.place.parent
        """The folder that the paths of the entries are relative to."""
        self.entries = walk(self.place)
        self.project = Project(self.folder)

    @property
    def scripts(self) -> dict[str, int]:
        """The paths of the scripts, with their sizes."""
        return {entry.path: entry.size for entry in self.entries if entry.kind == "script"}


def as_tree(root: Path | SourceTree) -> SourceTree:
    """A tree as it was read before, or read now.

    Raises:
        UserError: There is no such path.
    """
    return root if isinstance(root, SourceTree) else SourceTree(root)


def _place(root: Path) -> Path:
    if not exists(root):
        raise missing(root)
    path = root.resolve(strict=True)
    if not is_folder(path) and not is_file(path):
        raise UserError(
            "is neither a folder nor a file", where=str(root), todo="Give a script or its folder."
        )
    return path
