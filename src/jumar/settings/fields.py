"""A field of a settings dataclass: its meaning, unit and allowed values, and how it is written."""

import dataclasses
import types
import typing
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, TypeVar

LARGEST_WHOLE = 2**31 - 1
"""For a field without a maximum: nothing here needs more, and larger sizes overflow."""
LARGEST_SIDE = 2**16
"""The same for a field in px, which is squared: an image with this side takes 13 GB."""
_LONGEST_NUMBER = 40
"""The most digits of a number that a message repeats."""

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
        meaning: One sentence, as `jumar recipes show` prints it.
        unit: For instance `px`, `epochs`, `samples per rank`.
        choices: The allowed strings, for a tuple those of each item; empty to allow any.
        minimum: Smallest allowed number.
        maximum: Largest allowed number; if None, `LARGEST_WHOLE` or `LARGEST_SIDE` for whole
            numbers, and no limit for others, which must be finite.
        changeable: Whether it may differ when a run is resumed, because no finished step
            depends on it; for a section, whether all of its fields may.
        only_with: Neighbouring fields, and the values of theirs with which this one has an effect
            (none listed: any but empty and 0); otherwise assigning it is refused.
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
    """A type in words."""
    optional = inner_type(kind)
    if optional is not None:
        return f"{type_name(optional)} or none"
    if typing.get_origin(kind) is tuple:
        return f"a list of {type_name(typing.get_args(kind)[0])}, separated by commas"
    names = {int: "a whole number", float: "a number", bool: "true or false", str: "text"}
    return names.get(kind, str(kind))


def value_text(value: Any) -> str:
    """A value as written after `--set field=`."""
    if value is None:
        return "none"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        return ",".join(value_text(item) for item in typing.cast("tuple[Any, ...]", value))
    return f"{value:g}" if isinstance(value, float) else str(value)


def range_text(low: float | None, high: float | None) -> str:
    """A range of numbers in words; empty without limits."""
    if low is not None and high is not None:
        return f"{_number(low)} to {_number(high)}"
    if low is not None:
        return f"{_number(low)} or more"
    return f"{_number(high)} or less" if high is not None else ""


def shortened(text: str) -> str:
    """A text, shortened for a message."""
    return text if len(text) <= _LONGEST_NUMBER else f"{text[:_LONGEST_NUMBER]}..."


def _number(value: float) -> str:
    return str(value) if isinstance(value, int) else f"{value:g}"
