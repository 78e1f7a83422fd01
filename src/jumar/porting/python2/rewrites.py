"""What a conversion changes in a source of Python 2, by span."""

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
