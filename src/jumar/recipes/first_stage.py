"""What a second stage keeps of its first-stage run: the settings; it already has the weights.

So a second stage can be resumed, scored and used for generation even if the first-stage run is
gone, was moved, or was trained again with other settings.
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
    path = _place(recipe)
    if path is None:
        return
    if is_folder(path):
        write_json(run.first_stage, RunDirectory(path).read_recipe())
    elif resolved(path) != resolved(run.first_stage):
        write_json(run.first_stage, read_json(path))


def with_kept_first_stage(recipe: Recipe, run: RunDirectory) -> Recipe:
    """The recipe with its first stage replaced by the settings that its run kept.

    Args:
        recipe: The run's recipe.
        run: Without a checkpoint it lacks the first stage's weights; the recipe is then unchanged.
    """
    if _place(recipe) is None or not is_file(run.first_stage):
        return recipe
    if not list_checkpoints(run.checkpoints):
        return recipe
    return override(recipe, [f"{recipe.first_stage_field}={run.first_stage}"])


def _place(recipe: Recipe) -> Path | None:
    if not recipe.first_stage_field:
        return None
    value: str = reduce(getattr, recipe.first_stage_field.split("."), recipe)  # pyright: ignore[reportAssignmentType]
    return expanded(value) if value else None
