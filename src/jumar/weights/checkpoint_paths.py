"""Find the checkpoint that a path refers to.

The path is a prefix, one of the checkpoint's files, a folder, or a `checkpoint` file.
"""

import re
from pathlib import Path

from jumar.ground.errors import UserError
from jumar.ground.paths import expanded, is_file, is_folder, missing, unreadable
from jumar.weights.index_table import MAGIC

INDEX = ".index"
STATE = "checkpoint"
_STATE_BYTES = 1 << 20
_NEWEST = re.compile(rb'^\s*model_checkpoint_path:\s*"((?:[^"\\]|\\.)*)"', re.MULTILINE)
_ESCAPE = re.compile(rb"\\([0-7]{1,3}|x[0-9a-fA-F]{1,2}|.)", re.DOTALL)
_LETTERS = {b"n": b"\n", b"r": b"\r", b"t": b"\t"}
_PART = re.compile(r"(.+)\.(?:index|meta|data-\d{5}-of-\d{5})")
_ACCEPTED_PATHS = "Give its folder, its .index file, or its prefix (before '.index')."


def is_checkpoint(path: Path) -> bool:
    """Whether a path looks like a TensorFlow checkpoint; its content is not checked."""
    try:
        find_prefix(path)
    except UserError:
        return is_file(path) and _has_magic(path)
    return True


def find_prefix(path: Path) -> Path:
    """Return the prefix of a checkpoint's files, for which `PREFIX.index` exists.

    Args:
        path: A prefix, one of the checkpoint's files, a folder with a `checkpoint` file, with one
            `.index` file or with a SavedModel in it, or a `checkpoint` file.

    Raises:
        UserError: There is no checkpoint or more than one, or its format dates from before 2017.
    """
    try:
        return _find(expanded(path))
    except OSError as error:
        # A folder cannot be entered, or a name is too long, possibly in the `checkpoint` file.
        raise unreadable(path, error) from error


def check_free(prefix: Path, *, ours: bool = False) -> None:
    """Check that no checkpoint would be overwritten.

    Args:
        prefix: Prefix of the new files.
        ours: The folder contains only jumar's exports; files that jumar wrote may be replaced.

    Raises:
        UserError: The folder contains files with that prefix, including any that would be left
            next to the new ones, such as a graph in `.meta`, or a `checkpoint` file that names
            other checkpoints.
    """
    folder = prefix.parent
    try:
        names = sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []
    except OSError as error:
        raise UserError(f"cannot be read: {error.strerror}", where=str(folder)) from error
    parts = [name for name in names if _prefix_of(name) == prefix.name]
    if ours:
        parts = [name for name in parts if name not in written_names(prefix.name)]
    elif STATE in names:
        parts.append(STATE)
    if parts:
        raise UserError(
            f"a checkpoint already exists: {', '.join(parts)}",
            where=str(prefix),
            todo="Nothing was written. Pass a prefix in a new folder to --out, or remove these "
            "files first.",
        )


def written_names(name: str) -> tuple[str, str]:
    """Return the names of the two files of a checkpoint that jumar writes: data and index."""
    return f"{name}.data-00000-of-00001", f"{name}{INDEX}"


def _prefix_of(name: str) -> str:
    match = _PART.fullmatch(name)
    return match[1] if match else ""


def state_text(name: str) -> bytes:
    """Return the content of the `checkpoint` file for a checkpoint of that name."""
    escaped = "".join(f"\\{letter}" if letter in '"\\' else letter for letter in name)
    lines = (f'model_checkpoint_path: "{escaped}"', f'all_model_checkpoint_paths: "{escaped}"')
    return "".join(f"{line}\n" for line in lines).encode()


def _find(path: Path) -> Path:
    if is_folder(path):
        return _in_folder(path)
    if is_file(index_file(path)):
        return path
    match = _PART.fullmatch(path.name)
    if match is not None:
        prefix = path.with_name(match[1])
        if is_file(index_file(prefix)):
            return prefix
        raise UserError(
            f"there is no '{index_file(prefix)}'",
            todo="A checkpoint consists of NAME.index and NAME.data-00000-of-00001 ...",
        )
    if is_file(path):
        if path.name == STATE:
            return _newest(path)
        raise _other_file(path)
    raise missing(path, "checkpoint", more=_ACCEPTED_PATHS)


def index_file(prefix: Path) -> Path:
    """Return the path of a checkpoint's index."""
    return prefix.with_name(prefix.name + INDEX)


def _in_folder(folder: Path) -> Path:
    state = folder / STATE
    if is_file(state):
        return _newest(state)
    saved_model = folder / "variables" / "variables"
    if is_file(index_file(saved_model)):
        return saved_model
    indexes = sorted(folder.glob(f"*{INDEX}"))
    if len(indexes) == 1:
        return indexes[0].with_suffix("")
    if indexes:
        raise UserError(
            f"contains {len(indexes)} checkpoints and no file `{STATE}` that names the newest",
            where=str(folder),
            todo=f"Choose one: {', '.join(path.name for path in indexes[:4])} ...",
        )
    raise UserError(
        "contains no TensorFlow checkpoint",
        where=str(folder),
        todo="A checkpoint consists of NAME.index and NAME.data-00000-of-00001 ...",
    )


def _newest(state: Path) -> Path:
    """Return the prefix named by a `checkpoint` file, even if the folder has been moved."""
    try:
        with state.open("rb") as file:
            text = file.read(_STATE_BYTES)
    except OSError as error:
        raise unreadable(state, error) from error
    match = _NEWEST.search(text)
    if match is None:
        raise UserError("contains no model_checkpoint_path", where=str(state))
    name = _ESCAPE.sub(_unescaped, match[1]).decode("utf-8", "replace").replace("\0", "")
    recorded = Path(name)
    for prefix in (state.parent / recorded, state.parent / recorded.name):
        if prefix.name and is_file(index_file(prefix)):
            return prefix
        if prefix.name and is_file(prefix):
            raise _other_file(prefix)
    raise UserError(
        f"names '{name}', which has no {INDEX} file",
        where=str(state),
        todo="Copy the checkpoint's files beside it, or name another checkpoint.",
    )


def _unescaped(escape: "re.Match[bytes]") -> bytes:
    code = escape[1]
    if code[:1].isdigit():
        return bytes((int(code, 8) & 255,))
    if len(code) > 1:
        return bytes((int(code[1:], 16),))
    return _LETTERS.get(code, code)


def _other_file(path: Path) -> UserError:
    if _has_magic(path):
        return UserError(
            "is a checkpoint in TensorFlow's format V1, a single file, which is not supported",
            where=str(path),
            todo="In TensorFlow, restore it and save it again with "
            "tf.train.Saver(write_version=tf.train.SaverDef.V2).",
        )
    return UserError(
        "is not a TensorFlow checkpoint",
        where=str(path),
        todo=_ACCEPTED_PATHS,
    )


def _has_magic(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            size = file.seek(0, 2)
            file.seek(max(size - len(MAGIC), 0))
            return file.read(len(MAGIC)) == MAGIC
    except OSError:
        return False
