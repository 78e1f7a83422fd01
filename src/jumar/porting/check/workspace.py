"""Copies the tree for the script to write to, so that the tree itself stays unchanged."""

import os
import shutil
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from jumar.ground.errors import UserError
from jumar.ground.paths import exists, is_file, is_folder, missing

COPIED_FILE_BYTES = 8 * 2**20
"""Larger files become links to the original: they are data or weights, which scripts only read."""

COPIED_TREE_BYTES = 512 * 2**20
_SKIPPED = frozenset({".git", ".hg", ".svn", "__pycache__", ".ipynb_checkpoints"})
_LEVELS_ABOVE = 3
_MAX_SIBLINGS = 2000


@dataclass(frozen=True, kw_only=True)
class Linked:
    """A file of the tree that the copy only links to, with its state at the time of copying."""

    path: Path
    size: int
    modified_ns: int


@dataclass(frozen=True, kw_only=True)
class Workspace:
    """A copy of a tree.

    `outside` is where the script's output to paths that do not exist yet is redirected.
    """

    source: Path
    tree: Path
    script_folder: Path
    script_name: str
    home: Path
    outside: Path
    linked: tuple[Linked, ...]

    def changed(self) -> tuple[Path, ...]:
        """The linked files of the tree that have changed."""
        return tuple(link.path for link in self.linked if _linked(link.path) != link)


def make_workspace(*, tree: Path, script: str, folder: Path, module: bool = False) -> Workspace:
    """Copy a tree below `folder`.

    A script runs in its own folder, a module in the root of the tree.

    Siblings of the tree and of up to three folders above it are linked at the same relative path:
    `../data` is found, and output to `../new` stays in the copy.

    Raises:
        UserError: The tree or script does not exist.
    """
    source = tree.resolve()
    inside = find_script(tree, script, module=module)
    copied_tree = _with_surroundings(source, folder / "files")
    linked_files = tuple(_copy_tree(source, copied_tree))
    home, outside = folder / "home", folder / "outside"
    home.mkdir()
    outside.mkdir()
    return Workspace(
        source=source,
        tree=copied_tree,
        script_folder=copied_tree if module else (copied_tree / inside).parent,
        script_name=str(inside) if module else inside.name,
        home=home,
        outside=outside,
        linked=linked_files,
    )


def find_script(tree: Path, script: str, *, module: bool = False) -> Path:
    """Return the script's path relative to its tree.

    Raises:
        UserError: The tree, script or module does not exist.
    """
    if not is_folder(tree):
        if not exists(tree):
            raise missing(tree, "folder")
        raise UserError(f"'{tree}' is not a folder", todo="Specify the folder of the project.")
    source = tree.resolve()
    return _module_inside(source, script) if module else _script_inside(source, script)


def _script_inside(source: Path, script: str) -> Path:
    """Return the script's path relative to the tree; `script` may also be relative to the cwd."""
    for candidate in (source / script, Path.cwd() / script):
        path = Path(os.path.normpath(candidate))
        if is_file(path) and source in path.parents:
            return path.relative_to(source)
    scripts = sorted(str(path.relative_to(source)) for path in source.glob("*.py"))[:12]
    raise UserError(
        f"there is no script '{script}' in '{source}'",
        where="-- SCRIPT",
        todo="Use its path relative to the tree"
        + (f", such as {', '.join(scripts)}." if scripts else ", such as train.py."),
    )


def _module_inside(source: Path, name: str) -> Path:
    path = Path(*name.split("."))
    for inside in (path.with_suffix(".py"), path / "__main__.py"):
        if is_file(source / inside):
            return inside
    raise UserError(
        f"there is no module '{name}' in '{source}'",
        where="-- -m MODULE",
        todo="Use its name as for `python -m` in that folder.",
    )


