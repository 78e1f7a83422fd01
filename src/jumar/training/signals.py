"""Ctrl-C and SIGTERM: finish the step, save, and print how to resume."""

import signal
from collections.abc import Generator
from contextlib import contextmanager
from types import FrameType


class StopRequest:
    """A possible request to stop the run: true once a signal has arrived."""

    def __init__(self) -> None:
        self.signal = 0

    def __bool__(self) -> bool:
        return self.signal != 0

    @property
    def exit_code(self) -> int:
        """The exit code that shells use for a process ended by this signal."""
        return 128 + self.signal


@contextmanager
def listening() -> Generator[StopRequest]:
    """Turn the first SIGINT or SIGTERM into a request; a second one ends the process at once.

    A signal that the process was started to ignore (as a script's background job) stays ignored.
    """
    request = StopRequest()
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    previous = {n: handler for n, handler in handlers.items() if handler is not signal.SIG_IGN}

    def on_signal(number: int, frame: FrameType | None) -> None:
        del frame
        request.signal = number
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)

    try:
        for number in previous:
            signal.signal(number, on_signal)
        yield request
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
