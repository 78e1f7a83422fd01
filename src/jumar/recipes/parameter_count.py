"""The number of parameters of a recipe's network, and how many of them are trained."""

import torch

from jumar.ground.errors import UserError
from jumar.models.unfilled import Unfilled
from jumar.recipes.recipe import Recipe
from jumar.training.freezing import find_frozen


def parameter_text(recipe: Recipe) -> str:
    """Describe the number of parameters, or why it is not known, without allocating them.

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
    trained = sum(parameter.numel() for parameter in model.parameters() if parameter.requires_grad)
    until = f" until {recipe.transfer.unfreeze_at}" if recipe.transfer.unfreeze_at else ""
    if trained == total:
        return f"{total:,}, all trained"
    return f"{total:,}, {trained:,} trained, {total - trained:,} frozen{until}"
