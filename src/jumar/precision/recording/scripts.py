"""Run a user's training script under the recorder, as Python would run it."""

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
    """Run a script with its arguments, `sys.path` entry and exit code.

    Args:
        script: The script.
        arguments: The script's command-line arguments.
        dumping: Dumps the script's steps.

    Returns:
        The exit code: 1 if the script raised an exception, whose traceback is printed.

    Raises:
        UserError: There is no such script, or a step was not reached or could not be dumped.
        SystemExit: The script exited with a nonzero code.
    """
    open_to_read(script).close()
    saved = sys.argv, sys.path[:]
    sys.argv = [str(script), *arguments]
    sys.path.insert(0, str(script.absolute().parent))
    try:
        with dumping:
            _run(script)
    except UserError:
        raise
    except Exception as error:
        sys.stdout.flush()
        traceback.print_exception(type(error), error, _script_part(error.__traceback__, script))
        return 1
    finally:
        sys.argv, sys.path[:] = saved
    return 0


def _run(script: Path) -> None:
    try:
        runpy.run_path(str(script), run_name="__main__")
    except SystemExit as exit_:
        if exit_.code:
            raise


def _script_part(trace: TracebackType | None, script: Path) -> TracebackType | None:
    """Return a traceback from the script on; the whole traceback if the script is not in it."""
    part = trace
    while part is not None and part.tb_frame.f_code.co_filename != str(script):
        part = part.tb_next
    return part or trace
