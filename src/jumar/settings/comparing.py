"""The differences between two settings trees."""

import dataclasses
from collections.abc import Iterator
from typing import Any

from jumar.settings.components import Component


def fixed_differences(before: Any, after: Any, prefix: str = "") -> Iterator[tuple[str, Any, Any]]:
    """The fields that differ but must not when a run is resumed.

    Args:
        before: The stored settings.
        after: The new settings, of the same recipe.
        prefix: The path of both within the recipe, with a final dot.

    Yields:
        Path, value before, value after.
    """
    for field in dataclasses.fields(after):
        path = f"{prefix}{field.name}"
        old_value, new_value = getattr(before, field.name), getattr(after, field.name)
        if old_value == new_value or field.metadata.get("changeable"):
            continue
        if type(old_value) is type(new_value) and dataclasses.is_dataclass(old_value):
            yield from fixed_differences(old_value, new_value, f"{path}.")
        elif isinstance(old_value, Component) and isinstance(new_value, Component):
            yield path, old_value.kind, new_value.kind
        else:
            yield path, old_value, new_value
