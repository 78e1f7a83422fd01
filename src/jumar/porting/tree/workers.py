"""Ports scripts in several processes; a process that dies does not stop the others."""

import gc
import multiprocessing
import resource
import signal
from collections import deque
from collections.abc import Callable, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool

from jumar.ground.processes import begin_worker, process_context
from jumar.porting.edits import FileReport, Text

Port = Callable[[str], FileReport]

TIMEOUT_SECONDS = 60
"""Time limit for one script; the largest real scripts take a second."""
MAX_MEMORY = 1_500_000_000
"""Bytes of memory that a process may use for the syntax trees of a script."""

_port: Port | None = None


def in_processes(port: Port, sizes: Mapping[str, int], *, processes: int) -> dict[str, FileReport]:
    """Port scripts in parallel and return their reports by path.

    Args:
        port: Returns the report of a script.
        sizes: Paths with their sizes; the largest start first, so that none runs alone at the end.
        processes: Number of parallel processes.
    """
    waiting = deque(sorted(sizes, key=lambda path: (-sizes[path], path)))
    reports: dict[str, FileReport] = {}
    suspects: list[str] = []
    while waiting:
        suspects += _until_broken(port, waiting, reports, processes)
    for path in suspects:
        queue = deque([path])
        if _until_broken(port, queue, reports, 1):
            reports[path] = FileReport(path=path, status="unreadable", note=_DIED)
    return reports


def _until_broken(
    port: Port, waiting: deque[str], reports: dict[str, FileReport], processes: int
) -> list[str]:
    """Port until nothing is waiting or a process dies; return the scripts then in progress."""
    earlier_children = set(multiprocessing.active_children())
    pool = ProcessPoolExecutor(processes, process_context(), _start, (port,))
    running: dict[Future[FileReport], str] = {}
    try:
        while waiting or running:
            # Few at a time: work in progress when a process dies is repeated.
            while waiting and len(running) < 2 * processes:
                running[pool.submit(_run, waiting[0])] = waiting[0]
                waiting.popleft()
            finished, _ = wait(running, return_when=FIRST_COMPLETED)
            for future in finished:
                path = running[future]
                try:
                    reports[path] = future.result()
                except (MemoryError, RecursionError):
                    # An error in sending the report; errors in porting are part of the report.
                    reports[path] = FileReport(path=path, status="unreadable", note=_DIED)
                del running[future]
        pool.shutdown()
    except BrokenProcessPool:
        pool.shutdown()
        return list(running.values())
    except BaseException:
        for process in set(multiprocessing.active_children()) - earlier_children:
            process.terminate()
        pool.shutdown(cancel_futures=True)
        raise
    return []


def _start(port: Port) -> None:
    global _port  # noqa: PLW0603 - a pool process has no other place for state
    _port = port
    begin_worker()
    signal.signal(signal.SIGALRM, _raise_timeout)
    hard_limit = resource.getrlimit(resource.RLIMIT_DATA)[1]
    if hard_limit == resource.RLIM_INFINITY or hard_limit > MAX_MEMORY:
        resource.setrlimit(resource.RLIMIT_DATA, (MAX_MEMORY, hard_limit))
    # Syntax trees are many small objects that live until the script is done.
    gc.freeze()
    gc.set_threshold(100_000, 20, 20)


def _run(path: str) -> FileReport:
    assert _port is not None
    signal.alarm(TIMEOUT_SECONDS)
    try:
        return _port(path)
    except _ScriptTimeout:
        return FileReport(path=path, status="unreadable", note=_SLOW)
    finally:
        signal.alarm(0)


class _ScriptTimeout(BaseException):
    """A script takes too long. No `except Exception` on the way may catch this."""


def _raise_timeout(signal_number: int, frame: object) -> None:
    del signal_number, frame
    raise _ScriptTimeout


_DIED = Text(
    en="the process that read this script died: copied as it is",
    zh="读取它的进程异常退出：原样复制",
)
_SLOW = Text(
    en=f"took longer than {TIMEOUT_SECONDS} s to read: copied as it is",
    zh=f"读取超过 {TIMEOUT_SECONDS} 秒：原样复制",
)
