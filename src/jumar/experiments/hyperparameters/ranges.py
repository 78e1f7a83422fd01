"""The ranges of a search: `--range optimizer.learning_rate=1e-4:1e-1:log`."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from jumar.experiments.grid import parse_vary
from jumar.ground.errors import UserError
from jumar.ground.json_text import flattened

OPTION = "--range"
_LOG = "log"
_DIGITS = 4
"""Significant digits of sampled numbers; more would only lengthen the commands."""

Resolve = Callable[[Sequence[str]], Mapping[str, Any]]
"""Returns the recipe's settings after assignments, as JSON types; raises `UserError`."""


@dataclass(frozen=True, kw_only=True)
class Choices:
    """A field with a list of possible values.

    Attributes:
        field: The field.
        values: The values as written.
    """

    field: str
    values: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Interval:
    """A field with an interval of possible numbers.

    Attributes:
        field: The field.
        low: The smallest number.
        high: The largest number.
        is_log: Whether to sample on a logarithmic scale.
        is_whole: Whether the field is an integer.
    """

    field: str
    low: float
    high: float
    is_log: bool
    is_whole: bool

    def text_of(self, number: float) -> str:
        """Return a sampled number as it is assigned to the field, within the interval."""
        if self.is_whole:
            return str(int(number))
        rounded = float(f"{number:.{_DIGITS}g}")
        return repr(min(max(rounded, self.low), self.high))


Range = Choices | Interval


def parse_ranges(texts: Sequence[str], resolve: Resolve) -> list[Range]:
    """Parse the ranges and check their bounds, or every value, against the recipe.

    Args:
        texts: `section.field=low:high`, `section.field=low:high:log` or
            `section.field=value,value,...`, one per field.
        resolve: Returns the recipe's settings after assignments.

    Raises:
        UserError: A field is unknown or repeated, does not accept the values, or has a range that
            is empty or, with `log`, not positive.
    """
    if not texts:
        raise UserError(
            "the fields to search are missing",
            where=OPTION,
            todo=f"For instance: {OPTION} optimizer.learning_rate=1e-4:1e-1:log",
        )
    ranges = [_parsed(text, resolve) for text in texts]
    names = [item.field for item in ranges]
    repeated_name = next((name for name in names if names.count(name) > 1), None)
    if repeated_name is not None:
        raise UserError(f"'{repeated_name}' has two ranges", where=OPTION, todo="Give one.")
    for item in ranges:
        values = item.values if isinstance(item, Choices) else _bounds(item)
        for value in values:
            resolve([f"{item.field}={value}"])
    return ranges


def own_values(ranges: Sequence[Range], settings: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the recipe's own values of the fields; None if one is out of range."""
    flat = flattened(settings)
    values: dict[str, Any] = {}
    for item in ranges:
        own_value = flat[item.field]
        if isinstance(item, Interval):
            is_within = own_value is not None and item.low <= own_value <= item.high
            values[item.field] = own_value if is_within else None
        else:
            values[item.field] = next(
                (text for text in item.values if _is_same(text, own_value)), None
            )
    return None if None in values.values() else values


def _parsed(text: str, resolve: Resolve) -> Range:
    field, _, value = text.partition("=")
    field = field.strip()
    rows = parse_vary([text], where=OPTION)
    values = tuple(row[0].partition("=")[2] for row in rows)
    if any(":" in item for item in values):
        if len(values) > 1:
            raise UserError(
                f"'{text}' mixes an interval and single values",
                where=OPTION,
                todo=f"Write {field}=low:high, or {field}=value,value,...",
            )
        resolved_value = flattened(resolve([f"{field}={value.partition(':')[0].strip()}"])).get(
            field
        )
        return _interval(field, value, resolved_value)
    if len(values) == 1:
        raise UserError(
            f"'{field}' has a single value",
            where=OPTION,
            todo=f"Set it for all runs: --set {field}={values[0]}",
        )
    return Choices(field=field, values=values)


def _interval(field: str, text: str, resolved_value: Any) -> Interval:
    parts = [part.strip() for part in text.split(":")]
    is_log = len(parts) == 3 and parts[2] == _LOG
    if isinstance(resolved_value, bool) or not isinstance(resolved_value, (int, float)):
        raise UserError(
            f"'{field}' cannot have an interval, since it is not a number",
            where=OPTION,
            todo=f"List its values: {OPTION} {field}=value,value,...",
        )
    is_whole = isinstance(resolved_value, int)
    try:
        low, high = (int(part) if is_whole else float(part) for part in parts[:2])
    except ValueError:
        kind = "integers" if is_whole else "numbers"
        raise UserError(
            f"'{field}={text}' is not an interval of {kind}",
            where=OPTION,
            todo=f"For instance: {field}={'8:64' if is_whole else '0.1:0.9'}, optionally with :log "
            "at the end.",
        ) from None
    if len(parts) > 2 and not is_log:
        raise UserError(
            f"unknown scale '{parts[2]}' in '{field}={text}'",
            where=OPTION,
            todo=f"Write {field}=low:high or {field}=low:high:log.",
        )
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise UserError(
            f"the range '{field}={text}' is empty",
            where=OPTION,
            todo="The first number must be smaller than the second.",
        )
    if is_log and low <= 0:
        raise UserError(
            f"'{field}={text}' cannot be logarithmic from {parts[0]}",
            where=OPTION,
            todo=f"Begin above 0, or omit ':{_LOG}'.",
        )
    return Interval(field=field, low=low, high=high, is_log=is_log, is_whole=is_whole)


def _bounds(interval: Interval) -> tuple[str, str]:
    return interval.text_of(interval.low), interval.text_of(interval.high)


def _is_same(text: str, own_value: Any) -> bool:
    if isinstance(own_value, bool) or own_value is None:
        return text.lower() == str(own_value).lower()
    if isinstance(own_value, (int, float)):
        try:
            return float(text) == own_value
        except ValueError:
            return False
    return text == own_value
