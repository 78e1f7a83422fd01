"""How many parameters a recipe's network has, and how many of them train."""

import torch

from jumar.ground.errors import UserError
from jumar.models.unfilled import Unfilled
from jumar.recipes.recipe import Recipe
from jumar.training.freezing import find_frozen


def parameter_text(recipe: Recipe) -> str:
    """The numbers in words, or why they are not known; nothing is allocated.

    Raises:
        UserError: A pattern of `transfer.freeze` matches nothing.
    """
    try:
        with torch.device("meta"), Unfilled():
            model = recipe.build_model()
    except UserError as error:
        return f"not known: {error.what} ({error.where})" if error.where else error.what
    frozen = find_frozen(model, recipe.transfer, steps_per_epoch=1)
    if frozen is not None:
        frozen.begin(model)
    total = sum(parameter.numel() for parameter in model.parameters())
    trained = sum(each.numel() for each in model.parameters() if each.requires_grad)
    until = f" until {recipe.transfer.unfreeze_at}" if recipe.transfer.unfreeze_at else ""
    if trained == total:
        return f"{total:,}, all trained"
    return f"{total:,}, {trained:,} trained, {total - trained:,} frozen{until}"
