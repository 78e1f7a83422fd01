"""The grid of a sweep: combinations of values, their order and their runs' names."""

import hashlib
import itertools
import math
import re
from collections.abc import Sequence

from jumar.ground.errors import UserError

_OPTION = "--vary"
MAX_RUNS = 10_000
"""Maximum number of runs in one sweep: longer tables are unreadable."""
_MAX_NAME_LENGTH = 120
"""File systems allow 255 bytes per name, and temporary files have longer names than this."""


def parse_vary(vary: Sequence[str], *, where: str = _OPTION) -> list[list[str]]:
    """Return every combination of the varied values, as the assignments of a run.

    The first field varies slowest. A comma separates values, except within brackets, where it
    separates the items of a list: `a.b=[1,2],[3,4]` has two values.

    Args:
        vary: `section.field=value,value,...`, one item per field.
        where: The option that error messages name.

    Returns:
        The assignments of each combination, in the order of `vary`; one empty combination if
        nothing is varied.

    Raises:
        UserError: An item has no `=` or an empty or repeated value, a field is repeated, or there
            are too many combinations.
    """
    axes: list[list[str]] = []
    varied_fields: set[str] = set()
    for item in vary:
        field, values = _axis(item, where)
        if field in varied_fields:
            raise UserError(
                f"'{field}' is varied twice",
                where=where,
                todo=f"Give all of its values at once: {where} {field}={values[0]},...",
            )
        varied_fields.add(field)
        axes.append([f"{field}={value}" for value in values])
    count = math.prod(map(len, axes))
    if count > MAX_RUNS:  # before creating them: a million combinations take gigabytes
        raise UserError(
            f"{count} combinations are too many",
            where=where,
            todo=f"At most {MAX_RUNS}: vary fewer fields or fewer values.",
        )
    return [list(combination) for combination in itertools.product(*axes)]


def value_of(assignment: str) -> str:
    """Return the value of `section.field=value`."""
    return assignment.partition("=")[2].strip()


def train_options(imports: Sequence[str], assignments: Sequence[str]) -> list[str]:
    """Return the options of `jumar train` that import modules and set fields."""
    options = [("--import", module) for module in imports]
    options += [("--set", assignment) for assignment in assignments]
    return [token for option in options for token in option]


def run_name(assignments: Sequence[str]) -> str:
    """Return the name of a run's directory: its assignments, within the limits of file systems.

    The same assignments have the same name in every sweep. If a character has to be replaced or
    the name shortened, part of a digest distinguishes different assignments.
    """
    if not assignments:
        return "run"
    full_name = ",".join(assignments)
    safe = re.sub(r"[^A-Za-z0-9._=,+-]", "-", full_name)
    if safe == full_name and len(safe) <= _MAX_NAME_LENGTH and not safe.startswith((".", "-")):
        return safe
    digest = hashlib.sha256(full_name.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    stem = safe.lstrip(".-")[: _MAX_NAME_LENGTH - 9] or "run"
    return f"{stem}-{digest}"


def _axis(item: str, where: str) -> tuple[str, list[str]]:
    field, equals, text = item.partition("=")
    field = field.strip()
    if not equals or not field:
        raise UserError(
            f"'{item}' is not of the form section.field=value,value",
            where=where,
            todo=f"For instance: {where} precision.mode=allow_mix_precision,force_fp16",
        )
    values = [value.strip() for value in _split(text)]
    if "" in values:
        raise UserError(
            f"'{item}' has an empty value",
            where=where,
            todo=f"Separate values by single commas without spaces: {where} {field}=1,2",
        )
    repeated_value = next((value for value in values if values.count(value) > 1), None)
    if repeated_value is not None:
        raise UserError(
            f"'{field}' has the value '{repeated_value}' twice",
            where=where,
            todo="Give each value once; --repeats N runs every combination with N seeds.",
        )
    return field, values


def _split(text: str) -> list[str]:
    """Split a text at commas outside brackets."""
    values, depth = [""], 0
    for character in text:
        depth += (character in "[(") - (character in "])")
        if character == "," and depth <= 0:
            values.append("")
        else:
            values[-1] += character
    return values
