"""Load, memory, temperature and power of a device, read during training."""

import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from jumar.ground.text import first_line

_TIMEOUT_S = 20.0
"""npu-smi takes seconds while a driver is busy, and hangs with some broken drivers."""


@dataclass(frozen=True, kw_only=True)
class DeviceLoad:
    """One reading; None for values that the device does not report.

    Attributes:
        busy_percent: Percentage of the time during which it computed; on a CPU, the share of its
            usable cores' time that this process used since the previous reading.
        memory_used_bytes: Memory in use, by all processes on an accelerator, by this process on a
            CPU.
        memory_total_bytes: Total memory.
        power_w: Power draw.
        temperature_c: Temperature of its hottest sensor.
    """

    busy_percent: float | None = None
    memory_used_bytes: float | None = None
    memory_total_bytes: float | None = None
    power_w: float | None = None
    temperature_c: float | None = None


class UnreadableLoadError(Exception):
    """A device's load cannot be read; the message says why."""


class LoadMeter(Protocol):
    """Reads the load of one device, in its own thread."""

    def read(self) -> DeviceLoad:
        """The current load.

        Raises:
            UnreadableLoadError: It cannot be read, and later attempts would fail too.
        """
        ...


class NoMeter:
    """The meter of a device whose load cannot be read.

    Args:
        why: The reason.
    """

    def __init__(self, why: str) -> None:
        self._why = why

    def read(self) -> DeviceLoad:
        """See `LoadMeter.read`."""
        raise UnreadableLoadError(self._why)


def output_of(command: Sequence[str]) -> str:
    """The output of a vendor's program.

    Raises:
        UnreadableLoadError: The program is missing, fails, or does not answer.
    """
    name = command[0]
    if shutil.which(name) is None:
        raise UnreadableLoadError(f"{name} is not installed")
    try:
        done = subprocess.run(
            command, capture_output=True, check=False, timeout=_TIMEOUT_S, stdin=subprocess.DEVNULL
        )
    except subprocess.TimeoutExpired:
        raise UnreadableLoadError(f"{name} did not answer within {_TIMEOUT_S:.0f} s") from None
    except OSError as error:
        raise UnreadableLoadError(f"{name} cannot be started: {error.strerror}") from None
    text = done.stdout.decode("utf-8", "replace")
    if done.returncode:
        reason = first_line(done.stderr.decode("utf-8", "replace") or text)
        suffix = f": {reason}" if reason else ""
        raise UnreadableLoadError(f"{name} failed with exit code {done.returncode}{suffix}")
    return text


def number_in(text: str) -> float | None:
    """The number at the start of a field in such output; None for `NA`, `-` or `[N/A]`."""
    try:
        return float(text.split()[0])
    except (ValueError, IndexError):
        return None