def _with_surroundings(source: Path, folder: Path) -> Path:
    """Return the path for the copy, with the tree's siblings linked at every level."""
    names = source.parts[1:][-(_LEVELS_ABOVE + 1) :]
    original = source
    for _ in names:
        original = original.parent
    target = folder
    target.mkdir(parents=True)
    for name in names:
        for index, sibling in enumerate(sorted(_entries(original))):
            if index >= _MAX_SIBLINGS:
                break
            if sibling != name and (original / sibling) not in folder.parents:
                (target / sibling).symlink_to(original / sibling)
        target, original = target / name, original / name
        target.mkdir()
    return target


def _entries(folder: Path) -> Iterator[str]:
    try:
        with os.scandir(folder) as entries:
            yield from (entry.name for entry in entries)
    except OSError:
        return


def _copy_tree(source: Path, copied_tree: Path) -> Iterator[Linked]:
    copied_bytes = 0
    for name, folders, files in os.walk(source):
        origin_folder = Path(name)
        target = copied_tree / origin_folder.relative_to(source)
        target.mkdir(exist_ok=True)
        for folder in list(folders):
            if folder in _SKIPPED:
                folders.remove(folder)
            elif (origin_folder / folder).is_symlink():
                folders.remove(folder)
                _copy_link(origin_folder / folder, target / folder, source, copied_tree)
        for file in files:
            origin = origin_folder / file
            if origin.is_symlink():
                _copy_link(origin, target / file, source, copied_tree)
                continue
            status = origin.stat()
            if not stat.S_ISREG(status.st_mode):
                continue  # copying a socket or a pipe would block
            is_script = origin.suffix == ".py"
            is_small = status.st_size <= COPIED_FILE_BYTES and copied_bytes <= COPIED_TREE_BYTES
            if is_script or is_small:
                copied_bytes += status.st_size
                _copy_file(origin, target / file)
            else:
                (target / file).symlink_to(origin)
                yield _linked(origin)


def _copy_file(origin: Path, target: Path) -> None:
    try:
        shutil.copy2(origin, target)
    except PermissionError as error:
        raise UserError(
            f"'{origin}' cannot be read", todo="Allow reading it, or take it out of the tree."
        ) from error
    target.chmod(target.stat().st_mode | stat.S_IWUSR)


def _copy_link(origin: Path, target: Path, source: Path, copied_tree: Path) -> None:
    """Copy a link; links within the tree then point into the copy, others to their old target."""
    destination = Path(os.path.realpath(origin))
    if destination == source or source in destination.parents:
        target.symlink_to(copied_tree / destination.relative_to(source))
    else:
        target.symlink_to(destination)


def _linked(path: Path) -> Linked:
    try:
        status = path.stat()
    except OSError:
        return Linked(path=path, size=-1, modified_ns=0)
    return Linked(path=path, size=status.st_size, modified_ns=status.st_mtime_ns)


def in_workspace(arguments: Sequence[str], workspace: Workspace) -> tuple[str, ...]:
    """Redirect absolute paths in the script's arguments into the copy, if it may write there.

    A path inside the tree is redirected to the copy. A path that does not exist yet, such as an
    output folder, is redirected below `outside`: otherwise, the second side would resume from
    the checkpoints of the first. Any other existing path stays as typed, and is read from there.
    """
    return tuple(_argument(text, workspace) for text in arguments)


def _argument(text: str, workspace: Workspace) -> str:
    flag, equals, value = text.partition("=") if text.startswith("-") else ("", "", text)
    path = Path(value)
    if not value or not path.is_absolute():
        return text
    tree = workspace.source
    if path == tree or tree in path.parents:
        new_path = workspace.tree / path.relative_to(tree)
    elif path.exists() and not _is_empty_folder(path):
        return text
    else:
        new_path = workspace.outside / path.relative_to(path.anchor)
        new_path.parent.mkdir(parents=True, exist_ok=True)
    slash = "/" if value.endswith("/") else ""
    return f"{flag}{equals}{new_path}{slash}"


def _is_empty_folder(path: Path) -> bool:
    return path.is_dir() and not any(_entries(path))
