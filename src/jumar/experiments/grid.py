"""The grid of a sweep: combinations of values, their order and names."""

import hashlib
import itertools
import math
import re
from collections.abc import Sequence

from jumar.ground.errors import UserError

_OPTION = "--vary"
MAX_RUNS = 10_000
"""Maximum number of runs in one sweep: longer tables are unreadable."""
_LONGEST_NAME = 120
"""File systems allow 255 bytes per name, and temporary files have longer names than this."""


def parse_vary(vary: Sequence[str], *, where: str = _OPTION) -> list[list[str]]:
    """Every combination of the varied values, as assignments of one run.

    The first field varies slowest. A comma separates values, except within brackets, where it
    separates the items of a list: `a.b=[1,2],[3,4]` has two values.

    Args:
        vary: `section.field=value,value,...`, one item per field.
        where: The option that error messages name.

    Returns:
        Assignments of each combination in the order of `vary`; one empty combination when
        nothing is varied.

    Raises:
        UserError: No `=`, an empty or repeated value, the same field twice, or too many
            combinations.
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
    """The value of `section.field=value`."""
    return assignment.partition("=")[2].strip()


def run_name(assignments: Sequence[str]) -> str:
    """The name of a run's directory: its assignments, within the limits of file systems.

    The same assignments have the same name in every sweep. If a character had to be replaced or
    the name cut, part of a digest keeps different assignments apart.
    """
    if not assignments:
        return "run"
    full_name = ",".join(assignments)
    safe = re.sub(r"[^A-Za-z0-9._=,+-]", "-", full_name)
    if safe == full_name and len(safe) <= _LONGEST_NAME and not safe.startswith((".", "-")):
        return safe
    digest = hashlib.sha256(full_name.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    stem = safe.lstrip(".-")[: _LONGEST_NAME - 9] or "run"
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
            todo=f"Write values with one comma between them and no space: {where} {field}=1,2",
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
    """The values between commas outside brackets."""
    values, depth = [""], 0
    for character in text:
        depth += (character in "[(") - (character in "])")
        if character == "," and depth <= 0:
            values.append("")
        else:
            values[-1] += character
    return values
