"""A place whose jobs are calls of a function, for tests of what is placed."""

import signal
from collections.abc import Callable, Sequence
from typing import Any

from jumar.experiments.placing.contract import Ended, Job, Place
from jumar.experiments.sweep_plan import stopping_signal


class CalledPlace(Place):
    """Calls a function with the one word of a job's command; it returns the exit code."""

    def __init__(self, act: Callable[[Any], int]) -> None:
        super().__init__()
        self._act = act
        self._ended: list[Ended] = []

    @property
    def running(self) -> Sequence[Job]:
        return [ended.job for ended in self._ended]

    @property
    def has_room(self) -> bool:
        return not self._ended

    @property
    def shares_terminal(self) -> bool:
        return True

    def start(self, job: Job) -> None:
        (request,) = job.command("cpu")
        try:
            code = self._act(request)
        except KeyboardInterrupt:
            code = 128 + signal.SIGINT
        self.stopped_by = self.stopped_by or stopping_signal(code)
        self._ended.append(Ended(job=job, code=code))

    def stop(self, job: Job) -> None:
        raise AssertionError(f"{job.name} has ended")

    def wait(self, seconds: float) -> list[Ended]:
        ended, self._ended = self._ended, []
        return ended

    def on_signal(self, number: int) -> None:
        pass
