"""The worker process that computes runs on a node of a Ray cluster."""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

_LAUNCHER = """
import ctypes, os, signal, sys
parent = int(sys.argv[1])
ctypes.CDLL(None).prctl(1, signal.SIGKILL)
if os.getppid() != parent:
    sys.exit(1)
os.execvp(sys.argv[2], sys.argv[2:])
"""
"""Makes a run end with the worker that started it (PR_SET_PDEATHSIG). Otherwise a run that outlives
a lost worker would keep its directory locked, and no other node could resume it."""

_START_TIMEOUT_S = 5.0


@dataclass(frozen=True, kw_only=True)
class Errand:
    """A command for a node.

    Attributes:
        command: The command, which begins with the caller's Python.
        caller_python: The caller's Python, which may have another path on the node.
        folder: The working folder.
        output: File for its output.
        environment: Environment variables of the caller to set.
    """

    command: Sequence[str]
    caller_python: str
    folder: str
    output: str
    environment: Mapping[str, str]


@dataclass(frozen=True, kw_only=True)
class Returned:
    """The result of a command on a node.

    Attributes:
        code: Exit code, negative for a signal; None if the command was not started.
        node: The node's name.
        missing: A folder that does not exist on the node; empty if there is none.
    """

    code: int | None
    node: str
    missing: str = ""


class RayWorker:
    """An actor that computes one run at a time and can be asked to stop it."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None

    def run(self, errand: Errand) -> Returned:
        """Run a command and wait until it ends."""
        node = socket.gethostname()
        output = Path(errand.output)
        for folder in (Path(errand.folder), output.parent.parent):
            if not folder.is_dir():
                return Returned(code=None, node=node, missing=str(folder))
        output.parent.mkdir(exist_ok=True)
        command = list(errand.command)
        if command[0] == errand.caller_python:
            command[0] = sys.executable
        with output.open("ab") as file:
            self._process = subprocess.Popen(
                [sys.executable, "-c", _LAUNCHER, str(os.getpid()), *command],
                cwd=errand.folder,
                env={**os.environ, **errand.environment},
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
            )
        try:
            return Returned(code=self._process.wait(), node=node)
        finally:
            self._process = None

    def stop(self) -> None:
        """Ask the run to save a checkpoint and exit; waits a moment if it is just starting."""
        deadline = time.monotonic() + _START_TIMEOUT_S
        while (process := self._process) is None and time.monotonic() < deadline:
            time.sleep(0.05)
        if process is not None and process.poll() is None:
            process.terminate()
