"""Running commands as children that get time to save when interrupted."""

import signal
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from types import FrameType

_LOOKS_EVERY_S = 0.05


def run_child(command: Sequence[str]) -> int:
    """Run a command to its end and return its exit code, negative for a signal.

    See `run_children`.
    """
    return run_children([command], at_once=1)[0]


def run_children(
    commands: Sequence[Sequence[str]], *, at_once: int, outputs: Sequence[Path] = ()
) -> list[int]:
    """Run commands to their ends and return their exit codes, negative for a signal.

    `subprocess.run` kills the child a quarter of a second after Ctrl-C, in the middle of
    writing its checkpoint. This function waits for the children, which also get Ctrl-C from the
    terminal, and passes on a SIGTERM, which reaches only this process. The signal is meant for
    more than these children, so 128 plus the signal is returned for all, however they ended, and
    none is started any more.

    Must be called in the main thread, where Python handles signals.

    Args:
        commands: The commands.
        at_once: How many run side by side.
        outputs: A file for all that each command prints; none to print it here.
    """
    running: dict[int, subprocess.Popen[bytes]] = {}
    codes: dict[int, int] = {}
    received: list[int] = []

    def on_signal(number: int, frame: FrameType | None) -> None:
        del frame
        received.append(number)
        if number == signal.SIGTERM:
            for child in list(running.values()):
                child.send_signal(number)

    numbers = (signal.SIGINT, signal.SIGTERM)
    previous = {number: signal.signal(number, on_signal) for number in numbers}
    try:
        waiting = list(range(len(commands)))
        while running or (waiting and not received):
            while waiting and len(running) < at_once and not received:
                place = waiting.pop(0)
                running[place] = _started(commands[place], outputs[place] if outputs else None)
                if signal.SIGTERM in received:
                    # It came before there was a child to pass it on to.
                    running[place].send_signal(signal.SIGTERM)
            _wait(running)
            for place, child in list(running.items()):
                if child.poll() is not None:
                    codes[place] = child.returncode
                    del running[place]
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
    if received:
        return [128 + received[0]] * len(commands)
    return [codes[place] for place in range(len(commands))]


def _started(command: Sequence[str], output: Path | None) -> subprocess.Popen[bytes]:
    if output is None:
        return subprocess.Popen(list(command))
    with output.open("ab") as file:
        return subprocess.Popen(list(command), stdout=file, stderr=subprocess.STDOUT)


def _wait(running: dict[int, subprocess.Popen[bytes]]) -> None:
    """Wait until a child may have ended."""
    if len(running) == 1:
        next(iter(running.values())).wait()
    else:
        time.sleep(_LOOKS_EVERY_S)
