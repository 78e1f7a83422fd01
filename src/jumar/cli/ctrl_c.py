"""Prevent the loss of Ctrl-C when a library swallows it or raises its own error instead."""

import signal
import sys
from collections.abc import Generator
from contextlib import contextmanager
from threading import Timer, main_thread
from types import FrameType

EXIT_CODE = 128 + signal.SIGINT

_RETRY_DELAY_S = 0.01


@contextmanager
def noting_ctrl_c() -> Generator[list[int]]:
    """Record SIGINT within the block, and raise it again if it was swallowed.

    When safetensors queries a tensor's shape while reading a file, torch's C++ code turns an
    interruption into a ValueError. Python itself prints and drops exceptions raised in finalizers
    and in callbacks of weak references.

    Yields:
        The received signals; always empty if SIGINT is ignored, as in a script's background job.
    """
    interruptions: list[int] = []
    if signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield interruptions
        return
    previous_hook = sys.unraisablehook

    def on_interrupt(number: int, frame: FrameType | None) -> None:
        interruptions.append(number)
        signal.default_int_handler(number, frame)

    def on_unraisable(dropped: "sys.UnraisableHookArgs") -> None:
        if not issubclass(dropped.exc_type, KeyboardInterrupt):
            previous_hook(dropped)
            return
        # With a delay, since it would be dropped again now; as a signal, since that ends a sleep.
        timer = Timer(_RETRY_DELAY_S, signal.pthread_kill, (main_thread().ident, signal.SIGINT))
        timer.daemon = True
        timer.start()

    signal.signal(signal.SIGINT, on_interrupt)
    sys.unraisablehook = on_unraisable
    try:
        yield interruptions
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        sys.unraisablehook = previous_hook
