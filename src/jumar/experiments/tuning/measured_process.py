"""A process that trains one setting and is timed in blocks of steps.

Between its blocks the whole process group is stopped, including loader processes, which otherwise
would fill their queues and use CPU time while another setting is timed.
"""

import json
import os
import select
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

_POLL_INTERVAL_S: Final = 0.5
_MAX_LINES: Final = 3


class NotMeasured(Exception):
    """Raised with the reason if a setting cannot be measured."""


@dataclass(frozen=True, kw_only=True)
class Block:
    """Timing of consecutive steps.

    Attributes:
        step_s: Seconds per step.
        data_share: Fraction of the time spent waiting for data.
        loader_share: Fraction of all CPU time used by loader processes.
        queued_share: Fraction of the time during which the device works after the last step was
            issued.
        memory_bytes: Peak memory so far.
    """

    step_s: float
    data_share: float
    loader_share: float
    queued_share: float
    memory_bytes: int


class MeasuredProcess:
    """A process that times blocks of steps on request; see `jumar.runs.speed`.

    Args:
        command: The command to start.
        environment: Environment variables in addition to those of this process.
        log: File for the error output of the process.

    Attributes:
        start_s: Seconds until blocks could be timed.
    """

    def __init__(self, command: Sequence[str], environment: Mapping[str, str], log: Path) -> None:
        self._log = log
        self._started = time.monotonic()
        self._rest = b""
        with log.open("wb") as output:
            # In its own group, so that it can be stopped together with its loader processes, but in
            # this session: if this process is killed, Linux ends stopped members of such groups.
            self._process = subprocess.Popen(
                list(command),
                env={**os.environ, **environment},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=output,
                preexec_fn=os.setpgrp,  # noqa: PLW1509 (it acquires no lock)
            )
        self._description: dict[str, Any] | None = None
        self.start_s = 0.0

    def ready(self, timeout_s: float) -> Mapping[str, Any]:
        """Wait until blocks can be timed; returns hashes of the weights, memory and machine.

        Args:
            timeout_s: Time limit, from the start of the process.

        Raises:
            NotMeasured: The process ended, or takes too long.
        """
        if self._description is None:
            self._description = self._reply(timeout_s - (time.monotonic() - self._started))
            self.start_s = time.monotonic() - self._started
            self._signal(signal.SIGSTOP)
        return self._description

    def measure(self, steps: int, timeout_s: float) -> Block:
        """Time a block of steps.

        Raises:
            NotMeasured: The process ended, or takes too long.
        """
        self._signal(signal.SIGCONT)
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(f"measure {steps}\n".encode())
            self._process.stdin.flush()
        except BrokenPipeError:
            raise NotMeasured(self._end_reason()) from None
        block = self._reply(timeout_s)
        self._signal(signal.SIGSTOP)
        seconds = max(block["seconds"], 1e-9)
        cpu_s = block["cpu_s"] + block["loader_cpu_s"]
        return Block(
            step_s=seconds / block["steps"],
            data_share=block["data_s"] / seconds,
            loader_share=block["loader_cpu_s"] / cpu_s if cpu_s else 0.0,
            queued_share=block["queued_s"] / seconds,
            memory_bytes=block["memory_bytes"],
        )

    def close(self) -> None:
        """End the process and its loader processes at once; their results are discarded."""
        self._signal(signal.SIGKILL)
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                try:
                    pipe.close()
                except BrokenPipeError:
                    continue

    def _signal(self, number: int) -> None:
        try:
            os.killpg(self._process.pid, number)
        except ProcessLookupError:
            return

    def _reply(self, timeout_s: float) -> dict[str, Any]:
        assert self._process.stdout is not None
        descriptor = self._process.stdout.fileno()
        deadline = time.monotonic() + timeout_s
        while b"\n" not in self._rest:
            remaining_s = deadline - time.monotonic()
            if remaining_s <= 0:
                raise NotMeasured(f"takes longer than {timeout_s:.0f} s")
            if select.select([descriptor], [], [], min(remaining_s, _POLL_INTERVAL_S))[0]:
                data = os.read(descriptor, 1 << 16)
                if not data:
                    raise NotMeasured(self._end_reason())
                self._rest += data
            elif self._process.poll() is not None:
                # Its loader processes may still keep the pipe open.
                raise NotMeasured(self._end_reason())
        line, _, self._rest = self._rest.partition(b"\n")
        return json.loads(line)

    def _end_reason(self) -> str:
        """Return the reason why the process ended: a signal, its last output, or its exit code."""
        self._signal(signal.SIGCONT)
        code = self._process.wait()
        text = self._log.read_text(encoding="utf-8", errors="replace").strip()
        lines = " ".join(line.strip() for line in text.splitlines()[-_MAX_LINES:])
        if code < 0:
            name = signal.Signals(-code).name
            cause = ", most likely for lack of memory" if name == "SIGKILL" else ""
            return f"killed by {name}{cause}"
        return lines.removeprefix("jumar: ") or f"ended with exit code {code}"
