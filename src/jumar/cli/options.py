"""Options shared by several commands, and rules for all options."""

import math
from typing import Annotated, Any

from cyclopts import Group, Parameter

SetOption = Annotated[tuple[str, ...], Parameter(name="--set", metavar="FIELD=VALUE")]
ImportOption = Annotated[tuple[str, ...], Parameter(name="--import", metavar="MODULE")]
TrackOption = Annotated[tuple[str, ...], Parameter(metavar="TRACKER")]
ModeOption = Annotated[str, Parameter(metavar="MODE")]
DeviceOption = Annotated[str, Parameter(metavar="DEVICE")]
OnOption = Annotated[str, Parameter(metavar="PLACE")]
EmaOption = Annotated[bool, Parameter(negative="--no-ema")]
CheckpointOption = Annotated[str, Parameter(metavar="CHECKPOINT")]
JsonFlag = Annotated[bool, Parameter(name="--json")]

OPTIONS = Group("Options")
_MAX_INTEGER = 2**63 - 1


def shown_default(value: object) -> str | None:
    """Return an option's default for its help page; None if it is obvious.

    Obvious defaults are flags that are off, empty lists and empty strings.
    """
    if value is None or value is False or value in ((), ""):
        return None
    return "on" if value is True else str(value)


def check_number(_: Any, value: Any) -> None:
    """Check that a number on the command line can be stored in files and tensors.

    Raises:
        ValueError: It is NaN, infinite, or has more than 63 bits; the parser names the option.
    """
    for number in value if isinstance(value, tuple) else (value,):
        if isinstance(number, float) and not math.isfinite(number):
            raise ValueError(f"{number} is not a finite number.")
        if isinstance(number, int) and abs(number) > _MAX_INTEGER:
            raise ValueError(f"At most {_MAX_INTEGER}.")


EVERY_OPTION = Parameter(
    negative=(), consume_multiple=False, show_default=shown_default, validator=check_number
)
"""Rules for all options: no `--no-` or `--empty-` form unless an option names one."""
