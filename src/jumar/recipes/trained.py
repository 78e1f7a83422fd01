"""A trained network with its weights on a device, as passed to a recipe."""

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
        policy: Already installed; use the network inside `policy.forward()`, and close the policy
            at the end.
        weights: The kind of weights in the network, `ema` or `model`.
        outputs: Names of the network's outputs, such as class names, if the run stores them.
    """

    recipe: Recipe
    name: str
    model: nn.Module
    checkpoint: Checkpoint
    weights: str
    outputs: tuple[str, ...] = ()
    device: Device
    policy: PrecisionPolicy
