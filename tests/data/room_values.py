"""What holds of the dataclasses and the settings of a room, for the tests of each room."""

import dataclasses
from types import ModuleType
from typing import Any


def values_of(*modules: ModuleType) -> dict[str, tuple[bool, bool]]:
    """The dataclasses that modules define: whether each is compared by its content, and whether
    all of its fields are given by name.

    Every one of them has to be frozen: they are shared between samples, workers and runs.
    """
    found: dict[str, tuple[bool, bool]] = {}
    for module in modules:
        for name, each in vars(module).items():
            if isinstance(each, type) and each.__module__ == module.__name__:
                params: Any = getattr(each, "__dataclass_params__", None)
                if "__dataclass_params__" in vars(each):
                    assert params.frozen, f"{name} can be changed"
                    by_name = all(field.kw_only for field in dataclasses.fields(each))
                    found[name] = (params.eq, by_name)
    return found


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
