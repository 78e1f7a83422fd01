"""Uncaught errors: recognise those that the user can fix, and report the others as bugs."""

import re
import sys
from collections.abc import Sequence
from pathlib import Path

import jumar
from jumar.cli.extras import not_installed
from jumar.ground import paths
from jumar.ground.errors import UserError
from jumar.ground.text import size_text

_PACKAGE = Path(jumar.__file__).resolve().parent

_MEMORY_ADVICE = {
    "generate": "Lower --batch, or use a --device with more memory.",
    "denoise": "Denoise in tiles: --set model.tile=256, or smaller; or use smaller images.",
    "predict": "Use smaller images or shorter clips, or a --device with more memory.",
    "data": "Lower --workers, or use smaller images.",
    "port": "Lower --jobs.",
    "profile": "Name fewer files at once.",
    "export": "Fix smaller lengths, as in --fix height=320, or use a machine with more memory.",
    "weights": "The file is larger than this machine's memory.",
}
_TRAINING_MEMORY_ADVICE = (
    "Lower data.batch_size (or keep it and set training.micro_batch_size), data.image_size, "
    "data.workers, or the size of the network (fields of `model`)."
)


def as_user_error(error: Exception, tokens: Sequence[str] = ()) -> UserError | None:
    """Convert an error from the system or about a missing extra; None for a bug.

    Args:
        error: The exception.
        tokens: The command line, whose settings are repeated in the message.
    """
    if _is_out_of_memory(error):
        return _out_of_memory(error, tokens)
    if isinstance(error, ModuleNotFoundError):
        return not_installed(error)
    if not isinstance(error, OSError):
        return None
    name = error.filename2 or error.filename
    if isinstance(name, bytes):
        name = name.decode(errors="surrogateescape")
    if isinstance(name, str):
        # Users can fix their own paths. A file missing inside this or another installed package
        # means a broken installation or a bug, for which the traceback is needed.
        return None if _is_installed(Path(name)) else paths.unreadable(name, error)
    # Without a path most errors are bugs (a closed file, a connection of our own). A full disk or
    # an exceeded limit is not, and a write to an open file names no path.
    if not paths.is_machine_error(error):
        return None
    return UserError(
        f"the operating system reports: {paths.reason(error)}", todo=paths.remedy(error, Path())
    )


def headline(error: BaseException, tokens: Sequence[str] = ()) -> str:
    """Return the line that is printed above the traceback of a bug."""
    message = (str(error).strip() or "no message").splitlines()[0][:300]
    origin = "a bug in jumar"
    if any(token.split("=")[0] == "--import" for token in tokens):
        origin += ", or in a module of --import"
    name = type(error).__name__
    return (
        f"jumar: internal error: {name}: {message} ({origin}; please report it with the "
        "traceback below)"
    )


def _is_installed(path: Path) -> bool:
    absolute_path = path.absolute()
    return absolute_path.is_relative_to(_PACKAGE) or "site-packages" in absolute_path.parts


def _is_out_of_memory(error: Exception) -> bool:
    if isinstance(error, MemoryError) or (isinstance(error, OSError) and error.errno == 12):
        return True
    if "torch" not in sys.modules:
        return False  # do not import it just for this
    from jumar.devices.registry import is_out_of_memory

    return is_out_of_memory(error)


def _out_of_memory(error: Exception, tokens: Sequence[str]) -> UserError:
    message = str(error).strip()
    match = re.search(r"allocate (\d+) bytes", message)
    detail = f"{size_text(int(match[1]))} were requested at once" if match else message
    assignments = [token for token in tokens if re.match(r"[a-z_]+\.[a-z_.]+=", token)]
    todo = _MEMORY_ADVICE.get(tokens[0] if tokens else "", _TRAINING_MEMORY_ADVICE)
    if assignments:
        todo += f"\n  Your settings: {', '.join(assignments)}"
    problem = "there is not enough memory"
    return UserError(
        f"{problem}: {detail.splitlines()[-1][:200]}" if detail else problem, todo=todo
    )
