"""The networks whose weights are exchanged with TensorFlow."""

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
"""Networks that need no recipe, since the names of their weights determine the network."""
_MAX_NAMED = 8


@dataclass(frozen=True, kw_only=True)
class Network:
    """A network's weights and their names in TensorFlow.

    Attributes:
        name: Name of the recipe, or of a network that needs no recipe.
        names: The names of its weights in TensorFlow.
        weights: Its `state_dict`, freshly initialised if requested; without a recipe, zeros that
            occupy no memory.
        trained: Names of the weights that an optimizer changes.
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
        """Whether the recipe's optimizers have the same state per weight as the original's."""
        if self.recipe is None or not self.names.optimizers:
            return False
        kinds = {settings.optimizer.kind for settings in self.recipe.optimization().values()}
        return kinds == {optimizer.kind for optimizer in self.names.optimizers}


def network_of(recipe: Recipe, name: str, *, initialized: bool = False) -> Network:
    """Return the network of a recipe.

    Args:
        recipe: The recipe.
        name: Its name.
        initialized: Whether to initialise the weights, in case some are not replaced; this takes
            seconds for a large network.

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
    """Return the network of a recipe, or of `bert`, which needs no recipe.

    Args:
        name: A recipe, or `bert`.
        assignments: Changed fields of the recipe.
        entries: The file's tensors, in either naming; without a recipe they define the weights.
        initialized: See `network_of`.

    Raises:
        UserError: There is no such recipe; see also `network_of`.
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


def listed(title: str, names: Sequence[str], separator: str = ", ") -> str:
    """Return a title with the number of names and the first few of them."""
    examples = [*names[:_MAX_NAMED], "..."] if len(names) > _MAX_NAMED else names
    return f"{title} ({len(names)}): {separator.join(examples)}"
