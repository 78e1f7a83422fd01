"""Restart a command with additional environment variables.

The C library, its loader and OpenMP read their variables before Python runs any of our code. A
command that needs such variables therefore closes everything, and the process replaces itself once.
"""

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence

_MARK = "JUMAR_RESTARTED"


class RestartNeeded(Exception):
    """Raised by a command that has to be restarted with additional variables.

    Attributes:
        variables: The variables to set.
    """

    def __init__(self, variables: Mapping[str, str]) -> None:
        super().__init__(dict(variables))
        self.variables = dict(variables)


def was_restarted() -> bool:
    """Return whether this process was restarted; true only on the first call."""
    return bool(os.environ.pop(_MARK, ""))


def restart(request: RestartNeeded, tokens: Sequence[str], *, replaces: bool) -> int:
    """Run the command line again with additional variables.

    Args:
        request: The variables to set.
        tokens: The command line.
        replaces: Whether to replace this process; otherwise a child process runs it, for callers
            that continue afterwards.

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
