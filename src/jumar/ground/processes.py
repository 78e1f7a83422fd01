"""Worker processes: how they are started, and when they end."""

import multiprocessing
import os
import signal
import sys
import threading
import time
from multiprocessing.context import BaseContext

_SECONDS_BETWEEN_LOOKS = 1.0


def process_context() -> BaseContext:
    """Forks if that is safe: they start with all modules loaded."""
    forks = sys.platform == "linux" and threading.active_count() == 1
    return multiprocessing.get_context("fork" if forks else "spawn")


def begin_worker() -> None:
    """Initialise a worker process: leave Ctrl-C to its parent, and end when that is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with, args=(os.getppid(),), daemon=True).start()


def _end_with(parent: int) -> None:
    """End when the parent process was killed: otherwise its pipes would block forever.

    A process of a fork server has that for its parent, and the server lives as long as its
    children. The pipe of a forked process, in turn, is held open by those forked after it.
    """
    process = multiprocessing.parent_process()
    while os.getppid() == parent and (process is None or process.is_alive()):
        time.sleep(_SECONDS_BETWEEN_LOOKS)
    os._exit(1)
