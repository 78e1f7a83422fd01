"""The content of a job's logs: its faults, each with the first line that reports it."""

from dataclasses import dataclass, field
from datetime import datetime

from jumar.failures.table import Fault
from jumar.failures.waiting import Waits


@dataclass(kw_only=True)
class Sighting:
    """The first occurrence of a fault for one rank or process of one file.

    Args:
        fault: The fault.
        file: Display name of the log.
        source: Index of the log.
        line: Line number in that log, from 1.
        text: The line.
        order: Number of lines read so far, over all logs.
        time: The timestamp of the line, or the latest one before it.
        rank: The rank that wrote it.
        pid: The process that wrote it.
        device: The device that the line names.
        host: The node that the line names.
        frame: The line of the script, from a traceback above it.
        blamed: The rank that the line itself blames.
        says: The message of the exception or of CANN, if only that explains the fault.
        survived: Whether the program only warned of it, or Python ignored the exception.
        raised: Whether the line is an exception or an error, not another message that mentions it.
        traced: Whether the frames of a traceback are above it.
        progress: Number of lines of the log above it that report a loss.
        informed: A counter that increases with lines that report the activity of the program.
        count: Number of lines that report it.
    """

    fault: Fault
    file: str
    source: int
    line: int
    text: str
    order: int
    time: datetime | None = None
    rank: int | None = None
    pid: int | None = None
    device: int | None = None
    host: str = ""
    frame: str = ""
    blamed: int | None = None
    says: str = ""
    survived: bool = False
    raised: bool = True
    traced: bool = False
    progress: int = 0
    informed: int = 0
    count: int = 1


@dataclass(kw_only=True)
class ErrorLine:
    """A line that looks like an error, for logs in which nothing is recognised."""

    file: str
    line: int
    text: str


@dataclass(kw_only=True)
class Job:
    """The content of a job's logs."""

    sightings: list[Sighting] = field(default_factory=list[Sighting])
    waits: Waits = field(default_factory=Waits)
    files: list[str] = field(default_factory=list[str])
    unread: dict[str, str] = field(default_factory=dict[str, str])
    lines: int = 0
    ranks: set[int] = field(default_factory=set[int])
    world: int = 0
    errors: list[ErrorLine] = field(default_factory=list[ErrorLine])


def fill_times(sightings: list[Sighting]) -> None:
    """Assign the first time in a log to earlier lines, which are no later than that."""
    firsts: dict[int, datetime] = {}
    for sighting in sightings:
        time = sighting.time
        if time is not None and time < firsts.get(sighting.source, datetime.max):
            firsts[sighting.source] = time
    for sighting in sightings:
        sighting.time = sighting.time or firsts.get(sighting.source)


def in_year(time: datetime, year: int) -> datetime:
    try:
        return time.replace(year=year)
    except ValueError:  # 29 February
        return time
