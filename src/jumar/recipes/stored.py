"""Recreate a run's recipe from the run directory."""

from collections.abc import Mapping, Sequence
from typing import Any

from jumar.ground.paths import expanded, is_file, is_folder, missing
from jumar.recipes.first_stage import with_kept_first_stage
from jumar.recipes.own_modules import check_named
from jumar.recipes.recipe import Recipe
from jumar.recipes.registry import create_recipe, import_modules
from jumar.settings import from_json
from jumar.training.run_directory import RunDirectory, read_json, recorded_recipe


def stored_recipe(
    run: RunDirectory, imports: Sequence[str] = (), *, as_recorded: bool = False
) -> tuple[str, list[str], Recipe]:
    """Return the name, imported modules and settings of a run's recipe.

    Args:
        run: The run.
        imports: The modules to import first; modules that the run recorded are imported only if
            they are among these, or were named earlier in this process.
        as_recorded: Whether a second stage refers to its first-stage run, instead of to the copy
            of its settings.

    Raises:
        UserError: There is no run, its recipe cannot be recreated, or it needs a module that was
            not named.
    """
    name, modules, recipe = _recorded(run.read_recipe(), imports, where=str(run.recipe))
    return name, modules, recipe if as_recorded else with_kept_first_stage(recipe, run)


def open_first_stage(run_or_file: str, *, field: str) -> tuple[str, Recipe, RunDirectory | None]:
    """Return the name and recipe of a first stage, and its run.

    Args:
        run_or_file: The run, or the file in which a second stage stores the settings of the first.
            For a file, the returned run is None: the weights are in the second stage's checkpoints.
        field: The field of the second stage's recipe, for error messages.

    Raises:
        UserError: There is no such run.
    """
    path = expanded(run_or_file)
    if is_file(path):
        name, _, recipe = _recorded(read_json(path), (), where=run_or_file)
        return name, recipe, None
    if not is_folder(path):
        raise missing(
            path,
            "run directory, from which the second stage starts",
            where=field,
            more=f"If it was moved, add --set {field}=DIRECTORY, also with --resume.",
        )
    run = RunDirectory(path)
    name, _, recipe = stored_recipe(run)
    return name, recipe, run


def _recorded(
    stored: Mapping[str, Any], imports: Sequence[str], *, where: str
) -> tuple[str, list[str], Recipe]:
    content = recorded_recipe(stored, where=where)
    import_modules(imports)
    check_named(content.imports, where)
    modules = list(dict.fromkeys([*content.imports, *imports]))
    recipe = from_json(create_recipe(content.recipe), content.settings, where=where)
    return content.recipe, modules, recipe
