"""Ends workers of pytest-xdist that hang or died unnoticed, so that their test fails by its name.

A test that hangs in native code, with the interpreter's lock held, cannot be ended from within its
process; and where a worker dies while a fork of it lives on, xdist waits for ever for the pipe that
both hold. Each worker notes in a file which test it is at. When that does not change for too long,
the main process prints the worker's stacks and kills it and its forks: xdist then reports the test
as crashed, and goes on with a new worker.
"""

import faulthandler
import os
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

LIMIT_S = float(os.environ.get("JUMAR_STALLED_AFTER_S", "720"))
"""Longer than any test may take by --timeout, which says more about those that it can end."""
_FOLDER = "stalled_workers_folder"
_IDLE = ""


def note_tests(config: pytest.Config) -> None:
    """Let a worker note its tests; called as the worker starts."""
    folder = getattr(config, "workerinput", {}).get(_FOLDER)
    if folder is None:
        return
    # Standard error is captured while a test runs; the stacks go to the real one.
    faulthandler.register(signal.SIGUSR2, file=os.dup(2), all_threads=True)
    config.pluginmanager.register(_Notes(Path(folder) / str(os.getpid())), "stalled-workers")


def watch(config: pytest.Config) -> None:
    """Let the main process watch the workers; called as it starts."""
    if not hasattr(config, "workerinput") and getattr(config.option, "dist", "no") != "no":
        folder = tempfile.TemporaryDirectory(prefix="workers-")
        config.add_cleanup(folder.cleanup)
        watching = _Watching(Path(folder.name))
        config.pluginmanager.register(watching, "stalled-workers")
        threading.Thread(target=watching.run, daemon=True).start()


class _Notes:
    """Writes down which test a worker is at."""

    def __init__(self, file: Path) -> None:
        self._file = file

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        self._write(item.nodeid)
        try:
            return (yield)
        finally:
            self._write(_IDLE)

    def _write(self, text: str) -> None:
        with suppress(OSError):  # the folder is gone when the main process is
            self._file.write_text(text, encoding="utf-8")


class _Watching:
    """Looks at the notes of all workers."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node) -> None:
        node.workerinput[_FOLDER] = str(self._folder)

    def run(self) -> None:
        """Look until the main process ends."""
        while True:
            time.sleep(min(LIMIT_S / 4, 10))
            with suppress(OSError):
                for note in list(self._folder.iterdir()):
                    if time.time() - note.stat().st_mtime > LIMIT_S:
                        self._look_at(note)

    def _look_at(self, note: Path) -> None:
        test = note.read_text(encoding="utf-8")
        if test == _IDLE:
            return
        worker = int(note.name)
        note.unlink()
        state = _state(worker)
        print(
            f"\nprocess {worker} has been at {test} for {LIMIT_S:.0f} s; its state is {state}",
            file=sys.stderr,
            flush=True,
        )
        with suppress(ProcessLookupError):
            os.kill(worker, signal.SIGUSR2)
            time.sleep(2)
        for process in [worker, *_forks(worker)]:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(process, signal.SIGKILL)


def _state(process: int) -> str:
    try:
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return "gone"
    return fields[0]


def _forks(worker: int) -> list[int]:
    """Processes that run a worker's program but are no workers: children of other parents."""
    forks: list[int] = []
    for place in Path("/proc").glob("[0-9]*"):
        try:
            command = (place / "cmdline").read_bytes()
            parent = int((place / "stat").read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
        if b"exec(eval(sys.stdin.readline()))" in command and parent in (1, worker):
            forks.append(int(place.name))
    return forks
