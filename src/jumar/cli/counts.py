"""Numbers requested by users: processes, threads, rows to show."""

from typing import Literal

from jumar.ground.errors import UserError
from jumar.ground.machine import checked_count, usable_cores


def check_count(requested: int, option: str) -> None:
    """Check a number of things of which at least one is needed.

    Raises:
        UserError: Less than one.
    """
    if requested < 1:
        raise UserError(f"cannot be {requested}", where=option, todo="Allowed: 1 or more.")


def check_top(top: int) -> None:
    """Check the number of rows to show, where 0 stands for all.

    Raises:
        UserError: It is negative.
    """
    if top < 0:
        raise UserError(f"cannot be {top}", where="--top", todo="Allowed: 0 or more; 0 shows all.")


def checked_workers(requested: int | None, unit: Literal["processes", "threads"]) -> int:
    """Return the valid value of `--workers`; by default one per usable core.

    Raises:
        UserError: Less than one, or more than this machine can handle.
    """
    if requested is None:
        return usable_cores()
    check_count(requested, "--workers")
    return checked_count(requested, unit, "--workers")
