"""Options shared by several commands, with their explanations, and rules for all options.

An explanation here takes precedence over the docstring of a command. A command that needs another
one gives it with the type: `Annotated[JsonFlag, Parameter(help="Print everything as JSON.")]`.
"""

import math
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Group, Parameter

SetOption = Annotated[tuple[str, ...], Parameter(name="--set", metavar="FIELD=VALUE")]
ImportOption = Annotated[
    tuple[str, ...],
    Parameter(
        name="--import",
        metavar="MODULE",
        help="First import your own module that registers recipes, networks or data sources.",
    ),
]
RunImportOption = Annotated[
    ImportOption,
    Parameter(help="Import your own module first; name all modules that the run was trained with."),
]
ModeOption = Annotated[str, Parameter(metavar="MODE")]
DeviceOption = Annotated[
    str,
    Parameter(metavar="DEVICE", help="auto, cpu, cuda, npu, or a particular one such as `npu:1`."),
]
OnOption = Annotated[str, Parameter(metavar="PLACE")]
EmaOption = Annotated[
    bool,
    Parameter(
        negative="--no-ema", help="Use the averaged (EMA) weights if the checkpoint has them."
    ),
]
CheckpointOption = Annotated[
    str,
    Parameter(metavar="CHECKPOINT", help="last, best, or the number of steps of a checkpoint."),
]
JsonFlag = Annotated[bool, Parameter(name="--json", help="Print JSON.")]
Token = Annotated[str, Parameter(allow_leading_hyphen=True)]
"""An argument that may begin with a hyphen, which otherwise begins an option."""
RunArgument = Annotated[Path, Parameter(help="The run directory.")]
RecipeOrRun = Annotated[
    str, Parameter(name="RECIPE|RUN", help="Name of a recipe, or a run directory.")
]

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


def repeated(option: str, values: Iterable[str]) -> list[str]:
    """Return the part of a command line that gives an option once for each value."""
    return [token for value in values for token in (option, value)]


EVERY_OPTION = Parameter(
    negative=(), consume_multiple=False, show_default=shown_default, validator=check_number
)
"""Rules for all options: no `--no-` or `--empty-` form unless an option names one."""
