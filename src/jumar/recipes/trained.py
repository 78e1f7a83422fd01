"""A trained network as a recipe is handed it: with its weights, on a device."""

from dataclasses import dataclass

from torch import nn

from jumar.devices.contract import Device
from jumar.precision.policy import PrecisionPolicy
from jumar.recipes.recipe import Recipe
from jumar.training.checkpoint import Checkpoint


@dataclass(frozen=True, kw_only=True)
class Trained:
    """A network with trained weights in evaluation mode, on its device.

    Attributes:
        policy: In force; use the network inside `policy.forward()`, and close it in the end.
        weights: `ema` or `model`: which of the two are in the network.
        outputs: What the network's outputs mean, such as the names of the classes, where the run
            knows it.
    """

    recipe: Recipe
    name: str
    model: nn.Module
    checkpoint: Checkpoint
    weights: str
    outputs: tuple[str, ...] = ()
    device: Device
    policy: PrecisionPolicy
