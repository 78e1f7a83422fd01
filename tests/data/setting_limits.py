"""The limits of the settings of a room, for the tests of each room."""

import dataclasses
from typing import Any


def limits_of(settings: Any) -> dict[str, tuple[Any, ...]]:
    """Default, smallest and largest value of each setting of its own class, and whether a resumed
    run may change it.
    """
    return {
        field.name: (
            getattr(settings, field.name),
            field.metadata["minimum"],
            field.metadata["maximum"],
            field.metadata["changeable"],
        )
        for field in dataclasses.fields(settings)
        if field.name in vars(type(settings))["__annotations__"]
    }
