"""The network side of exchanging weights between TensorFlow and a recipe."""

import contextlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from jumar.models.bert import names as bert_names
from jumar.models.tf_layout import TfNames
from jumar.models.unfilled import Unfilled
from jumar.recipes.recipe import Recipe
from jumar.recipes.registry import create_recipe, list_recipes
from jumar.weights.tensor_types import TensorEntry

Weights = Mapping[str, torch.Tensor]

_WITHOUT_NETWORK: Mapping[str, Callable[[Sequence[str]], TfNames]] = {"bert": bert_names.tf_names}
"""Networks without a recipe whose names can be translated, because they determine its weights."""


@dataclass(frozen=True, kw_only=True)
class Network:
    """A network, as far as its weights are concerned.

    Attributes:
        name: Name of the recipe, or of the network that is translated without one.
        names: The names of its weights in TensorFlow.
        weights: Its `state_dict`, freshly initialised if requested; without a recipe, zeros that
            take no memory.
        trained: Which of the weights an optimizer changes.
        recipe: The recipe; None if there is none.
    """

    name: str
    names: TfNames
    weights: Weights
    trained: frozenset[str]
    recipe: Recipe | None

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Shapes of the weights."""
        return {name: tuple(tensor.shape) for name, tensor in self.weights.items()}

    @property
    def keeps_slots(self) -> bool:
        """Whether the recipe's optimizers keep the same state per weight as the original's."""
        if self.recipe is None or not self.names.optimizers:
            return False
        kinds = {settings.optimizer.kind for settings in self.recipe.optimization().values()}
        return kinds == {one.kind for one in self.names.optimizers}


def network_of(recipe: Recipe, name: str, *, initialized: bool = False) -> Network:
    """The network of a recipe.

    Args:
        recipe: The recipe.
        name: Its name.
        initialized: Initialise the weights, in case some are not replaced; takes seconds if there
            are many.

    Raises:
        UserError: The recipe cannot build it without data, or has no TensorFlow names for it.
    """
    with contextlib.nullcontext() if initialized else Unfilled():
        model = recipe.build_model()
    trained = [key for key, value in model.named_parameters() if value.requires_grad]
    return Network(
        name=name,
        names=recipe.tf_names(model),
        weights=model.state_dict(),
        trained=frozenset(trained),
        recipe=recipe,
    )


def network_named(
    name: str,
    assignments: Sequence[str],
    entries: Mapping[str, TensorEntry],
    *,
    initialized: bool = False,
) -> Network:
    """The network of the recipe with that name, or of one that can be translated without a recipe.

    Args:
        name: A recipe, or `bert`.
        assignments: Changed fields of the recipe.
        entries: The file's tensors, in either naming; without a recipe they define the weights.
        initialized: See `network_of`.

    Raises:
        UserError: There is no such recipe; see `network_of` for more.
    """
    to_tf_names = _WITHOUT_NETWORK.get(name)
    if to_tf_names is None or any(row.name == name for row in list_recipes()):
        recipe = create_recipe(name, assignments)
        recipe = recipe.fitted_to({key: entry.shape for key, entry in entries.items()})
        return network_of(recipe, name, initialized=initialized)
    names = to_tf_names(list(entries))
    weights: dict[str, torch.Tensor] = {}
    for variable in names.variables:
        shape: tuple[int, ...] = ()
        if variable.tf_name in entries:
            tf_array = np.broadcast_to(np.float32(0), entries[variable.tf_name].shape)
            shape = variable.layout.to_torch(tf_array).shape
        elif variable.name in entries:
            shape = entries[variable.name].shape
        weights[variable.name] = torch.zeros(()).expand(shape)
    return Network(name=name, names=names, weights=weights, trained=frozenset(weights), recipe=None)
