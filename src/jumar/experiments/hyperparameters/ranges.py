"""The ranges of a search: `--range optimizer.learning_rate=1e-4:1e-1:log`."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from jumar.experiments.grid import parse_vary
from jumar.experiments.run_reading import flattened
from jumar.ground.errors import UserError

OPTION = "--range"
_LOG = "log"
_DIGITS = 4
"""Significant digits of drawn numbers: more would only lengthen the commands."""

Resolve = Callable[[Sequence[str]], Mapping[str, Any]]
"""The settings of the recipe with assignments, as JSON types; raises `UserError`."""


@dataclass(frozen=True, kw_only=True)
class Choices:
    """A field that takes one of several values.

    Attributes:
        field: The field.
        values: The values as written.
    """

    field: str
    values: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Interval:
    """A field that takes a number between two others.

    Attributes:
        field: The field.
        low: The smallest number.
        high: The largest number.
        is_log: Whether to draw on a logarithmic scale.
        is_whole: Whether the field takes whole numbers.
    """

    field: str
    low: float
    high: float
    is_log: bool
    is_whole: bool

    def text_of(self, drawn: float) -> str:
        """A drawn number as assigned to the field, within the interval."""
        if self.is_whole:
            return str(int(drawn))
        rounded = float(f"{drawn:.{_DIGITS}g}")
        return repr(min(max(rounded, self.low), self.high))


Range = Choices | Interval


def parse_ranges(texts: Sequence[str], resolve: Resolve) -> list[Range]:
    """Parse the ranges and check both ends, or every value, against the recipe.

    Args:
        texts: `section.field=low:high`, `section.field=low:high:log` or
            `section.field=value,value,...`, one per field.
        resolve: The settings of the recipe with assignments.

    Raises:
        UserError: A field is unknown or given twice, a range is empty or has a 0 with `log`, or
            the field does not take the values.
    """
    if not texts:
        raise UserError(
            "a search needs a field to vary",
            where=OPTION,
            todo=f"For instance: {OPTION} optimizer.learning_rate=1e-4:1e-1:log",
        )
    ranges = [_parsed(text, resolve) for text in texts]
    names = [each.field for each in ranges]
    repeated_name = next((name for name in names if names.count(name) > 1), None)
    if repeated_name is not None:
        raise UserError(f"'{repeated_name}' has two ranges", where=OPTION, todo="Give one.")
    for each in ranges:
        ends = each.values if isinstance(each, Choices) else _ends(each)
        for value in ends:
            resolve([f"{each.field}={value}"])
    return ranges


def own_values(ranges: Sequence[Range], settings: Mapping[str, Any]) -> dict[str, Any] | None:
    """The recipe's own values of the fields, as if drawn; None if one is out of range."""
    flat = flattened(settings)
    values: dict[str, Any] = {}
    for each in ranges:
        own_value = flat[each.field]
        if isinstance(each, Interval):
            if own_value is None or not each.low <= own_value <= each.high:
                return None
            values[each.field] = own_value
        else:
            matching_text = next((text for text in each.values if _is_same(text, own_value)), None)
            if matching_text is None:
                return None
            values[each.field] = matching_text
    return values


def _parsed(text: str, resolve: Resolve) -> Range:
    field, _, value = text.partition("=")
    field = field.strip()
    rows = parse_vary([text], where=OPTION)
    values = tuple(row[0].partition("=")[2] for row in rows)
    if any(":" in each for each in values):
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
            f"'{field}' takes no interval: it is not a number",
            where=OPTION,
            todo=f"List its values: {OPTION} {field}=value,value,...",
        )
    is_whole = isinstance(resolved_value, int)
    try:
        low, high = (int(part) if is_whole else float(part) for part in parts[:2])
    except ValueError:
        kind = "whole numbers" if is_whole else "numbers"
        raise UserError(
            f"'{field}={text}' is not an interval of {kind}",
            where=OPTION,
            todo=f"For instance: {field}={'8:64' if is_whole else '0.1:0.9'}, or with :log at "
            "the end.",
        ) from None
    if len(parts) > 2 and not is_log:
        raise UserError(
            f"'{parts[2]}' is unknown in '{field}={text}'",
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
            f"'{field}={text}' has no logarithm at {parts[0]}",
            where=OPTION,
            todo=f"Begin above 0, or leave out ':{_LOG}'.",
        )
    return Interval(field=field, low=low, high=high, is_log=is_log, is_whole=is_whole)


def _ends(interval: Interval) -> tuple[str, str]:
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
