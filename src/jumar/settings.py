"""Settings: frozen dataclasses whose fields say what they mean.

A recipe is a tree of such dataclasses. This file is all that reads them by field: it lists
every field with its meaning and unit, applies `section.field=value` from the command line,
checks types, choices and ranges, and goes to JSON and back. Every failure names the field, the
value, what is allowed, and the nearest name.
"""

import dataclasses
import json
import math
import sys
import types
import typing
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeVar

from jumar.ground.errors import UserError, nearest, unknown_name

LARGEST_WHOLE = 2**31 - 1
"""Of a field that declares no maximum: beyond, nothing here has so many, and sizes overflow."""
LARGEST_SIDE = 2**16
"""The same of a field in px, which is squared: a picture of that side has 13 GB."""
_LONGEST_NUMBER = 40
"""Digits of a number that a message repeats."""

S = TypeVar("S")
T = TypeVar("T")


def setting(
    default: T,
    meaning: str,
    *,
    unit: str = "",
    choices: Sequence[str] = (),
    minimum: float | None = None,
    maximum: float | None = None,
) -> T:
    """A dataclass field with its meaning, unit and allowed values.

    Args:
        default: The value when nobody sets it; a frozen dataclass for a nested section.
        meaning: One sentence, as `jumar recipes show` prints it.
        unit: For instance `px`, `epochs`, `samples per rank`.
        choices: The allowed strings, of a tuple those of each item; empty for any.
        minimum: Smallest allowed number.
        maximum: Largest allowed number; None for `LARGEST_WHOLE` or `LARGEST_SIDE` of whole
            numbers, and for no limit of others, which must be finite.
    """
    metadata = {
        "meaning": meaning,
        "unit": unit,
        "choices": tuple(choices),
        "minimum": minimum,
        "maximum": maximum,
    }
    return dataclasses.field(default=default, metadata=metadata)


@dataclass(frozen=True)
class FieldRow:
    """One field of a settings tree, as `jumar recipes show` prints it."""

    path: str
    value: Any
    type: str
    unit: str
    meaning: str
    allowed: str


def describe(settings: Any, prefix: str = "") -> list[FieldRow]:
    """Every leaf field of a settings tree, in the order of definition."""
    rows: list[FieldRow] = []
    for field in dataclasses.fields(settings):
        value = getattr(settings, field.name)
        path = f"{prefix}{field.name}"
        if dataclasses.is_dataclass(value):
            rows.extend(describe(value, f"{path}."))
            continue
        rows.append(
            FieldRow(
                path=path,
                value=value,
                type=_type_name(_types_of(type(settings))[field.name]),
                unit=field.metadata.get("unit", ""),
                meaning=field.metadata.get("meaning", ""),
                allowed=_allowed(field),
            )
        )
    return rows


def value_text(value: Any) -> str:
    """A value as it is written after `--set field=`."""
    if value is None:
        return "none"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        return ",".join(value_text(item) for item in typing.cast("tuple[Any, ...]", value))
    return f"{value:g}" if isinstance(value, float) else str(value)


def override(settings: S, assignments: Sequence[str], *, where: str = "--set") -> S:
    """Apply `section.field=value` assignments, the last one winning, and check the result.

    Raises:
        UserError: An unknown field, a value of the wrong type, or one outside what is allowed.
    """
    for assignment in assignments:
        path, equals, text = assignment.partition("=")
        if not equals or not path:
            raise UserError(
                f"'{assignment}' is not of the form section.field=value",
                where=where,
                todo="For instance: --set optimizer.learning_rate=0.1",
            )
        settings = _assign(settings, path.strip().split("."), text.strip(), path.strip(), where)
    return checked(settings, where=where)


def checked(settings: S, *, where: str = "") -> S:
    """The same settings, once every choice and range of the tree holds.

    A section with rules across its fields defines `check(self) -> None`, which raises
    `UserError`.
    """
    _check(settings, "", where)
    return settings


