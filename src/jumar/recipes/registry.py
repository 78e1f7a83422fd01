"""Recipes by name: the built-in ones and those from a user's own modules."""

import importlib
import inspect
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from jumar.ground.errors import UserError, unknown_name
from jumar.recipes.own_modules import import_named
from jumar.recipes.recipe import Recipe
from jumar.settings import checked, override, to_json

R = TypeVar("R", bound=Recipe)

_RECIPES: dict[str, Callable[[], Recipe]] = {}
_RANKS: dict[str, int] = {}


@dataclass(frozen=True, kw_only=True)
class RecipeRow:
    """One line of `jumar recipes list`."""

    name: str
    summary: str
    module: str


def register(name: str, *, ranks: int = 1) -> Callable[[Callable[[], R]], Callable[[], R]]:
    """Register the recipe that a function returns under a name.

    Args:
        name: For instance `my-net`; names of built-in recipes are rejected.
        ranks: The number of ranks for which its batch and learning rate were chosen.
    """

    def keep(function: Callable[[], R]) -> Callable[[], R]:
        registered = _RECIPES.get(name)
        if registered is not None and registered.__module__ != function.__module__:
            raise UserError(
                f"the recipe '{name}' already exists, in {registered.__module__}",
                where=function.__module__,
                todo="Register it under another name.",
            )
        _RECIPES[name] = function
        _RANKS[name] = ranks
        return function

    return keep


def create_recipe(name: str, assignments: Sequence[str] = ()) -> Recipe:
    """Create the recipe of that name, with its defaults.

    Args:
        name: Name of the recipe.
        assignments: Changes of fields; see `override`.

    Raises:
        UserError: There is no such recipe, or an assignment is not valid.
    """
    _load_built_in()
    if name not in _RECIPES:
        raise unknown_name("recipe", name, _RECIPES)
    return override(checked(_RECIPES[name](), where=f"recipe {name}"), assignments)


def recipe_settings(name: str, assignments: Sequence[str] = ()) -> dict[str, Any]:
    """Return all settings of a recipe as JSON values; see `create_recipe`."""
    return to_json(create_recipe(name, assignments))


def intended_ranks(name: str) -> int:
    """Return the number of ranks for which a recipe's batch and learning rate were chosen."""
    return _RANKS[name]


def list_recipes() -> list[RecipeRow]:
    """Return all recipes, sorted by name."""
    _load_built_in()
    return [
        RecipeRow(
            name=name,
            summary=(inspect.getdoc(function) or "").split("\n", 1)[0],
            module=function.__module__,
        )
        for name, function in sorted(_RECIPES.items())
    ]


def recipe_text(name: str) -> str:
    """Return a recipe's origin and choices: the docstrings of its module and its function."""
    create_recipe(name)
    function = _RECIPES[name]
    module = sys.modules[function.__module__]
    texts = [inspect.getdoc(module) or "", inspect.getdoc(function) or ""]
    return "\n\n".join(text for text in texts if text)


def import_modules(names: Sequence[str]) -> None:
    """Import a user's own modules, which may register recipes and other components.

    Raises:
        UserError: A module does not exist, or importing it fails.
    """
    # Load the built-in recipes first, so that a user's recipe cannot take the name of one.
    _load_built_in()
    import_named(names)


def _load_built_in() -> None:
    for module in (
        "alexnet",
        "bert",
        "bert_tasks",
        "biggan128",
        "ds_cnn",
        "east",
        "nlrn",
        "psenet",
        "resnext50",
        "videnn",
        "vqvae",
        "vqvae_prior",
    ):
        importlib.import_module(f"jumar.recipes.{module}")
