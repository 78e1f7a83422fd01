"""Errors that a user can fix.

Every message states what is wrong, where (file, line, field) and what to do. The command line
prints it without a traceback and exits with code 2; any other exception is a bug in jumar and keeps
its traceback.
"""

from collections.abc import Callable, Iterable
from difflib import get_close_matches

EXIT_CODE = 2


class UserError(Exception):
    """An error that the user can fix.

    Args:
        what: What is wrong, including the offending value.
        where: File, line, field or command-line option; empty if `what` already names it.
        todo: What to type, install or check instead.
    """

    def __init__(self, what: str, *, where: str = "", todo: str = "") -> None:
        super().__init__(what, where, todo)
        self.what = what
        self.where = where
        self.todo = todo

    def __reduce__(self) -> tuple[Callable[..., "UserError"], tuple[str, str, str]]:
        return _rebuilt, (self.what, self.where, self.todo)

    def __str__(self) -> str:
        head = f"{self.where}: {self.what}" if self.where else self.what
        return f"{head}\n  {self.todo}" if self.todo else head


def _rebuilt(what: str, where: str, todo: str) -> UserError:
    """Rebuild an unpickled error; pickle passes no keyword arguments."""
    return UserError(what, where=where, todo=todo)


def nearest(name: str, known: Iterable[str]) -> str:
    """Return the known name closest to a misspelt one, or an empty string if none is close."""
    candidates = list(known)
    matches = get_close_matches(name, candidates, n=1, cutoff=0.6)
    if not matches:
        folded = {candidate.lower(): candidate for candidate in candidates}
        matches = [
            folded[match] for match in get_close_matches(name.lower(), folded, n=1, cutoff=0.6)
        ]
    return matches[0] if matches else ""


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return the question that suggests a known name, before further advice; empty if none fits."""
    close = nearest(name, known)
    return f"Did you mean '{close}'? " if close else ""


def unknown_name(kind: str, name: str, known: Iterable[str], *, where: str = "") -> UserError:
    """Return the error for an unknown name, which suggests the nearest and lists all known ones."""
    candidates = sorted(set(known))
    return UserError(
        f"unknown {kind} '{name}'",
        where=where,
        todo=f"{did_you_mean(name, candidates)}Known: {', '.join(candidates)}.",
    )
