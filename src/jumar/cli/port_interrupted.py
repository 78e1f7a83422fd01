"""Ctrl-C and SIGTERM during a port: clean up, and say whether anything was written."""

import signal
import threading
from collections.abc import Callable
from types import FrameType

from jumar.ground.text import print_aside


class Progress:
    """What a port has written so far."""

    def __init__(self) -> None:
        self._places: list[str] = []

    def note(self, place: object) -> None:
        """Record that something was written completely."""
        self._places.append(str(place))

    def __str__(self) -> str:
        return (
            f"already written: {', '.join(self._places)}" if self._places else "nothing was written"
        )


def until_interrupted(work: Callable[[Progress], int]) -> int:
    """Return the exit code of the work; after a signal, what shells use for it.

    SIGTERM is raised as KeyboardInterrupt too, since temporary files are to be removed. If the
    process was started to ignore it, it stays ignored.
    """
    progress = Progress()
    received: list[int] = []

    def on_terminate(number: int, frame: FrameType | None) -> None:
        del frame
        received.append(number)
        raise KeyboardInterrupt

    on_main_thread = threading.current_thread() is threading.main_thread()
    listens = on_main_thread and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    if listens:
        signal.signal(signal.SIGTERM, on_terminate)
    try:
        return work(progress)
    except KeyboardInterrupt:
        print_aside(f"jumar: interrupted: {progress}")
        return 128 + (received[0] if received else signal.SIGINT)
    finally:
        if listens:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
