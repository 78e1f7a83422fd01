"""Counts unreadable parts of a file, and lists the first few with location and text."""

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from jumar.ground.text import counted
from jumar.profiling.profile import Missing
from jumar.profiling.reading.exact import NO_VALUE, nanoseconds_of

WITHOUT_BREAK: Final = "the last line has no line break"
"""Not a sign of truncation: files saved by an editor may lack the last line break too."""
UNREADABLE: Final = "cannot be read: "
"""The beginning of the note on a file or folder of which nothing could be read."""
_END: Final = "the end: "
_DROPPED: Final = "dropped"
_DROPPED_LINES: Final = re.compile(rf"\d+ lines? {_DROPPED}: ")
_MAX_LISTED: Final = 3
_MAX_CHARACTERS: Final = 40


class Unreadable:
    """Counts fields that should contain a number but do not, and dropped lines.

    Args:
        display_name: The file, for messages.
    """

    def __init__(self, display_name: str) -> None:
        self._display_name = display_name
        self._numbers: list[str] = []
        self._lines: list[str] = []
        self._count_numbers = 0
        self._count_lines = 0
        self._end = ""

    def count_number(self, location: Callable[[], str], text: object) -> None:
        """Count a field that should contain a number but does not.

        Args:
            location: Returns the location, such as line and column; called for the first few only.
            text: The text of the field.
        """
        self._count_numbers += 1
        if len(self._numbers) < _MAX_LISTED:
            self._numbers.append(f"{location()}: {str(text)[:_MAX_CHARACTERS]!r}")

    def nanoseconds(self, value: object, unit: str, location: Callable[[], str]) -> int | None:
        """`nanoseconds_of`, which also counts values that are not numbers."""
        time = nanoseconds_of(value, unit)
        if time is None and value is not None and str(value).strip() not in NO_VALUE:
            self.count_number(location, value)
        return time

    def count_line(self, number: int, reason: str) -> None:
        """Count a dropped line."""
        self._count_lines += 1
        if len(self._lines) < _MAX_LISTED:
            self._lines.append(f"line {number} {reason}")

    def note_end(self, reason: str) -> None:
        """Note why the file could not be read to its end; the first reason is kept."""
        self._end = self._end or reason

    def missing(self) -> tuple[Missing, ...]:
        """The counts and reasons as entries of `Profile.missing`."""
        descriptions: list[str] = []
        for count, noun, what, listed in (
            (self._count_lines, "line", _DROPPED, self._lines),
            (self._count_numbers, "number", "cannot be read", self._numbers),
        ):
            if count:
                more = f"; and {count - len(listed)} more" if count > len(listed) else ""
                descriptions.append(f"{counted(count, noun)} {what}: {'; '.join(listed)}{more}")
        if self._end:
            descriptions.append(f"{_END}{self._end}")
        return tuple(Missing(file=self._display_name, what=what) for what in descriptions)


def lost_part(gap: Missing) -> str:
    """The part of a file that was not read: `all`, its `end` or some `lines`; empty if none."""
    if gap.what.startswith(UNREADABLE):
        return "all"
    if gap.what.startswith(_END):
        return "" if gap.what.startswith(_END + WITHOUT_BREAK) else "end"
    return "lines" if _DROPPED_LINES.match(gap.what) else ""


def span_of(
    event: Mapping[str, Any], unreadable: Unreadable, *, default_duration: object = None
) -> tuple[int, int] | None:
    """Start and duration of a trace slice; None if either is invalid.

    Args:
        event: The event; its times are in microseconds, as numbers or text.
        unreadable: Counts the slices that are dropped.
        default_duration: The duration of a slice that has none; None to drop such slices.
    """
    start = nanoseconds_of(event.get("ts"))
    duration = nanoseconds_of(event.get("dur", default_duration))
    if start is not None and duration is not None and duration >= 0:
        return start, duration
    field = "ts" if start is None else "dur"
    name = str(event.get("name", ""))[:_MAX_CHARACTERS]
    unreadable.count_number(lambda: f"event '{name}', {field}", event.get(field))
    return None
