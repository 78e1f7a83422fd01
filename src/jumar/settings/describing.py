"""Describing every field of a settings tree for users."""

import dataclasses
from dataclasses import dataclass
from typing import Any

from jumar.settings.components import Component
from jumar.settings.fields import range_text


@dataclass(frozen=True)
class FieldRow:
    """One field of a settings tree, as `jumar recipes show` prints it."""

    path: str
    value: Any
    unit: str
    meaning: str
    allowed: str


def describe(settings: Any, prefix: str = "") -> list[FieldRow]:
    """Every leaf field of a settings tree, in definition order.

    A part that comes in several kinds has a row for its kind before its own fields.
    """
    rows: list[FieldRow] = []
    for field in dataclasses.fields(settings):
        value = getattr(settings, field.name)
        path = f"{prefix}{field.name}"
        is_section = dataclasses.is_dataclass(value)
        if isinstance(value, Component) or not is_section:
            rows.append(_row(field, path, value))
        if is_section:
            rows.extend(describe(value, f"{path}."))
    return rows


def _row(field: "dataclasses.Field[Any]", path: str, value: Any) -> FieldRow:
    data = field.metadata
    if isinstance(value, Component):
        choices, text = tuple(value.kinds), value.kind
    else:
        choices, text = data.get("choices", ()), value
    return FieldRow(
        path=path,
        value=text,
        unit=data.get("unit", ""),
        meaning=data.get("meaning", ""),
        allowed=", ".join(choices) or range_text(data.get("minimum"), data.get("maximum")),
    )
