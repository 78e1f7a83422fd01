"""Keeps Ctrl-C from being lost when a library swallows it or raises its own error instead."""

import signal
import sys
from collections.abc import Generator
from contextlib import contextmanager
from threading import Timer, main_thread
from types import FrameType

EXIT_CODE = 128 + signal.SIGINT

_AGAIN_S = 0.01


@contextmanager
def noting_ctrl_c() -> Generator[list[int]]:
    """Within the block, remember SIGINT, and raise it again if it was swallowed.

    torch's C++, when safetensors queries a tensor's shape while reading a file, turns an
    interruption into a ValueError. Python itself drops exceptions raised in a finalizer or a weak
    reference's callback, after printing them.

    Yields:
        The signals received; empty if SIGINT is ignored, as in a background job of a script.
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
        # Not immediately, as it would be dropped again; as a signal, because that ends a sleep.
        timer = Timer(_AGAIN_S, signal.pthread_kill, (main_thread().ident, signal.SIGINT))
        timer.daemon = True
        timer.start()

    signal.signal(signal.SIGINT, on_interrupt)
    sys.unraisablehook = on_unraisable
    try:
        yield interruptions
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        sys.unraisablehook = previous_hook
