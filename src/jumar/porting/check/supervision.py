"""Runs a program that may hang, crash or flood its output, and reports how it ended."""

import contextlib
import os
import signal
import subprocess
import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import IO, Literal

from jumar.ground.text import plain_text
from jumar.porting.check.children import Children

OUTPUT_LIMIT = 64 * 2**20
"""Bytes of output after which a program is stopped: no sensible log is longer."""

_KEPT_BYTES = 64 * 2**10
_READ_BYTES = 2**16
_POLL_S = 0.05
_STACK_S = 1.0
_CHILDREN_S = 0.5
_BETWEEN_STACKS_S = 0.2


@dataclass(frozen=True, kw_only=True)
class Ended:
    """The way a program ended.

    `how` is `exited` (with `code`), `signal` (a crash by the signal `code`), `timeout`, `flood` (it
    wrote more than `OUTPUT_LIMIT`), or `done` (the processes that it started are done). In the last
    three cases, jumar ended it.
    """

    how: Literal["exited", "signal", "timeout", "flood", "done"]
    code: int
    seconds: float
    num_bytes: int
    tail: tuple[str, ...]


class _Output:
    """Reads everything that a program writes and keeps the last part."""

    def __init__(self, pipe: IO[bytes]) -> None:
        self._pipe = pipe
        self._chunks: deque[bytes] = deque()
        self._kept = 0
        self.num_bytes = 0
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        descriptor = self._pipe.fileno()
        while True:
            try:
                chunk = os.read(descriptor, _READ_BYTES)
            except OSError:
                return
            if not chunk:
                return
            self.num_bytes += len(chunk)
            self._chunks.append(chunk)
            self._kept += len(chunk)
            while self._kept - len(self._chunks[0]) > _KEPT_BYTES:
                self._kept -= len(self._chunks.popleft())

    def finish(self) -> tuple[str, ...]:
        """Return the last lines, without waiting for a process that escaped."""
        self._thread.join(timeout=2.0)
        text = b"".join(list(self._chunks)).decode("utf-8", errors="replace")
        return tuple(plain_text(line, keep="\t") for line in text.replace("\r", "\n").splitlines())


def supervise(
    command: Sequence[str],
    *,
    folder: Path,
    environment: Mapping[str, str],
    timeout_s: float,
    children: Children | None = None,
) -> Ended:
    """Run a program in its own session, and always end all its processes afterwards.

    Standard input is empty, so that a prompt reads end-of-file.

    Args:
        command: Program and arguments, not interpreted by a shell.
        folder: The working folder.
        environment: The complete environment.
        timeout_s: Seconds after which the program is ended.
        children: Processes that the program starts; once they are done, it is ended too.

    Returns:
        How the program ended, with its last lines.

    Raises:
        OSError: The program cannot be started.
    """
    start = time.monotonic()
    with _leaving_on_signals() as handle_signals:
        process = subprocess.Popen(
            list(command),
            cwd=folder,
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        assert process.stdout is not None
        with process.stdout as pipe:
            try:
                handle_signals()
                output = _Output(pipe)
                how = _wait(process, output, start + timeout_s, children)
                seconds = time.monotonic() - start
            finally:
                _end_group(process)
                if children is not None:  # some may have started their own session
                    children.send(signal.SIGKILL)
            tail = output.finish()
    code = process.returncode
    if how == "exited" and code < 0:
        how, code = "signal", -code
    return Ended(how=how, code=code, seconds=seconds, num_bytes=output.num_bytes, tail=tail)


def _wait(
    process: "subprocess.Popen[bytes]",
    output: _Output,
    deadline: float,
    children: Children | None,
) -> Literal["exited", "signal", "timeout", "flood", "done"]:
    next_look = time.monotonic() + _CHILDREN_S
    while not _is_over(process):
        if output.num_bytes > OUTPUT_LIMIT:
            return "flood"
        if time.monotonic() > deadline:
            _ask_for_stack(process, children)
            return "timeout"
        if children is not None and time.monotonic() > next_look:
            if children.are_done():
                return "done"
            next_look = time.monotonic() + _CHILDREN_S
        time.sleep(_POLL_S)
    return "exited"


def _is_over(process: "subprocess.Popen[bytes]") -> bool:
    """Return whether a program has ended, without reaping it, so that its pid stays reserved."""
    return os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def _ask_for_stack(process: "subprocess.Popen[bytes]", children: Children | None) -> None:
    """Make the runner print its stack, which shows where it hangs, by SIGUSR1."""
    if children is not None:
        children.send(signal.SIGUSR1)
        time.sleep(_BETWEEN_STACKS_S)
    # Unlike `process.send_signal`, this does not reap a program that has just ended.
    os.kill(process.pid, signal.SIGUSR1)
    asked_at = time.monotonic()
    while not _is_over(process) and time.monotonic() < asked_at + _STACK_S:
        time.sleep(_POLL_S)


def _end_group(process: "subprocess.Popen[bytes]") -> None:
    """Kill the program and everything it started that stayed in its process group."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


@contextlib.contextmanager
def _leaving_on_signals() -> Generator[Callable[[], None]]:
    """Turn SIGTERM and SIGHUP into an exception, so that the program's group is ended too.

    A signal that arrives while the program is being started would leave it running unsupervised: in
    its own session, no terminal ends it either. Signals, including Ctrl-C, are therefore deferred
    until the yielded function is called, which handles them.
    """
    if threading.current_thread() is not threading.main_thread():
        yield lambda: None
        return
    deferred_signals: list[int] = []
    deferring = True
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    # Ignored signals stay ignored: SIGHUP under nohup, SIGINT in a background job of a script.
    previous_handlers = {
        number: signal.getsignal(number)
        for number in numbers
        if signal.getsignal(number) is not signal.SIG_IGN
    }

    def on_signal(number: int, frame: FrameType | None) -> None:
        if deferring:
            deferred_signals.append(number)
            return
        handler = previous_handlers[signal.Signals(number)]
        if number == signal.SIGINT and callable(handler):
            handler(number, frame)
        raise SystemExit(128 + number)

    def handle_signals() -> None:
        nonlocal deferring
        deferring = False
        if deferred_signals:
            on_signal(deferred_signals[0], None)

    for number in previous_handlers:
        signal.signal(number, on_signal)
    try:
        yield handle_signals
    finally:
        for number, handler in previous_handlers.items():
            signal.signal(number, handler)
