"""A recipe for `--import` that fails as the environment variable FAILS_WITH says."""

import os

from jumar.recipes.classification import ClassificationRecipe
from jumar.recipes.registry import register
from tests.cli.small_recipe import small

_ERRORS: dict[str, Exception] = {
    "key": KeyError("x"),
    "memory": MemoryError(),
    "torch": RuntimeError(
        "[enforce fail at alloc_cpu.cpp:1] DefaultCPUAllocator: can't allocate memory: you tried "
        "to allocate 10737418240 bytes. Error code 12 (Cannot allocate memory)"
    ),
}


@register("failing")
def failing() -> ClassificationRecipe:
    """Raises instead of giving a recipe."""
    if error := _ERRORS.get(os.environ.get("FAILS_WITH", "")):
        raise error
    return small()
