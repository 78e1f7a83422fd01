"""The differences between two settings trees."""

import dataclasses
from collections.abc import Iterator
from typing import Any

from jumar.settings.components import Component


def fixed_differences(before: Any, after: Any, prefix: str = "") -> Iterator[tuple[str, Any, Any]]:
    """The fields that differ but must not when a run is resumed.

    Args:
        before: The stored settings.
        after: Settings of the same recipe.
        prefix: The path of both within the recipe.

    Yields:
        Path, value before, value after.
    """
    for field in dataclasses.fields(after):
        path = f"{prefix}{field.name}"
        one, other = getattr(before, field.name), getattr(after, field.name)
        if one == other or field.metadata.get("changeable"):
            continue
        if type(one) is type(other) and dataclasses.is_dataclass(one):
            yield from fixed_differences(one, other, f"{path}.")
        elif isinstance(one, Component) and isinstance(other, Component):
            yield path, one.kind, other.kind
        else:
            yield path, one, other
