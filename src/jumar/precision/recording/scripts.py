"""Runs a user's training script under the recorder, as Python itself would run it."""

import runpy
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType

from jumar.ground.errors import UserError
from jumar.ground.paths import open_to_read
from jumar.precision.recording.dumping import Dumping


def run_script(script: Path, arguments: Sequence[str], dumping: Dumping) -> int:
    """Run a script with its own arguments, `sys.path` entry and exit code.

    Args:
        script: The script.
        arguments: Its command line.
        dumping: Dumps its steps.

    Returns:
        The exit code: 1 if the script raised; its traceback is printed.

    Raises:
        UserError: There is no such script, or a step was not reached or could not be dumped.
        SystemExit: The script exited with a nonzero code.
    """
    open_to_read(script).close()
    before = sys.argv, sys.path[:]
    sys.argv = [str(script), *arguments]
    sys.path.insert(0, str(script.absolute().parent))
    try:
        with dumping:
            _run(script)
    except UserError:
        raise
    except Exception as error:
        sys.stdout.flush()
        traceback.print_exception(type(error), error, _own_part(error.__traceback__, script))
        return 1
    finally:
        sys.argv, sys.path[:] = before
    return 0


def _run(script: Path) -> None:
    try:
        runpy.run_path(str(script), run_name="__main__")
    except SystemExit as leaving:
        if leaving.code:
            raise


def _own_part(trace: TracebackType | None, script: Path) -> TracebackType | None:
    """A traceback from the script on; the whole one if the script is not in it."""
    part = trace
    while part is not None and part.tb_frame.f_code.co_filename != str(script):
        part = part.tb_next
    return part or trace
