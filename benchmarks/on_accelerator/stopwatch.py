"""Steps of the trainer's whole loop, timed by an observer."""

import time
from collections.abc import Generator
from contextlib import AbstractContextManager, contextmanager

from jumar.devices.contract import Device
from jumar.observer import DATA, Observer


class Stopwatch(Observer):
    """Times steps of a loop, and what of them waits for data.

    Args:
        device: Waited for before the first and after the last timed step.
        warm_up: Steps before them, at least one.
        steps: How many are timed.
    """

    def __init__(self, device: Device, *, warm_up: int, steps: int) -> None:
        self.span = warm_up + steps
        self._device, self._warm_up, self._steps = device, warm_up, steps
        self._seen = 0
        self._began = self._ended = self._waited = 0.0

    def end_step(self) -> None:
        """See `Observer.end_step`."""
        self._seen += 1
        if self._seen == self._warm_up:
            self._device.synchronize()
            self._began = time.perf_counter()
        if self._seen == self.span:
            self._device.synchronize()
            self._ended = time.perf_counter()

    def phase(self, name: str, detail: str = "") -> AbstractContextManager[object] | None:
        """See `Observer.phase`."""
        del detail
        timed = name == DATA and self._warm_up <= self._seen < self.span
        return self._waiting() if timed else None

    @contextmanager
    def _waiting(self) -> Generator[None]:
        start = time.perf_counter()
        yield
        self._waited += time.perf_counter() - start

    @property
    def step_s(self) -> float:
        """Seconds a step, waiting included."""
        return (self._ended - self._began) / self._steps

    @property
    def waiting_s(self) -> float:
        """Of these, seconds in which there was nothing to train on."""
        return self._waited / self._steps
