"""Numbers of processes and threads requested by users."""

from typing import Literal

from jumar.ground.errors import UserError
from jumar.ground.machine import checked_count, usable_cores


def checked_workers(requested: int | None, unit: Literal["processes", "threads"]) -> int:
    """Return the valid value of `--workers`; by default one per usable core.

    Raises:
        UserError: Less than one, or more than this machine can handle.
    """
    if requested is None:
        return usable_cores()
    if requested < 1:
        raise UserError(f"cannot be {requested}", where="--workers", todo="Allowed: 1 or more.")
    return checked_count(requested, unit, "--workers")
