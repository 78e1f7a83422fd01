"""Changing fields from the command line: `section.field=value`."""

import dataclasses
import math
import typing
from collections.abc import Sequence
from typing import Any, TypeVar

from jumar.ground.errors import UserError, unknown_name
from jumar.settings.checking import checked
from jumar.settings.components import Component
from jumar.settings.fields import (
    field_names,
    inner_type,
    shortened,
    type_name,
    types_of,
    value_text,
)

S = TypeVar("S")

_OPTION = "--set"


def override(settings: S, assignments: Sequence[str]) -> S:
    """Apply `section.field=value` assignments in order and check the result.

    `section=kind` and `section.kind=kind` choose another kind of a component; fields that both
    kinds have keep their values.

    Raises:
        UserError: A field is unknown, or has no effect with the other fields' values, or a value
            has the wrong type or is not allowed.
    """
    for assignment in assignments:
        path, separator, text = assignment.partition("=")
        if not separator or not path:
            raise UserError(
                f"'{assignment}' is not of the form section.field=value",
                where=_OPTION,
                todo="For instance: --set optimizer.learning_rate=0.1",
            )
        settings = _assign(settings, path.strip().split("."), text.strip(), path.strip())
    settings = checked(settings, where=_OPTION)
    for assignment in assignments:
        _refuse_ineffective(settings, field_of(assignment))
    return settings


def field_of(assignment: str) -> str:
    """The part of `section.field=value` before the equals sign."""
    return assignment.partition("=")[0].strip()


def _refuse_ineffective(settings: Any, path: str) -> None:
    """Check that an assigned field has an effect with the values of its sibling fields.

    Otherwise `training.clip_limit=1` alone would suggest that gradients are clipped.
    """
    *sections, name = path.split(".")
    for section in sections:
        settings = getattr(settings, section)
    metadata = {field.name: field.metadata for field in dataclasses.fields(settings)}
    # A kind is assigned under the name `kind`, which is not a field.
    for sibling, values in metadata.get(name, {}).get("only_with", {}).items():
        value, sibling_path = getattr(settings, sibling), ".".join([*sections, sibling])
        if not values and not value:
            raise UserError(
                f"'{path}' has no effect without {sibling_path}",
                where=_OPTION,
                todo="Set both or neither.",
            )
        if values and value not in values:
            raise UserError(
                f"'{path}' has no effect with {sibling_path}={value_text(value)}",
                where=_OPTION,
                todo=f"It belongs to {sibling_path}={' or '.join(values)}: set both or neither.",
            )


def _assign(settings: S, keys: list[str], text: str, path: str) -> S:
    key, rest = keys[0], keys[1:]
    if key not in field_names(settings):
        raise unknown_field(settings, path.split(".")[: -len(keys)], key, where=_OPTION)
    current = getattr(settings, key)
    value: Any
    if isinstance(current, Component) and rest in ([], ["kind"]):
        value = current.of_kind(text, path=path, where=_OPTION)
    elif dataclasses.is_dataclass(current):
        if not rest:
            raise UserError(
                f"'{path}' is a section, not a field",
                where=_OPTION,
                todo=f"Its fields: {', '.join(field_names(current))}.",
            )
        value = _assign(current, rest, text, path)
    elif rest:
        raise UserError(f"'{path}': '{key}' is a field and has no fields of its own", where=_OPTION)
    else:
        value = _parse(types_of(type(settings))[key], text, path)
    return dataclasses.replace(typing.cast(Any, settings), **{key: value})


def unknown_field(settings: Any, section: Sequence[str], key: str, *, where: str) -> UserError:
    """The error for an unknown field of a section, with the nearest name and all known fields.

    Args:
        settings: The section.
        section: The path of the section.
        key: The unknown field's name.
        where: The option or file that names the field.
    """
    unknown_path = ".".join([*section, key])
    if isinstance(settings, Component) and (kinds := settings.kinds_with(key)):
        return UserError(
            f"'{unknown_path}': '{settings.kind}' has no field '{key}'",
            where=where,
            todo=f"'{key}' belongs to {', '.join(kinds)}; '{settings.kind}' has "
            f"{', '.join(field_names(settings)) or 'no fields'}.",
        )
    known_paths = [".".join([*section, name]) for name in field_names(settings)]
    return unknown_name("field", unknown_path, known_paths, where=where)


def _parse(kind: Any, text: str, path: str) -> Any:
    optional = inner_type(kind)
    if optional is not None:
        return None if text.lower() in ("none", "") else _parse(optional, text, path)
    if typing.get_origin(kind) is tuple:
        item = typing.get_args(kind)[0]
        parts = [part.strip() for part in text.strip("()[]").split(",")]
        return tuple(_parse(item, part, path) for part in parts if part)
    if kind is bool:
        truth_values = {
            "true": True,
            "yes": True,
            "1": True,
            "false": False,
            "no": False,
            "0": False,
        }
        if text.lower() in truth_values:
            return truth_values[text.lower()]
    elif kind is str:
        return text
    elif kind in (int, float):
        try:
            return int(text.replace("_", ""), 10) if kind is int else _finite_float(text)
        except (ValueError, ArithmeticError, TypeError):
            pass  # ArithmeticError: 0**-1 and 10**999; TypeError: (-8)**0.5 is complex
    raise UserError(
        f"'{path}' takes {type_name(kind)}, not '{shortened(text)}'",
        where=_OPTION,
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


def _example(kind: Any) -> str:
    if typing.get_origin(kind) is tuple:
        return f"{_example(typing.get_args(kind)[0])}," * 2 + _example(typing.get_args(kind)[0])
    return {int: "8", float: "0.1", bool: "true"}.get(kind, "text")
