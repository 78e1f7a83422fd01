"""Measuring the speed of steps, excluding everything that is not training."""

import statistics
import time
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Literal

WARM_UP_STEPS = 5
"""Number of steps after each start that are excluded from throughput, because they choose kernels
and allocate memory."""

EXCLUDES = f"the first {WARM_UP_STEPS} steps after a start, evaluation and checkpoints"


@dataclass(frozen=True, kw_only=True)
class Pace:
    """The speed over some steps; all times are per step.

    Attributes:
        samples_per_second: Throughput over all ranks.
        step_ms: Wall-clock time of a step, including waiting for data.
        data_ms: The part of it spent waiting for data.
    """

    samples_per_second: float
    step_ms: float
    data_ms: float


class StepClock:
    """Measures steps in windows between log lines.

    The device works asynchronously, so the clock is read only at the ends of windows, where the
    host waits for the device anyway.

    Args:
        samples_per_step: Global batch size.
        now: A monotonic clock, in seconds.
    """

    def __init__(self, samples_per_step: int, now: Callable[[], float] = time.perf_counter) -> None:
        self._samples = samples_per_step
        self._now = now
        self.drop_window()
        self._counted_steps = 0
        self._counted_seconds = 0.0
        self._counted_waiting = 0.0
        self._windows_ms: list[float] = []

    def waiting_for_data(self) -> AbstractContextManager[None]:
        """Count the time in this context as waiting for data."""
        return self._timing("waiting")

    def paused(self) -> AbstractContextManager[None]:
        """Exclude the time in this context: evaluation, checkpoints."""
        return self._timing("paused")

    @contextmanager
    def _timing(self, what: Literal["waiting", "paused"]) -> Generator[None]:
        start = self._now()
        try:
            yield
        finally:
            self._seconds[what] += self._now() - start

    def step(self) -> None:
        """Count a step that has been issued to the device."""
        self._steps += 1

    def drop_window(self) -> None:
        """Start a new window without counting the current one (at the end of the warm-up)."""
        self._window_start = self._now()
        self._seconds = {"waiting": 0.0, "paused": 0.0}
        self._steps = 0

    def close_window(self) -> Pace | None:
        """The pace since the last window; None if it has no steps."""
        seconds = self._now() - self._window_start - self._seconds["paused"]
        steps, waiting_s = self._steps, self._seconds["waiting"]
        self.drop_window()
        if steps == 0 or seconds <= 0:
            return None
        self._counted_steps += steps
        self._counted_seconds += seconds
        self._counted_waiting += waiting_s
        self._windows_ms.append(1000 * seconds / steps)
        return self._pace(steps, seconds, waiting_s)

    @property
    def overall(self) -> Pace | None:
        """The pace over all counted windows."""
        if self._counted_steps == 0:
            return None
        return self._pace(self._counted_steps, self._counted_seconds, self._counted_waiting)

    @property
    def median_step_ms(self) -> float | None:
        """The median of the counted windows' mean step times."""
        return statistics.median(self._windows_ms) if self._windows_ms else None

    @property
    def counted_steps(self) -> int:
        """Number of steps in the counted windows."""
        return self._counted_steps

    def _pace(self, steps: int, seconds: float, waiting_s: float) -> Pace:
        return Pace(
            samples_per_second=steps * self._samples / seconds,
            step_ms=1000 * seconds / steps,
            data_ms=1000 * waiting_s / steps,
        )
