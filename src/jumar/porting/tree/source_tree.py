"""The tree to port, which is walked and read only once for all steps."""

from pathlib import Path

from jumar.ground.errors import UserError
from jumar.ground.paths import exists, is_file, is_folder, missing, unreadable
from jumar.porting.script.project import Project
from jumar.porting.tree.walking import walk


class SourceTree:
    """A folder or a single script, with its contents at the time of construction.

    Args:
        root: A folder or a script.

    Raises:
        UserError: The path does not exist, or is a folder that cannot be listed.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self.resolved = _resolved(root)
        """The root with all links in its path resolved."""
        self.folder = self.resolved if is_folder(self.resolved) else self.resolved.parent
        """The folder that the paths of the entries are relative to."""
        try:
            self.entries = walk(self.resolved)
        except OSError as error:
            raise unreadable(root, error) from error
        self.project = Project(self.folder)

    @property
    def scripts(self) -> dict[str, int]:
        """The sizes of the scripts, by path."""
        return {entry.path: entry.size for entry in self.entries if entry.kind == "script"}


def as_tree(root: Path | SourceTree) -> SourceTree:
    """Return the tree itself, or read the tree at a path.

    Raises:
        UserError: The path does not exist.
    """
    return root if isinstance(root, SourceTree) else SourceTree(root)


def _resolved(root: Path) -> Path:
    if not exists(root):
        raise missing(root)
    path = root.resolve(strict=True)
    if not is_folder(path) and not is_file(path):
        raise UserError(
            "is neither a folder nor a file",
            where=str(root),
            todo="Specify a script or its folder.",
        )
    return path