def to_json(settings: Any) -> dict[str, Any]:
    """A settings tree as JSON types; `from_json` is the inverse."""
    result: dict[str, Any] = {}
    for field in dataclasses.fields(settings):
        value = getattr(settings, field.name)
        if dataclasses.is_dataclass(value):
            result[field.name] = to_json(value)
        elif isinstance(value, tuple):
            result[field.name] = list(typing.cast("tuple[Any, ...]", value))
        else:
            result[field.name] = value
    return result


def from_json(like: S, data: Mapping[str, Any], *, where: str, path: str = "") -> S:
    """Settings of the same classes as `like` with the values of `data`.

    Fields that `data` lacks keep their value in `like`, so a file written by an earlier
    version still reads.

    Raises:
        UserError: An unknown field or a value of the wrong type.
    """
    names = {field.name for field in dataclasses.fields(typing.cast(Any, like))}
    changes: dict[str, Any] = {}
    for name, value in data.items():
        full = f"{path}{name}"
        if name not in names:
            raise unknown_name("field", full, (f"{path}{known}" for known in names), where=where)
        current = getattr(like, name)
        if dataclasses.is_dataclass(current):
            if not isinstance(value, Mapping):
                raise UserError(f"'{full}' must be an object, not {json.dumps(value)}", where=where)
            changes[name] = from_json(
                current, typing.cast("Mapping[str, Any]", value), where=where, path=f"{full}."
            )
        else:
            changes[name] = _from_json_value(_types_of(type(like))[name], value, full, where)
    return dataclasses.replace(typing.cast(Any, like), **changes)


def _assign(settings: S, keys: list[str], text: str, path: str, where: str) -> S:
    names = [field.name for field in dataclasses.fields(typing.cast(Any, settings))]
    key, rest = keys[0], keys[1:]
    if key not in names:
        done = path.split(".")[: -len(keys)]
        known = [".".join([*done, name]) for name in names]
        wrong = ".".join([*done, key])
        raise unknown_name("field", wrong, known, where=where)
    current = getattr(settings, key)
    if dataclasses.is_dataclass(current):
        if not rest:
            inner = ", ".join(f.name for f in dataclasses.fields(current))
            raise UserError(
                f"'{path}' is a section, not a field", where=where, todo=f"Its fields: {inner}."
            )
        return dataclasses.replace(
            typing.cast(Any, settings), **{key: _assign(current, rest, text, path, where)}
        )
    if rest:
        raise UserError(f"'{path}': '{key}' is a field and has no fields of its own", where=where)
    value = _parse(_types_of(type(settings))[key], text, path, where)
    return dataclasses.replace(typing.cast(Any, settings), **{key: value})


def _parse(kind: Any, text: str, path: str, where: str) -> Any:
    origin = typing.get_origin(kind)
    if origin in (typing.Union, types.UnionType):
        options = [option for option in typing.get_args(kind) if option is not type(None)]
        if text.lower() in ("none", ""):
            return None
        return _parse(options[0], text, path, where)
    if origin is tuple:
        inner = typing.get_args(kind)[0]
        parts = [part.strip() for part in text.strip("()[]").split(",")]
        return tuple(_parse(inner, part, path, where) for part in parts if part)
    if kind is bool:
        spelled = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
        if text.lower() in spelled:
            return spelled[text.lower()]
    elif kind is str:
        return text
    elif kind in (int, float):
        try:
            return int(text.replace("_", ""), 10) if kind is int else _finite_float(text)
        except (ValueError, ArithmeticError, TypeError):
            pass  # ArithmeticError: 0**-1 and 10**999; TypeError: (-8)**0.5 is complex
    raise UserError(
        f"'{path}' takes {_type_name(kind)}, not '{_short(text)}'",
        where=where,
        todo=f"For instance: {path}={_example(kind)}",
    )


def _finite_float(text: str) -> float:
    if "**" in text:
        base, _, power = text.partition("**")
        value = float(base) ** float(power)
    else:
        value = float(text)
    if not math.isfinite(value):
        raise ValueError(text)
    return value


