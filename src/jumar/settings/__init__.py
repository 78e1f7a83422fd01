"""Settings: frozen dataclasses whose fields document themselves.

A recipe is a tree of such dataclasses. Only this room accesses their fields generically: it lists
every field with its meaning and unit, applies `section.field=value` from the command line, checks
types, choices and ranges, and converts to JSON and back. Every error names the field, the value,
the allowed values, and the nearest name.
"""

from jumar.settings.changing import field_of, override
from jumar.settings.checking import check_intervals, checked
from jumar.settings.comparing import fixed_differences
from jumar.settings.components import Component
from jumar.settings.describing import FieldRow, describe
from jumar.settings.fields import setting, value_text
from jumar.settings.json_form import from_json, to_json

__all__ = [
    "Component",
    "FieldRow",
    "check_intervals",
    "checked",
    "describe",
    "field_of",
    "fixed_differences",
    "from_json",
    "override",
    "setting",
    "to_json",
    "value_text",
]
