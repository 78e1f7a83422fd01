"""Running a command as a child that gets time to save when interrupted."""

import signal
import subprocess
from collections.abc import Sequence
from types import FrameType


def run_child(command: Sequence[str]) -> int:
    """Run a command to its end and return its exit code, negative for a signal.

    `subprocess.run` kills the child a quarter of a second after Ctrl-C, in the middle of
    writing its checkpoint. This function waits for the child, which also gets Ctrl-C from the
    terminal, and passes on a SIGTERM, which reaches only this process. The signal is meant for
    more than this child, so 128 plus the signal is returned, however the child ended.

    Must be called in the main thread, where Python handles signals.
    """
    child: subprocess.Popen[bytes] | None = None
    received: list[int] = []

    def on_signal(number: int, frame: FrameType | None) -> None:
        del frame
        received.append(number)
        if number == signal.SIGTERM and child is not None:
            child.send_signal(number)

    numbers = (signal.SIGINT, signal.SIGTERM)
    previous = {number: signal.signal(number, on_signal) for number in numbers}
    try:
        child = subprocess.Popen(list(command))
        if signal.SIGTERM in received:
            # It came before there was a child to pass it on to.
            child.send_signal(signal.SIGTERM)
        code = child.wait()
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
    return 128 + received[0] if received else code