def _from_json_value(kind: Any, value: Any, path: str, where: str) -> Any:
    origin = typing.get_origin(kind)
    if origin in (typing.Union, types.UnionType):
        if value is None:
            return None
        inner = next(option for option in typing.get_args(kind) if option is not type(None))
        return _from_json_value(inner, value, path, where)
    if origin is tuple and isinstance(value, list):
        inner = typing.get_args(kind)[0]
        items = typing.cast("list[Any]", value)
        return tuple(_from_json_value(inner, item, path, where) for item in items)
    if kind is float and isinstance(value, (int, float)) and not isinstance(value, bool):
        return float(value) if abs(value) <= sys.float_info.max else math.inf
    if kind is int and isinstance(value, int) and not isinstance(value, bool):
        return value
    if isinstance(value, str) and "\0" in value:
        # A shell cannot give one, so nothing behind expects it; as a path it is a `ValueError`.
        raise UserError(f"'{path}' holds a null character", where=where)
    if kind in (bool, str) and isinstance(value, kind):
        return value
    raise UserError(
        f"'{path}' takes {_type_name(kind)}, not {_short(json.dumps(value))}", where=where
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
            if part in choices:
                continue
            close = nearest(str(part), choices)
            hint = f"Did you mean '{close}'? " if close else ""
            raise UserError(
                f"'{path}' cannot be '{part}'",
                where=where,
                todo=f"{hint}Allowed: {', '.join(choices)}.",
            )
        for number in parts:
            if not isinstance(number, (int, float)):
                continue
            declared = (field.metadata.get("minimum"), field.metadata.get("maximum"))
            # Declared limits are said as they stand; the general one only where it is passed.
            for limits in (
                declared,
                _general_limits(number, *declared, field.metadata.get("unit", "")),
            ):
                if not _is_within(number, *limits):
                    raise UserError(
                        f"'{path}' cannot be {_short(str(number))}",
                        where=where,
                        todo=f"Allowed: {_range(*limits) or 'finite numbers'}.",
                    )
    rule = getattr(settings, "check", None)
    if callable(rule):
        rule()


def _general_limits(
    number: float, low: float | None, high: float | None, unit: str
) -> tuple[float | None, float | None]:
    """The limits of a field, with those of every whole number where it declares none."""
    if not isinstance(number, int):
        return low, high
    largest = LARGEST_SIDE if unit == "px" else LARGEST_WHOLE
    return -largest if low is None else low, largest if high is None else high


def _is_within(number: float, low: float | None, high: float | None) -> bool:
    if isinstance(number, float) and not math.isfinite(number):
        return False  # NaN is neither below a minimum nor above a maximum
    return (low is None or number >= low) and (high is None or number <= high)


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST_NUMBER else f"{text[:_LONGEST_NUMBER]}..."


def _allowed(field: "dataclasses.Field[Any]") -> str:
    choices = field.metadata.get("choices", ())
    if choices:
        return ", ".join(choices)
    return _range(field.metadata.get("minimum"), field.metadata.get("maximum"))


def _range(low: float | None, high: float | None) -> str:
    if low is not None and high is not None:
        return f"{_number(low)} to {_number(high)}"
    if low is not None:
        return f"{_number(low)} or more"
    return f"{_number(high)} or less" if high is not None else ""


def _number(value: float) -> str:
    return str(value) if isinstance(value, int) else f"{value:g}"


@cache
def _types_of(cls: type) -> dict[str, Any]:
    return typing.get_type_hints(cls)


def _type_name(kind: Any) -> str:
    origin = typing.get_origin(kind)
    if origin in (typing.Union, types.UnionType):
        inner = [option for option in typing.get_args(kind) if option is not type(None)]
        return f"{_type_name(inner[0])} or none"
    if origin is tuple:
        return f"a list of {_type_name(typing.get_args(kind)[0])}, separated by commas"
    names = {int: "a whole number", float: "a number", bool: "true or false", str: "text"}
    return names.get(kind, str(kind))


def _example(kind: Any) -> str:
    if typing.get_origin(kind) is tuple:
        return f"{_example(typing.get_args(kind)[0])}," * 2 + _example(typing.get_args(kind)[0])
    return {int: "8", float: "0.1", bool: "true"}.get(kind, "text")
