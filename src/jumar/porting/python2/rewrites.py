"""The changes that a conversion makes in a Python 2 source, by span."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Change:
    """New text for a span of the source, in characters."""

    start: int
    end: int
    text: str


@dataclass(frozen=True, kw_only=True)
class Rewrite:
    """One statement or expression with its changes."""

    rule: str
    start: int
    end: int
    changes: tuple[Change, ...]


def by_place(change: Change) -> tuple[int, int]:
    """A key that sorts changes in the order of the text."""
    return change.start, change.end


def applied(text: str, changes: Sequence[Change]) -> str:
    """The text with changes that do not overlap."""
    parts: list[str] = []
    position = 0
    for change in sorted(changes, key=by_place):
        parts += [text[position : change.start], change.text]
        position = change.end
    return "".join([*parts, text[position:]])
