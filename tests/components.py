"""Components of a given kind, and what the fields of settings accept."""

from dataclasses import fields
from typing import Any

from jumar.settings import Component
from jumar.settings.fields import field_names


def of_kind(family: type[Component], kind: str, **fields: Any) -> Any:
    """The component; fields of other kinds are left out."""
    made = family.kinds[kind]
    return made(**{name: fields[name] for name in set(fields) & set(field_names(made))})


def accepted(settings: type) -> dict[str, tuple[object, ...]]:
    """By field: its default, its smallest and largest value, and whether a resume may change it."""
    return {
        field.name: (
            field.default,
            *(field.metadata[key] for key in ("minimum", "maximum", "changeable")),
        )
        for field in fields(settings)
    }
