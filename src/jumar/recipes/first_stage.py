"""Store the settings of a first-stage run in the run of its second stage.

Together with the first stage's weights, which its checkpoints contain, a second stage can then be
resumed, scored and used for generation even if the first-stage run was deleted, moved, or trained
again with other settings.
"""

from functools import reduce
from pathlib import Path

from jumar.ground.paths import expanded, is_file, is_folder, resolved
from jumar.recipes.recipe import Recipe
from jumar.settings import override
from jumar.training.checkpoint_retention import list_checkpoints
from jumar.training.run_directory import RunDirectory, read_json, write_json


def keep_first_stage(recipe: Recipe, run: RunDirectory) -> None:
    """Copy the settings of a recipe's first stage, if it has one, into its own run.

    Args:
        recipe: The second stage's recipe.
        run: The second stage's run.

    Raises:
        UserError: The run cannot be written to.
    """
    path = _first_stage_path(recipe)
    if path is None:
        return
    if is_folder(path):
        write_json(run.first_stage, RunDirectory(path).read_recipe())
    elif resolved(path) != resolved(run.first_stage):
        write_json(run.first_stage, read_json(path))


def with_kept_first_stage(recipe: Recipe, run: RunDirectory) -> Recipe:
    """Return the recipe with its first stage replaced by the settings stored in its run.

    The recipe is unchanged if the run has no checkpoint and thus lacks the first stage's weights.

    Args:
        recipe: The run's recipe.
        run: The second stage's run.
    """
    if (
        _first_stage_path(recipe) is None
        or not is_file(run.first_stage)
        or not list_checkpoints(run.checkpoints)
    ):
        return recipe
    return override(recipe, [f"{recipe.first_stage_field}={run.first_stage}"])


def _first_stage_path(recipe: Recipe) -> Path | None:
    if not recipe.first_stage_field:
        return None
    value: str = reduce(getattr, recipe.first_stage_field.split("."), recipe)  # pyright: ignore[reportAssignmentType]
    return expanded(value) if value else None
