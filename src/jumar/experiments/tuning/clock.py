"""The time limit of a tuning."""

import time
from collections.abc import Callable


class Clock:
    """Counts down.

    Args:
        seconds: Time limit.
        now: A monotonic clock, in seconds.
    """

    def __init__(self, seconds: float, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._begun = now()
        self._seconds = seconds

    def left(self) -> float:
        """Seconds left; negative when the time is over."""
        return self._seconds - self.elapsed()

    def elapsed(self) -> float:
        """Elapsed seconds."""
        return self._now() - self._begun
