"""What a second stage keeps of the run that it began with: the settings; it has the weights.

So a second stage is resumed, scored and drawn with wherever it lies, when the first one is gone,
was moved, or was trained anew with other settings.
"""

from functools import reduce
from pathlib import Path

from jumar.ground.paths import expanded, is_file, is_folder, resolved
from jumar.recipes.recipe import Recipe
from jumar.settings import override
from jumar.training.kept_checkpoints import list_checkpoints
from jumar.training.run_directory import RunDirectory, read_json, write_json


def keep_first_stage(recipe: Recipe, run: RunDirectory) -> None:
    """Copy the settings of a recipe's first stage, if it has one, into its own run.

    Args:
        recipe: Of the second stage.
        run: Of the second stage.

    Raises:
        UserError: The run cannot be written to.
    """
    place = _place(recipe)
    if place is None:
        return
    if is_folder(place):
        write_json(run.first_stage, RunDirectory(place).read_recipe())
    elif resolved(place) != resolved(run.first_stage):
        write_json(run.first_stage, read_json(place))


def with_kept_first_stage(recipe: Recipe, run: RunDirectory) -> Recipe:
    """The recipe with the settings that its run kept in the place of its first stage.

    Args:
        recipe: As the run has it.
        run: Without a checkpoint it lacks the first stage's weights; the recipe stays as it is.
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
