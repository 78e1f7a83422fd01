"""What parts and their measurements are, and what a measurement is given."""

import importlib
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from jumar.devices.contract import Device
from jumar.devices.registry import open_device

T = TypeVar("T")
Row = Mapping[str, Any]
"""A line of a table: texts and numbers by name."""


@dataclass(frozen=True, kw_only=True)
class Context:
    """What a measurement is given.

    Attributes:
        device: The value of `--device`.
        small: Whether everything is as small as it can be, for a CPU.
        out: Where files to bring back go.
        work: Where written data and runs go, which stay from one call to the next.
        data: Folder with real data sets, if one was given.
        deadline: When to stop, as `time.time()` counts.
        rates: The measured peak rates of the device; empty until they are measured.
    """

    device: str
    small: bool
    out: Path
    work: Path
    data: Path | None
    deadline: float
    rates: Mapping[str, float] = field(default_factory=dict[str, float])

    @property
    def seconds_left(self) -> float:
        """Seconds until the deadline."""
        return self.deadline - time.time()

    def pick(self, full: T, small: T) -> T:
        """The value for a whole measurement, or for a small one."""
        return small if self.small else full

    def open(self) -> Device:
        """Select the device; only a process that measures does."""
        return open_device(self.device)


@dataclass(frozen=True, kw_only=True)
class Measurement:
    """One entry of a part.

    Attributes:
        name: Unique in its part.
        measure: Returns the rows; runs in a process that is forked for it and has not used the
            device before.
        seconds: An estimate for an accelerator, corrected by the measurements already made.
        is_slice: Whether it uses whatever time is left, of which `seconds` are the least.
        is_later: Whether it comes after what all parts measure first.
    """

    name: str
    measure: Callable[[Context], Sequence[Row]]
    seconds: float
    is_slice: bool = False
    is_later: bool = False


@dataclass(frozen=True, kw_only=True)
class Part:
    """A group of measurements.

    Attributes:
        name: For `--part`.
        title: Its heading.
        module: Has `measurements(context)`.
    """

    name: str
    title: str
    module: str

    def measurements(self, context: Context) -> Sequence[Measurement]:
        """What it measures, the most valuable first; nothing is computed yet."""
        return importlib.import_module(self.module).measurements(context)


class Missing(Exception):
    """What a measurement needs is not on this machine; the message says what."""


class GoesOn(Exception):
    """The time is up, and the next call goes on from here.

    Args:
        rows: What there is so far.
    """

    def __init__(self, rows: Sequence[Row]) -> None:
        super().__init__("goes on in the next call")
        self.rows = rows


class Failed(Exception):
    """Something went wrong that leaves rows to show.

    Args:
        rows: What there is.
        reason: What went wrong.
    """

    def __init__(self, rows: Sequence[Row], reason: str) -> None:
        super().__init__(reason)
        self.rows = rows
