"""Converting a settings tree to JSON and back."""

import dataclasses
import json
import math
import sys
import typing
from collections.abc import Mapping
from typing import Any, TypeVar

from jumar.ground.errors import UserError
from jumar.settings.changing import unknown_field
from jumar.settings.components import Component
from jumar.settings.fields import field_names, inner_type, shortened, type_name, types_of

S = TypeVar("S")


def to_json(settings: Any) -> dict[str, Any]:
    """A settings tree as JSON types; `from_json` is the inverse."""
    result: dict[str, Any] = {"kind": settings.kind} if isinstance(settings, Component) else {}
    for field in dataclasses.fields(settings):
        value = getattr(settings, field.name)
        if dataclasses.is_dataclass(value):
            value = to_json(value)
        elif isinstance(value, tuple):
            value = list(typing.cast("tuple[Any, ...]", value))
        result[field.name] = value
    return result


def from_json(like: S, data: Mapping[str, Any], *, where: str, path: str = "") -> S:
    """Settings of the same classes as `like` with the values of `data`.

    Fields missing in `data` keep their value from `like`, so a file written by an earlier version
    can still be read. Earlier versions stored the fields of all kinds for every component; fields
    of other kinds never had an effect and are ignored.

    Raises:
        UserError: A field is unknown, or a value has the wrong type.
    """
    if isinstance(like, Component):
        kind = data.get("kind", like.kind)
        like = like.of_kind(str(kind), path=path.rstrip("."), where=where)
        ignored_fields = {name for name in data if like.kinds_with(name)} - set(field_names(like))
        data = {
            name: value for name, value in data.items() if name not in {"kind", *ignored_fields}
        }
    changes: dict[str, Any] = {}
    for name, value in data.items():
        full_path = f"{path}{name}"
        if name not in field_names(like):
            raise unknown_field(like, path.split(".")[:-1], name, where=where)
        current = getattr(like, name)
        if dataclasses.is_dataclass(current):
            if not isinstance(value, Mapping):
                raise UserError(
                    f"'{full_path}' must be an object, not {json.dumps(value)}", where=where
                )
            section = typing.cast("Mapping[str, Any]", value)
            changes[name] = from_json(current, section, where=where, path=f"{full_path}.")
        else:
            changes[name] = _from_json_value(types_of(type(like))[name], value, full_path, where)
    return dataclasses.replace(typing.cast(Any, like), **changes)


def _from_json_value(kind: Any, value: Any, path: str, where: str) -> Any:
    optional = inner_type(kind)
    if optional is not None:
        return None if value is None else _from_json_value(optional, value, path, where)
    if typing.get_origin(kind) is tuple and isinstance(value, list):
        item = typing.get_args(kind)[0]
        values = typing.cast("list[Any]", value)
        return tuple(_from_json_value(item, value, path, where) for value in values)
    if kind is float and isinstance(value, (int, float)) and not isinstance(value, bool):
        return float(value) if abs(value) <= sys.float_info.max else math.inf
    if kind is int and isinstance(value, int) and not isinstance(value, bool):
        return value
    if isinstance(value, str) and "\0" in value:
        # A shell cannot pass one, so no code expects it; in a path it raises `ValueError`.
        raise UserError(f"'{path}' contains a null character", where=where)
    if kind in (bool, str) and isinstance(value, kind):
        return value
    raise UserError(
        f"'{path}' takes {type_name(kind)}, not {shortened(json.dumps(value))}", where=where
    )
