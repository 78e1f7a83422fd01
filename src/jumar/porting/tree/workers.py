"""Ports scripts in several processes; a process that dies does not stop the others.

Each process has a pipe of its own, and the main thread reads them all. In an executor of the
standard library, a thread reads a pipe shared by all processes: if one is killed while it writes,
as by Ctrl-C, that thread waits forever for the rest of the message, and so does the interpreter.
"""

import gc
import resource
import signal
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.context import BaseContext
from multiprocessing.process import BaseProcess

from jumar.ground.processes import STOPPING, begin_worker, process_context, signals_held
from jumar.porting.edits import FileReport, Text

Port = Callable[[str], FileReport]

TIMEOUT_SECONDS = 60
"""Time limit for one script; the largest real scripts take a second."""
MAX_MEMORY = 1_500_000_000
"""Bytes of memory that a process may use for the syntax trees of a script."""
_END_SECONDS = 1.0
"""How long to wait for a killed process, which a hanging disk can delay."""


@dataclass(frozen=True, kw_only=True)
class _Worker:
    process: BaseProcess
    pipe: Connection


def in_processes(port: Port, sizes: Mapping[str, int], *, processes: int) -> dict[str, FileReport]:
    """Port scripts in parallel and return their reports by path.

    Args:
        port: Returns the report of a script.
        sizes: Paths with their sizes; the largest start first, so that none runs alone at the end.
        processes: Number of parallel processes.
    """
    reports: dict[str, FileReport] = {}
    largest_first = sorted(sizes, key=lambda path: (-sizes[path], path))
    for path in _port_all(port, largest_first, reports, processes):
        # Alone, since the system may have killed the process for the memory of the others.
        if _port_all(port, [path], reports, 1):
            reports[path] = FileReport(path=path, status="unreadable", note=_DIED)
    return reports


def _port_all(
    port: Port, paths: Iterable[str], reports: dict[str, FileReport], processes: int
) -> list[str]:
    """Port scripts and add their reports; return those whose process died."""
    context = process_context()
    waiting = deque(paths)
    workers: list[_Worker] = []
    running: dict[Connection, str] = {}
    died: list[str] = []
    try:
        while waiting or running:
            while waiting and len(workers) < processes:
                with signals_held():
                    workers.append(_started(context, port))
            for worker in workers:
                if waiting and worker.pipe not in running:
                    running[worker.pipe] = waiting.popleft()
                    # If the process has died, reading its pipe will tell.
                    with suppress(OSError):
                        worker.pipe.send(running[worker.pipe])
            ready = wait(list(running))
            for worker in [worker for worker in workers if worker.pipe in ready]:
                path = running.pop(worker.pipe)
                try:
                    reports[path] = worker.pipe.recv()
                except (EOFError, OSError):
                    died.append(path)
                    workers.remove(worker)
                    _end([worker])
    finally:
        with signals_held():
            _end(workers)
    return died


def _started(context: BaseContext, port: Port) -> _Worker:
    ours, theirs = context.Pipe()
    process = context.Process(target=_work, args=(port, theirs), daemon=True)  # type: ignore[attr-defined]
    process.start()
    # Otherwise this end would stay open when the process dies.
    theirs.close()
    return _Worker(process=process, pipe=ours)


def _end(workers: Iterable[_Worker]) -> None:
    """Kill processes: they have nothing to complete, and one that writes a report would wait."""
    for worker in workers:
        worker.process.kill()
    for worker in workers:
        worker.process.join(_END_SECONDS)
        worker.pipe.close()


def _work(port: Port, pipe: Connection) -> None:
    """Port the scripts that arrive, until the process is killed or the other end is gone."""
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    begin_worker()
    signal.pthread_sigmask(signal.SIG_UNBLOCK, STOPPING)
    signal.signal(signal.SIGALRM, _raise_timeout)
    hard_limit = resource.getrlimit(resource.RLIMIT_DATA)[1]
    if hard_limit == resource.RLIM_INFINITY or hard_limit > MAX_MEMORY:
        resource.setrlimit(resource.RLIMIT_DATA, (MAX_MEMORY, hard_limit))
    # Syntax trees are many small objects that live until the script is done.
    gc.freeze()
    gc.set_threshold(100_000, 20, 20)
    with suppress(EOFError, OSError):
        while True:
            path = pipe.recv()
            report = _run(port, path)
            try:
                pipe.send(report)
            except (MemoryError, RecursionError):
                # An error in sending the report; errors in porting are part of the report.
                pipe.send(FileReport(path=path, status="unreadable", note=_DIED))


def _run(port: Port, path: str) -> FileReport:
    signal.alarm(TIMEOUT_SECONDS)
    try:
        return port(path)
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
