"""Unusable parts of a file: counted, the first few named with location and text."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from jumar.ground.text import counted
from jumar.profiling.profile import Missing
from jumar.profiling.reading.exact import NO_VALUE, nanoseconds_of

_NAMED: Final = 3
_LONGEST: Final = 40


class Unreadable:
    """Counts fields without a number, and incomplete lines.

    Args:
        shown: The file, for messages.
    """

    def __init__(self, shown: str) -> None:
        self._shown = shown
        self._numbers: list[str] = []
        self._lines: list[str] = []
        self._count_numbers = 0
        self._count_lines = 0
        self._end = ""

    def number(self, place: Callable[[], str], text: object) -> None:
        """A field that should hold a number.

        Args:
            place: Line and column, event, or table, row and column; called for the first few only.
            text: The text found there.
        """
        self._count_numbers += 1
        if len(self._numbers) < _NAMED:
            self._numbers.append(f"{place()}: {str(text)[:_LONGEST]!r}")

    def nanoseconds(self, value: object, unit: str, place: Callable[[], str]) -> int | None:
        """`nanoseconds_of`, counting values that are not numbers."""
        time = nanoseconds_of(value, unit)
        if time is None and value is not None and str(value).strip() not in NO_VALUE:
            self.number(place, value)
        return time

    def line(self, number: int, reason: str) -> None:
        """A line that is dropped."""
        self._count_lines += 1
        if len(self._lines) < _NAMED:
            self._lines.append(f"line {number} {reason}")

    def end(self, reason: str) -> None:
        """The file could not be read to its end; the first reason is kept."""
        self._end = self._end or reason

    def missing(self) -> tuple[Missing, ...]:
        """The gaps as the profile lists them."""
        descriptions: list[str] = []
        if self._count_lines:
            named = _listed(self._lines, self._count_lines)
            descriptions.append(f"{counted(self._count_lines, 'line')} left out: {named}")
        if self._count_numbers:
            named = _listed(self._numbers, self._count_numbers)
            descriptions.append(f"{counted(self._count_numbers, 'number')} cannot be read: {named}")
        if self._end:
            descriptions.append(f"the end: {self._end}")
        return tuple(Missing(file=self._shown, what=what) for what in descriptions)


def span_of(
    event: Mapping[str, Any], unreadable: Unreadable, *, shortest: object = None
) -> tuple[int, int] | None:
    """Start and duration of a trace slice; None if one is not a number or negative.

    Args:
        event: Times in microseconds, as numbers or text.
        unreadable: Counts those that are left out.
        shortest: The duration of one that says none; None to leave it out.
    """
    start, duration = nanoseconds_of(event.get("ts")), nanoseconds_of(event.get("dur", shortest))
    if start is not None and duration is not None and duration >= 0:
        return start, duration
    field = "ts" if start is None else "dur"
    name = str(event.get("name", ""))[:_LONGEST]
    unreadable.number(lambda: f"event '{name}', {field}", event.get(field))
    return None


def _listed(named: Sequence[str], count: int) -> str:
    return "; ".join(named) + (f"; and {count - len(named)} more" if count > len(named) else "")
