"""Worker processes: how they are started, and when they end."""

import multiprocessing
import os
import signal
import sys
import threading
import time
from multiprocessing.context import BaseContext

_POLL_INTERVAL_S = 1.0


def process_context() -> BaseContext:
    """Return the fork context if forking is safe, which saves imports; otherwise spawn."""
    forks = sys.platform == "linux" and threading.active_count() == 1
    return multiprocessing.get_context("fork" if forks else "spawn")


def begin_worker() -> None:
    """Initialise a worker process: ignore Ctrl-C, and exit when the parent process has ended."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_exit_with, args=(os.getppid(),), daemon=True).start()


def _exit_with(parent: int) -> None:
    """Exit once the parent process has ended; otherwise, reading its pipes would block forever.

    Neither check is enough: the system's parent of a process from a fork server is the server,
    which lives as long as its children, and the pipe that `is_alive` watches is inherited by
    processes forked later.
    """
    process = multiprocessing.parent_process()
    while os.getppid() == parent and (process is None or process.is_alive()):
        time.sleep(_POLL_INTERVAL_S)
    os._exit(1)
