"""Patterns for the names of weights, as written in settings: `features.*`, `stem`."""

from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase

from jumar.ground.errors import UserError, did_you_mean


def matches(name: str, pattern: str) -> bool:
    """Whether a name equals a pattern, is nested under it, or matches it with `*` and `?`."""
    return name == pattern or name.startswith(f"{pattern}.") or fnmatchcase(name, pattern)


def matches_any(name: str, patterns: Iterable[str]) -> bool:
    """Whether a name matches one of the patterns."""
    return any(matches(name, pattern) for pattern in patterns)


def check_patterns(patterns: Iterable[str], names: Sequence[str], *, where: str) -> None:
    """Check that every pattern matches a name.

    Args:
        patterns: The patterns.
        names: The names of a network's parameters.
        where: The field with the patterns.

    Raises:
        UserError: A pattern matches nothing; the message suggests the nearest name.
    """
    for pattern in patterns:
        if any(matches(name, pattern) for name in names):
            continue
        parts = list(dict.fromkeys(part for name in names for part in _prefixes(name)))
        hint = did_you_mean(pattern.rstrip(".*"), parts)
        tops = list(dict.fromkeys(name.partition(".")[0] for name in names))
        raise UserError(
            f"the pattern '{pattern}' matches no parameter of the network",
            where=where,
            todo=f"{hint}Its parts: {', '.join(tops[:12])}{', ...' if len(tops) > 12 else ''}.",
        )


def _prefixes(name: str) -> list[str]:
    """The dotted prefixes of a name: `a`, `a.b` and `a.b.c` for `a.b.c`."""
    parts = name.split(".")
    return [".".join(parts[:count]) for count in range(1, len(parts) + 1)]
