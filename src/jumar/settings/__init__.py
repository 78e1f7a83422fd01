"""Settings: frozen dataclasses whose fields say what they mean.

A recipe is a tree of such dataclasses. This room is all that reads them by field: it lists every
field with its meaning and unit, applies `section.field=value` from the command line, checks
types, choices and ranges, and goes to JSON and back. Every failure names the field, the value,
what is allowed, and the nearest name.
"""

from jumar.settings.changing import override
from jumar.settings.checking import checked
from jumar.settings.comparing import fixed_differences
from jumar.settings.components import Component
from jumar.settings.describing import FieldRow, describe
from jumar.settings.fields import setting, value_text
from jumar.settings.json_form import from_json, to_json

__all__ = [
    "Component",
    "FieldRow",
    "checked",
    "describe",
    "fixed_differences",
    "from_json",
    "override",
    "setting",
    "to_json",
    "value_text",
]
