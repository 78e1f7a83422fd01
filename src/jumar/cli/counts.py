"""Numbers of processes and threads that users give."""

from typing import Literal

from jumar.ground.errors import UserError
from jumar.ground.machine import checked_count, usable_cores


def checked_workers(requested: int | None, what: Literal["processes", "threads"]) -> int:
    """The number given by `--workers`; one per usable core by default.

    Raises:
        UserError: Less than one, or more than this machine can handle.
    """
    if requested is None:
        return usable_cores()
    if requested < 1:
        raise UserError(f"{requested} {what}", where="--workers", todo="1 or more.")
    return checked_count(requested, what, "--workers")
