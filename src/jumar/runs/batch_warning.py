"""Warn if a changed batch size does not fit the recipe's learning rate."""

import math
from collections.abc import Iterator, Sequence

from jumar.ground.text import counted
from jumar.recipes.recipe import Recipe
from jumar.recipes.registry import create_recipe, intended_ranks
from jumar.settings import field_of
from jumar.training.optimizers import OptimizerSettings
from jumar.training.schedules import ScheduleSettings


def batch_warnings(
    name: str, recipe: Recipe, assignments: Sequence[str], global_batch: int
) -> Iterator[str]:
    """Yield a warning for each objective whose learning rate was chosen for another batch size.

    There are no warnings if an optimizer or schedule was set, even to the recipe's own value.

    Args:
        name: The recipe's name.
        recipe: The recipe with all changes.
        assignments: The changed settings.
        global_batch: Samples per step over all ranks.
    """
    original = create_recipe(name)
    intended = original.data.batch_size * intended_ranks(name)
    if global_batch == intended or any(
        _sets_rate(original, assignment) for assignment in assignments
    ):
        return
    ratio = global_batch / intended
    ranks = intended_ranks(name)
    breakdown = f" ({counted(ranks, 'rank')} x {original.data.batch_size})" if ranks > 1 else ""
    for objective, settings in original.optimization().items():
        if recipe.optimization()[objective] != settings:
            continue
        rate = settings.optimizer.learning_rate
        suffix = f" of '{objective}'" if len(original.optimization()) > 1 else ""
        yield (
            f"warning: the learning rate{suffix} is the recipe's {rate:g}, which belongs to a "
            f"batch of {intended}{breakdown}; for {global_batch} the linear rule gives "
            f"{rate * ratio:.4g}, the square-root rule {rate * math.sqrt(ratio):.4g} "
            "(--set optimizer.learning_rate=...)"
        )


def _sets_rate(recipe: Recipe, assignment: str) -> bool:
    """Return whether an assignment changes an optimizer or schedule anywhere in the recipe."""
    settings: object = recipe
    for key in field_of(assignment).split("."):
        settings = getattr(settings, key, None)
        if isinstance(settings, OptimizerSettings | ScheduleSettings):
            return True
    return False
