"""Runs `jumar` commands in forks of one process that has torch loaded already.

A process of its own takes two seconds to import torch; the documents hold dozens of commands.
Each fork is still a process with its own folder, environment, signals and exit status. One line
of JSON a request on standard input, one line with the exit status on standard output.
"""

import contextlib
import gc
import importlib
import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

from jumar.cli.main import run

LOADED_LATE = ("torch._dynamo", "jumar.runs.train", "jumar.experiments.sweep")
"""The first optimizer of a process imports the compiler, which takes a second."""


def serve() -> None:
    """Answer requests until standard input ends; in a fork, become the command."""
    for name in LOADED_LATE:
        # What cannot be imported is for the command to report, in its own words.
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    # Without this, a fork copies torch's pages as it leaves, which takes half a second.
    gc.freeze()
    # The folder of this module is on the path, that of an installed `jumar` script is not.
    del sys.path[0]
    for line in sys.stdin:
        request = json.loads(line)
        child = os.fork()
        if child == 0:
            become(request)
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)


def become(request: dict[str, Any]) -> None:
    """Turn this fork into the command, and leave with its status."""
    os.setsid()
    signal.alarm(request["limit_s"])
    os.chdir(request["folder"])
    os.environ.clear()
    os.environ.update(request["environment"])
    printed = os.open(request["printed"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(printed, 1)
    os.dup2(printed, 2)
    sys.argv = [str(Path(sys.executable).with_name("jumar")), *request["arguments"]]
    run()


if __name__ == "__main__":
    serve()
