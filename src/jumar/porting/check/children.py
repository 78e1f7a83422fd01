"""Follows the processes that a checked script starts, by the events that they record."""

import contextlib
import os
import signal
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jumar.ground.json_text import parse_json

_MAX_WAIT_S = 30.0
"""Maximum wait for processes that are still training, once one has completed its steps."""


@dataclass(frozen=True, kw_only=True)
class Children:
    """The processes that a script starts.

    `events` is the file of their events; `mark` is a text that only their environments contain.
    """

    events: Path
    mark: str

    def are_done(self) -> bool:
        """Return whether a process has completed all its steps and no other is still training.

        Processes that start training after that do not count: otherwise, a script that starts
        several training runs in sequence would be followed through all of them.
        """
        training_pids: set[int] = set()
        ended_pids: set[int] = set()
        for event in json_lines(self.events):
            pid = event.get("pid")
            if pid is None:
                continue
            if event["event"] == "end":
                ended_pids.add(pid)
            elif not ended_pids:
                training_pids.add(pid)
        if not ended_pids:
            return False
        waiting = [pid for pid in training_pids - ended_pids if self._is_alive(pid)]
        quiet_s = time.time() - self.events.stat().st_mtime
        return not waiting or quiet_s > _MAX_WAIT_S

    def send(self, number: signal.Signals) -> None:
        """Send a signal to the processes that are alive."""
        for pid in {event["pid"] for event in json_lines(self.events) if "pid" in event}:
            if self._is_alive(pid):
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, number)

    def _is_alive(self, pid: int) -> bool:
        """Return whether a process is running; one that merely reuses its pid lacks the mark."""
        try:
            environment = Path(f"/proc/{pid}/environ").read_bytes()
        except OSError:
            return False
        return self.mark.encode() in environment


def json_lines(path: Path) -> Iterable[dict[str, Any]]:
    """Yield the JSON objects of a file, one per line; other lines are ignored."""
    if not path.is_file():
        return
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
        try:
            value = parse_json(line)
        except ValueError:
            continue
        if isinstance(value, dict):
            yield value
