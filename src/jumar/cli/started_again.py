"""Restarting a command with more environment variables.

The C library, its loader and OpenMP read theirs before Python runs any of our code, so a command
that needs some closes all it has opened, and the process replaces itself, once.
"""

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence

_MARK = "JUMAR_STARTED_AGAIN"


class StartAgain(Exception):
    """A command has to restart with these variables.

    Attributes:
        variables: The variables to set.
    """

    def __init__(self, variables: Mapping[str, str]) -> None:
        super().__init__(dict(variables))
        self.variables = dict(variables)


def was_started_again() -> bool:
    """Whether this process was started again; true only on the first call."""
    return bool(os.environ.pop(_MARK, ""))


def start_again(request: StartAgain, tokens: Sequence[str], *, replaces: bool) -> int:
    """Run the command line again.

    Args:
        request: The variables to set.
        tokens: The command line.
        replaces: Whether to replace this process; otherwise a child runs it, for callers that
            continue afterwards.

    Returns:
        The exit code of the child.
    """
    command = [sys.executable, "-m", "jumar", *tokens]
    environment = {**os.environ, **request.variables, _MARK: "1"}
    sys.stdout.flush()
    sys.stderr.flush()
    if replaces:
        os.execve(command[0], command, environment)  # noqa: S606 (no shell is wanted)
    return subprocess.run(command, env=environment, check=False).returncode
