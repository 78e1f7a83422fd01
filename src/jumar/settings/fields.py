"""A field of a settings dataclass: its meaning, unit, allowed values and notation."""

import dataclasses
import types
import typing
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, TypeVar

from jumar.ground.errors import UserError, nearest

LARGEST_WHOLE = 2**31 - 1
"""The limit for integer fields without a maximum: larger sizes are never needed and overflow."""
LARGEST_SIDE = 2**16
"""The limit for fields in px, which are squared: an image with this side takes 13 GB."""
_MAX_QUOTED_LENGTH = 40
"""Maximum number of characters of a value that a message repeats."""

T = TypeVar("T")


def setting(
    default: T,
    meaning: str,
    *,
    unit: str = "",
    choices: Sequence[str] = (),
    minimum: float | None = None,
    maximum: float | None = None,
    changeable: bool = False,
    only_with: Mapping[str, Sequence[str]] | None = None,
) -> T:
    """A dataclass field with its meaning, unit and allowed values.

    Args:
        default: The default value; a frozen dataclass for a nested section.
        meaning: One sentence with a capital letter and a full stop, as `jumar recipes show` prints
            it; it may begin with an allowed value instead.
        unit: For instance `px`, `epochs`, `samples per rank`.
        choices: The allowed strings, or the allowed items of a tuple; empty to allow any.
        minimum: Smallest allowed number.
        maximum: Largest allowed number; if None, integers are limited by `LARGEST_WHOLE` or
            `LARGEST_SIDE`, and other numbers only have to be finite.
        changeable: Whether it may differ when a run is resumed, because no finished step
            depends on it; for a section, whether all of its fields may.
        only_with: Sibling fields, and their values for which this field has an effect (if none are
            listed: any but empty and 0). Assigning the field is an error otherwise.
    """
    metadata = {
        "meaning": meaning,
        "unit": unit,
        "choices": tuple(choices),
        "minimum": minimum,
        "maximum": maximum,
        "changeable": changeable,
        "only_with": dict(only_with or {}),
    }
    return dataclasses.field(default=default, metadata=metadata)


def field_names(settings: Any) -> list[str]:
    """The field names of a settings dataclass or an instance of one."""
    return [field.name for field in dataclasses.fields(settings)]


@cache
def types_of(cls: type) -> dict[str, Any]:
    """The resolved field types of a settings dataclass."""
    return typing.get_type_hints(cls)


def inner_type(kind: Any) -> Any:
    """The type in `X | None`; None for any other type."""
    if typing.get_origin(kind) in (typing.Union, types.UnionType):
        return next(option for option in typing.get_args(kind) if option is not type(None))
    return None


def type_name(kind: Any) -> str:
    """A type as described to users."""
    optional = inner_type(kind)
    if optional is not None:
        return f"{type_name(optional)} or none"
    if typing.get_origin(kind) is tuple:
        return f"a list of {type_name(typing.get_args(kind)[0])}, separated by commas"
    names = {int: "a whole number", float: "a number", bool: "true or false", str: "text"}
    return names.get(kind, str(kind))


def value_text(value: Any) -> str:
    """A value in the notation of `--set field=value`."""
    if value is None:
        return "none"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        return ",".join(value_text(item) for item in typing.cast("tuple[Any, ...]", value))
    return f"{value:g}" if isinstance(value, float) else str(value)


def range_text(low: float | None, high: float | None) -> str:
    """A range of numbers as described to users; empty without limits."""
    if low is not None and high is not None:
        return f"{_number(low)} to {_number(high)}"
    if low is not None:
        return f"{_number(low)} or more"
    return f"{_number(high)} or less" if high is not None else ""


def not_a_choice(path: str, value: str, choices: Sequence[str], *, where: str) -> UserError:
    """The error for a value that is not one of a field's choices, with the nearest of them."""
    suggestion = nearest(value, choices)
    hint = f"Did you mean '{suggestion}'? " if suggestion else ""
    return UserError(
        f"'{path}' cannot be '{value}'",
        where=where,
        todo=f"{hint}Allowed: {', '.join(choices)}.",
    )


def shortened(text: str) -> str:
    """The text, truncated for a message if it is long."""
    return text if len(text) <= _MAX_QUOTED_LENGTH else f"{text[:_MAX_QUOTED_LENGTH]}..."


def _number(value: float) -> str:
    return str(value) if isinstance(value, int) else f"{value:g}"
