"""Processes forked for a measurement or a rival, and what becomes of a measurement."""

import ctypes
import multiprocessing
import os
import signal
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import datetime, timezone
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from jumar.devices.registry import is_out_of_memory
from jumar.ground.errors import UserError
from on_accelerator.measuring import Context, Failed, GoesOn, Measurement, Missing, Row
from on_accelerator.records import Record, State

FORK = multiprocessing.get_context("fork")
_LONGEST_REASON = 300
_PR_SET_PDEATHSIG = 1


class Child:
    """A forked process that runs a function, and what it sends.

    Args:
        run: Runs in the process, with the other end of the pipe.
        log: Where its output goes.
        leads: Whether it starts processes of its own, which end with it.
    """

    def __init__(
        self, run: Callable[[Connection], None], log: Path | None, *, leads: bool = False
    ) -> None:
        self.pipe, theirs = FORK.Pipe()
        self._process = FORK.Process(target=_become, args=(run, theirs, log, leads))
        self._process.start()
        self._leads = leads
        theirs.close()

    def receive(self, limit_s: float) -> Any:
        """The next message.

        Raises:
            TimeoutError: None came within the limit.
            EOFError: The process ended.
        """
        if not self.pipe.poll(max(limit_s, 0)):
            raise TimeoutError
        return self.pipe.recv()

    def end(self) -> str:
        """End the process and all of its own; returns how it ended, for people."""
        self._process.join(0.2)
        code = self._process.exitcode
        if self._leads:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid or 0, signal.SIGKILL)
        self._process.kill()
        self._process.join()
        self.pipe.close()
        if code is None:
            return "was ended"
        return f"ended with signal {signal.Signals(-code).name}" if code < 0 else f"exited {code}"


def _become(
    run: Callable[[Connection], None], pipe: Connection, log: Path | None, leads: bool
) -> None:
    if leads:
        os.setpgid(0, 0)
    _end_with_parent()
    if log is not None:
        sys.stdout.flush()
        sys.stderr.flush()
        # Both the descriptors, for what is not Python's, and Python's own files.
        sys.stdout = sys.stderr = log.open("a", encoding="utf-8", buffering=1)
        for number in (1, 2):
            os.dup2(sys.stdout.fileno(), number)
    try:
        run(pipe)
    except (BrokenPipeError, EOFError):
        pass
    except BaseException:
        traceback.print_exc()
        raise
    finally:
        sys.stdout.flush()
        sys.stderr.flush()


def _end_with_parent() -> None:
    """Let Linux end this process with its parent.

    A thread that watches the parent, as the loader's workers have, would let jumar start workers
    anew where it usually forks them.
    """
    parent = os.getppid()
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


def recorded(part: str, measurement: Measurement, context: Context) -> Record:
    """Make a measurement; whatever goes wrong is in the record."""
    start = time.time()
    state: State = "measured"
    rows: Sequence[Row] = []
    reason = ""
    print(f"== {part}: {measurement.name}", flush=True)
    try:
        rows = measurement.measure(context)
    except GoesOn as unfinished:
        state, rows = "goes on", unfinished.rows
    except Failed as failed:
        state, rows, reason = "failed", failed.rows, str(failed)
    except Missing as missing:
        state, reason = "missing", str(missing)
    except ModuleNotFoundError as error:
        state, reason = "missing", f"needs {error.name}, which is not installed"
    except UserError as error:
        state, reason = "failed", str(error)
    except Exception as error:
        traceback.print_exc()
        what = "out of memory" if is_out_of_memory(error) else type(error).__name__
        state, reason = "failed", f"{what}: {str(error).strip()}"
    return Record(
        part=part,
        measurement=measurement.name,
        state=state,
        rows=rows,
        reason=reason[:_LONGEST_REASON],
        seconds=time.time() - start,
        at=now(),
    )


def now() -> str:
    """The time in UTC, to the second."""
    return datetime.now(timezone.utc).isoformat(timespec="seconds")
