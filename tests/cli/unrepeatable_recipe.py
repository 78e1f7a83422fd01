"""The small recipe with a layer that is not determined by the run's seed."""

import os
from dataclasses import dataclass, replace

import torch
from torch import nn

from jumar.recipes.classification import ClassificationRecipe
from jumar.recipes.registry import register
from tests.cli.small_recipe import SmallNetwork, small


class Shaken(nn.Module):
    """Adds another number in every process and step."""

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        return values + int.from_bytes(os.urandom(4), "big") / 2**32


@dataclass(frozen=True, kw_only=True)
class ShakenNetwork(SmallNetwork):
    """The small network with such a layer."""

    def create(self, *, num_classes: int, image_size: int) -> nn.Module:
        net = super().create(num_classes=num_classes, image_size=image_size)
        return nn.Sequential(net, Shaken(), nn.Tanh())


@register("unrepeatable")
def unrepeatable() -> ClassificationRecipe:
    """The small recipe with noise of its own."""
    return replace(small(), model=ShakenNetwork())
