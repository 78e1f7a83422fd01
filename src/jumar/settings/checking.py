"""Checking every choice, range and rule of a settings tree."""

import dataclasses
import math
import typing
from typing import Any, TypeVar

from jumar.ground.errors import UserError
from jumar.settings.fields import (
    LARGEST_SIDE,
    LARGEST_WHOLE,
    not_a_choice,
    range_text,
    shortened,
)

S = TypeVar("S")


def checked(settings: S, *, where: str = "") -> S:
    """Return the same settings after checking every choice and range in the tree.

    A section with rules that span several fields defines `check(self) -> None`, which raises
    `UserError`.
    """
    _check(settings, "", where)
    return settings


def check_intervals(settings: Any, *names: str) -> None:
    """Check that each of the named fields is a smallest and a largest value.

    Raises:
        UserError: A field does not have two values, or they are in the wrong order.
    """
    for name in names:
        values: tuple[float, ...] = getattr(settings, name)
        if len(values) != 2 or values[0] > values[1]:
            raise UserError(
                f"'{name}' takes the smallest and the largest value, not {values}",
                todo=f"For instance: {name}=0.5,1.5",
            )


def _check(settings: Any, prefix: str, where: str) -> None:
    for field in dataclasses.fields(settings):
        value = getattr(settings, field.name)
        path = f"{prefix}{field.name}"
        if dataclasses.is_dataclass(value):
            _check(value, f"{path}.", where)
            continue
        parts = typing.cast("tuple[Any, ...]", value) if isinstance(value, tuple) else (value,)
        choices = field.metadata.get("choices", ())
        for part in parts if choices else ():
            if part not in choices:
                raise not_a_choice(path, str(part), choices, where=where)
        for number in parts:
            if not isinstance(number, (int, float)):
                continue
            declared = (field.metadata.get("minimum"), field.metadata.get("maximum"))
            # Report declared limits as declared, and a general limit only if it is exceeded.
            for limits in (
                declared,
                _general_limits(number, *declared, field.metadata.get("unit", "")),
            ):
                if not _is_within(number, *limits):
                    raise UserError(
                        f"'{path}' cannot be {shortened(str(number))}",
                        where=where,
                        todo=f"Allowed: {range_text(*limits) or 'finite numbers'}.",
                    )
    rule = getattr(settings, "check", None)
    if callable(rule):
        rule()


def _general_limits(
    number: float, low: float | None, high: float | None, unit: str
) -> tuple[float | None, float | None]:
    """The limits of a field; general limits replace those that an integer field omits."""
    if not isinstance(number, int):
        return low, high
    largest = LARGEST_SIDE if unit == "px" else LARGEST_WHOLE
    return -largest if low is None else low, largest if high is None else high


def _is_within(number: float, low: float | None, high: float | None) -> bool:
    if isinstance(number, float) and not math.isfinite(number):
        return False  # NaN is neither below a minimum nor above a maximum
    return (low is None or number >= low) and (high is None or number <= high)
