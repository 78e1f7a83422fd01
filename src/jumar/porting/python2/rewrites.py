"""The changes of a conversion, as spans of the Python 2 source."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Change:
    """New text for a span of the source; offsets are in characters."""

    start: int
    end: int
    text: str


@dataclass(frozen=True, kw_only=True)
class Rewrite:
    """A statement or expression with its changes."""

    rule: str
    start: int
    end: int
    changes: tuple[Change, ...]


def by_position(change: Change) -> tuple[int, int]:
    """The sort key that orders changes by position."""
    return change.start, change.end


def applied(text: str, changes: Sequence[Change]) -> str:
    """Apply changes that do not overlap to a text."""
    parts: list[str] = []
    position = 0
    for change in sorted(changes, key=by_position):
        parts += [text[position : change.start], change.text]
        position = change.end
    return "".join([*parts, text[position:]])
