"""Scripts that are added to a user's project and run without jumar.

`jumar port` adds them, and `jumar launch` writes them for scripts on ModelArts.
"""

import re
import shlex
from collections.abc import Sequence

from jumar.ground.errors import UserError
from jumar.launching.templates import filled, script_text

RUN_SCRIPT = "run_npu.sh"
TABLE_SCRIPT = "make_rank_table.py"
MODELARTS_SCRIPT = "modelarts_run.py"
PROFILING_FOLDER = "npu_profiling"
OVERFLOW_FOLDER = "npu_overflow"
TUNING_FOLDER = "npu_tuning"
OUTPUT_FOLDERS = (PROFILING_FOLDER, OVERFLOW_FOLDER, TUNING_FOLDER)
"""Folders that a ported script writes in its working folder, in addition to its own output."""

_ENTRY = 'ENTRY = ""\n'
_FOLDERS = "OUTPUT_FOLDERS: tuple[str, ...] = ()\n"


def check_entry(entry: str) -> None:
    """Check the script to start, a path below the root of its tree.

    Raises:
        UserError: The path is outside of the tree, or contains control characters.
    """
    if entry.startswith("/") or ".." in entry.split("/"):
        raise UserError(
            f"'{entry}' is outside the tree", where="entry", todo="Specify a script in the tree."
        )
    if re.search(r"[\0-\x1f\x7f]", entry):
        raise UserError(
            f"{entry!r} contains control characters", where="entry", todo="Rename the script."
        )


def run_script(*, entry: str, devices: int, framework: str) -> str:
    """Return the text of `run_npu.sh` for a script and a number of devices.

    Args:
        entry: The script, relative to the tree; empty if it is to be specified at launch.
        devices: Number of NPUs.
        framework: `torch` or `tensorflow`, which read different variables.
    """
    check_entry(entry)
    return filled(
        RUN_SCRIPT,
        DEVICES=str(devices),
        QUOTED_ENTRY=shlex.quote(entry),
        ENTRY=entry or "none, so it is required",
        FRAMEWORK=framework,
        CANN=script_text("cann.sh"),
    )


def rank_table_script() -> str:
    """Return the text of `make_rank_table.py`."""
    return script_text(TABLE_SCRIPT)


def modelarts_script(*, entry: str, output_folders: Sequence[str] = ()) -> str:
    """Return the text of `modelarts_run.py` for a script.

    Args:
        entry: The script, relative to the tree; empty if it is to be specified at launch.
        output_folders: Folders of the script's output, which are copied back.
    """
    check_entry(entry)
    text = script_text(MODELARTS_SCRIPT)
    assert text.count(_ENTRY) == text.count(_FOLDERS) == 1
    folders = ", ".join(literal(name) for name in output_folders)
    text = text.replace(_ENTRY, f"ENTRY = {literal(entry)}\n")
    return text.replace(_FOLDERS, f"OUTPUT_FOLDERS: tuple[str, ...] = ({folders})\n")


def literal(text: str) -> str:
    """Return a Python string literal in ASCII, which is valid in a script of any encoding."""
    quoted = ascii(text)
    return f'"{quoted[1:-1]}"' if quoted[0] == "'" and '"' not in quoted else quoted
