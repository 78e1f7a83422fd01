"""Refusing to start a run in a folder with other content, such as a checkout of somebody's code."""

import re
import shlex
from pathlib import Path

from jumar.ground.errors import UserError
from jumar.training.run_directory import RunDirectory, next_run_path

_REPOSITORIES = frozenset({".git", ".hg", ".svn"})
_LEFT_BY_A_START = frozenset({"lost+found", "kernel_meta", "log", "logs", "plog"})
"""Folders of a fresh disk, of CANN's compiler, and of the logs of launchers and CANN."""
_LOG_FILE = re.compile(r".+\.(log|out|err|txt)(\.\d+)?|none_\w+|attempt_\d+")
"""Logs of launchers and redirected output; the folders of `torchrun --log-dir`."""
_SHOWN = 3


def refuse_foreign_folder(run: RunDirectory) -> None:
    """Refuse a folder that has other content than a run and what starting one leaves.

    A start that was killed before it wrote `recipe.json` leaves files, and so do launchers, which
    put their logs there before the start; these folders are accepted.

    Args:
        run: The directory of a new run.

    Raises:
        UserError: There is other content.
    """
    if run.exists:
        return
    try:
        names = sorted(path.name for path in run.path.iterdir())
    except OSError:
        return  # it does not exist, or `locked` will report why it cannot be read
    own = {place.name for name, place in vars(run).items() if name != "path"} | _LEFT_BY_A_START
    foreign = [name for name in names if not _may_precede_a_run(name, own)]
    # Another rank may have started the run in the meantime.
    if not foreign or run.exists:
        return
    rest = f" and {len(foreign) - _SHOWN} more" if len(foreign) > _SHOWN else ""
    unused = next_run_path(Path("runs"), run.path.absolute().name or "run")
    raise UserError(
        f"'{run}' is not empty and not a run: it contains {', '.join(foreign[:_SHOWN])}{rest}",
        where="--run-dir",
        todo=f"Name a new or empty folder: --run-dir {shlex.quote(str(unused))}",
    )


def _may_precede_a_run(name: str, own: set[str]) -> bool:
    if name in _REPOSITORIES:
        return False
    return name.startswith(".") or name in own or bool(_LOG_FILE.fullmatch(name))
