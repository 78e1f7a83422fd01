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
        name: For instance `my-net`; the name of a built-in recipe is rejected.
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
    """The recipe of that name, with its defaults.

    Args:
        name: Its name.
        assignments: Fields that are changed; see `override`.

    Raises:
        UserError: There is no such recipe, or a field cannot be changed like that.
    """
    _load_built_in()
    if name not in _RECIPES:
        raise unknown_name("recipe", name, _RECIPES)
    return override(checked(_RECIPES[name](), where=f"recipe {name}"), assignments)


def recipe_settings(name: str, assignments: Sequence[str] = ()) -> dict[str, Any]:
    """All settings of a recipe, as JSON; see `create_recipe`."""
    return to_json(create_recipe(name, assignments))


def intended_ranks(name: str) -> int:
    """The number of ranks for which a recipe's batch and learning rate were chosen."""
    return _RANKS[name]


def list_recipes() -> list[RecipeRow]:
    """All recipes, by name."""
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
    """A recipe's origin and design choices: the docstrings of its module and its function."""
    create_recipe(name)
    function = _RECIPES[name]
    module = sys.modules[function.__module__]
    texts = [inspect.getdoc(module) or "", inspect.getdoc(function) or ""]
    return "\n\n".join(text for text in texts if text)


def import_modules(names: Sequence[str]) -> None:
    """Import a user's own modules, so that they can register recipes, sources and the like.

    Raises:
        UserError: There is no such module, or importing it fails.
    """
    # Built-in recipes first, so that a user's recipe with the same name is rejected on registering.
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
