"""The time limit of a tuning."""

import time
from collections.abc import Callable


class Clock:
    """Measures elapsed and remaining time.

    Args:
        seconds: Time limit.
        now: A monotonic clock, in seconds.
    """

    def __init__(self, seconds: float, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._begun = now()
        self._seconds = seconds

    def remaining(self) -> float:
        """Return the remaining seconds; negative after the time limit."""
        return self._seconds - self.elapsed()

    def elapsed(self) -> float:
        """Return the elapsed seconds."""
        return self._now() - self._begun
