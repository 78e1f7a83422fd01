"""A component of a given kind, with those of the given fields that the kind has."""

from typing import Any

from jumar.settings import Component
from jumar.settings.fields import field_names


def of_kind(family: type[Component], kind: str, **fields: Any) -> Any:
    """The component; fields of other kinds are left out."""
    made = family.kinds[kind]
    return made(**{name: fields[name] for name in set(fields) & set(field_names(made))})
