"""The interface of the places where an experiment's runs are computed."""

import signal
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

OUTPUT = "output.txt"
"""Name of the output file in a run directory if the run did not print to a terminal."""
_WAIT_S = 600.0


class ExperimentStopped(Exception):
    """A signal stopped an experiment; the same command resumes it.

    Attributes:
        signal: Its number.
    """

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.signal = number


@dataclass(frozen=True, kw_only=True)
class Job:
    """One run to compute.

    The command resumes a run that it finds in the directory, so that it may be repeated.

    Attributes:
        directory: The run directory.
        command: Returns the command for a device, a value of `--device`.
        output: File for its output; None for the terminal, if the place supports that.
    """

    directory: Path
    command: Callable[[str], Sequence[str]]
    output: Path | None = None

    @property
    def name(self) -> str:
        """The name of the run directory."""
        return self.directory.name


@dataclass(frozen=True, kw_only=True)
class Ended:
    """A job that has ended.

    Attributes:
        job: The job.
        code: Exit code of its process, negative for a signal.
        note: The reason why it ended, if the exit code does not show it.
    """

    job: Job
    code: int
    note: str = ""


class Place(ABC):
    """Computes jobs, in parallel if possible.

    Used as a context manager, within which Ctrl-C and SIGTERM stop the running jobs, each at a
    checkpoint, and no more are started. Must be entered in the main thread, where Python handles
    signals.

    Attributes:
        stopped_by: The signal that stopped it; 0 if there was none.
    """

    def __init__(self) -> None:
        self.stopped_by = 0
        self._handlers: dict[int, Any] = {}

    @property
    @abstractmethod
    def running(self) -> Sequence[Job]:
        """The jobs that have not ended."""

    @property
    @abstractmethod
    def has_room(self) -> bool:
        """Whether another job may start now; always true if none is running."""

    @property
    @abstractmethod
    def shares_terminal(self) -> bool:
        """Whether jobs run one at a time, so that they may print to the terminal."""

    @abstractmethod
    def start(self, job: Job) -> None:
        """Start a job."""

    @abstractmethod
    def stop(self, job: Job) -> None:
        """Ask a job to save a checkpoint and exit."""

    @abstractmethod
    def wait(self, seconds: float) -> list[Ended]:
        """Wait until a job has ended.

        Args:
            seconds: Time limit.

        Returns:
            All jobs that have ended since the last call.
        """

    @abstractmethod
    def on_signal(self, number: int) -> None:
        """Stop the running jobs after a signal."""

    def __enter__(self) -> "Place":
        def handle(number: int, frame: FrameType | None) -> None:
            del frame
            if not self.stopped_by:
                self.stopped_by = number
                self.on_signal(number)

        for number in (signal.SIGINT, signal.SIGTERM):
            self._handlers[number] = signal.signal(number, handle)
        return self

    def __exit__(self, *error: object) -> None:
        for number, handler in self._handlers.items():
            signal.signal(number, handler)


def run_jobs(
    place: Place,
    jobs: Sequence[Job],
    *,
    begin: Callable[[Job], None] = lambda _: None,
    end: Callable[[Ended], None] = lambda _: None,
) -> int:
    """Compute jobs in order, in parallel as far as the place has room.

    Args:
        place: An entered place.
        jobs: The jobs.
        begin: Called before a job starts.
        end: Called when a job has ended.

    Returns:
        The signal that stopped the jobs, or 0.
    """
    waiting = deque(jobs)
    while place.running or (waiting and not place.stopped_by):
        while waiting and place.has_room and not place.stopped_by:
            begin(waiting[0])
            place.start(waiting.popleft())
        for ended in place.wait(_WAIT_S if not waiting else 1.0):
            end(ended)
    return place.stopped_by
