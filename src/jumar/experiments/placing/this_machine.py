"""Runs on this machine, each in its own process, in parallel if there is room."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from jumar.experiments.placing.contract import Ended, Job, Place
from jumar.experiments.sweep_plan import stopping_signal
from jumar.ground.machine import memory_bytes, process_memory, usable_cores
from jumar.ground.text import counted, size_text

_POLL_INTERVAL_S = 0.05
_MIN_BYTES = 512 * 2**20
"""Minimum memory of a run, for torch and a small network."""


@dataclass(kw_only=True)
class _Child:
    job: Job
    process: "subprocess.Popen[bytes]"
    slot: int
    is_stopped: bool = False


class ThisMachine(Place):
    """Runs as child processes of this process.

    After Ctrl-C, which the children receive from the terminal too, this process waits for them to
    write their checkpoints; `subprocess.run` would kill them after a quarter of a second. SIGTERM,
    which only this process receives, is passed on. A signal applies to the whole experiment, so the
    exit code of all running children is 128 plus the signal.

    Args:
        at_once: Maximum number of parallel runs.
        devices: Their devices, used in turn.
        say: Prints a line.
    """

    def __init__(
        self,
        *,
        at_once: int = 1,
        devices: Sequence[str] = ("auto",),
        say: Callable[[str], None] = print,
    ) -> None:
        super().__init__()
        self._at_once, self._devices, self._say = at_once, devices, say
        self._children: list[_Child] = []
        self._largest = _MIN_BYTES
        self._was_short = False

    @property
    def running(self) -> Sequence[Job]:
        """See `Place`."""
        return [child.job for child in self._children]

    @property
    def shares_terminal(self) -> bool:
        """See `Place`."""
        return self._at_once == 1

    @property
    def has_room(self) -> bool:
        """Whether fewer than `at_once` runs are running, and there is memory for another.

        Every run, including recently started ones, is expected to need as much memory as the
        largest so far.
        """
        if not self._children:
            return True
        if len(self._children) >= self._at_once:
            return False
        sizes = [self._measured(child) for child in self._children]
        expected_growth = sum(max(0, self._largest - size) for size in sizes)
        is_short = memory_bytes()[0] < expected_growth + self._largest
        if is_short and not self._was_short:
            self._say(
                f"only {counted(len(sizes), 'run')} in parallel for now: another one of "
                f"{size_text(self._largest)} does not fit into the free memory"
            )
        self._was_short = is_short
        return not is_short

    def start(self, job: Job) -> None:
        """See `Place`."""
        used_slots = {child.slot for child in self._children}
        slot = next(number for number in range(len(used_slots) + 1) if number not in used_slots)
        command = list(job.command(self._devices[slot % len(self._devices)]))
        if job.output is None:
            sys.stdout.flush()  # so that its lines follow ours
            process = subprocess.Popen(command, env=self._environment())
        else:
            job.output.parent.mkdir(parents=True, exist_ok=True)
            with job.output.open("ab") as file:
                process = subprocess.Popen(
                    command, env=self._environment(), stdout=file, stderr=subprocess.STDOUT
                )
        child = _Child(job=job, process=process, slot=slot)
        self._children.append(child)
        if self.stopped_by == signal.SIGTERM:
            # The signal arrived before the child was started.
            self._ask_to_stop(child)

    def stop(self, job: Job) -> None:
        """See `Place`."""
        for child in self._children:
            if child.job is job:
                self._ask_to_stop(child)

    def wait(self, seconds: float) -> list[Ended]:
        """See `Place`."""
        deadline = time.monotonic() + seconds
        while True:
            ended_children = [child for child in self._children if child.process.poll() is not None]
            if ended_children or not self._children or time.monotonic() >= deadline:
                break
            for child in self._children:
                self._largest = max(self._largest, self._measured(child))
            time.sleep(_POLL_INTERVAL_S)
        self._children = [child for child in self._children if child not in ended_children]
        return [Ended(job=child.job, code=self._code_of(child)) for child in ended_children]

    def on_signal(self, number: int) -> None:
        """See `Place`."""
        if number == signal.SIGTERM:
            for child in self._children:
                self._ask_to_stop(child)

    def _code_of(self, child: _Child) -> int:
        code = child.process.returncode
        if self.stopped_by:
            return 128 + self.stopped_by
        number = stopping_signal(code)
        if number and not child.is_stopped:
            # Interrupting one run interrupts the experiment.
            self.stopped_by = number
            for sibling in self._children:
                self._ask_to_stop(sibling)
        return code

    def _ask_to_stop(self, child: _Child) -> None:
        """Ask a run to save a checkpoint and exit, once: a second signal would prevent that."""
        if not child.is_stopped and child.process.poll() is None:
            child.is_stopped = True
            child.process.send_signal(signal.SIGTERM)

    def _environment(self) -> dict[str, str]:
        """Return the environment of a child process; parallel runs share the cores."""
        environment = dict(os.environ)
        if self._at_once > 1:
            threads = max(1, usable_cores() // self._at_once)
            environment.setdefault("OMP_NUM_THREADS", str(threads))
        return environment

    def _measured(self, child: _Child) -> int:
        return process_memory(child.process.pid)
