"""Worker processes, and threads that compute some results ahead: their start and their end."""

import multiprocessing
import os
import signal
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import islice
from multiprocessing.context import BaseContext
from typing import TypeVar

_POLL_INTERVAL_S = 1.0
STOPPING = frozenset({signal.SIGINT, signal.SIGTERM})
"""The signals that end a command."""
Argument = TypeVar("Argument")
Result = TypeVar("Result")


def process_context() -> BaseContext:
    """Return the fork context if forking is safe, which saves imports; otherwise spawn."""
    forks = sys.platform == "linux" and threading.active_count() == 1
    return multiprocessing.get_context("fork" if forks else "spawn")


def begin_worker() -> None:
    """Initialise a worker process: ignore Ctrl-C, and exit when the parent process has ended."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_exit_with, args=(os.getppid(),), daemon=True).start()


@contextmanager
def signals_held() -> Generator[None]:
    """Let SIGINT and SIGTERM wait for the end of the block; processes started within begin so too.

    The mask is that of this thread, so other threads still receive them.
    """
    previous = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    try:
        signal.pthread_sigmask(signal.SIG_BLOCK, STOPPING)
        yield
    finally:
        # A handler may raise here, after the mask is restored.
        signal.pthread_sigmask(signal.SIG_SETMASK, previous)


def in_order(
    task: Callable[[Argument], Result], arguments: Iterable[Argument], *, threads: int, ahead: int
) -> Generator[Result]:
    """Yield the results of a task in the order of its arguments, computed by several threads.

    Args:
        task: Called with one argument at a time.
        arguments: The arguments.
        threads: Number of threads.
        ahead: Number of results that are computed ahead, which limits memory.
    """
    pool = ThreadPoolExecutor(max_workers=threads)
    try:
        submissions = (pool.submit(task, argument) for argument in arguments)
        pending = deque(islice(submissions, ahead))
        while pending:
            yield pending.popleft().result()
            pending.extend(islice(submissions, 1))
    finally:
        # After Ctrl-C, drop the arguments that no thread has started.
        pool.shutdown(wait=True, cancel_futures=True)


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
