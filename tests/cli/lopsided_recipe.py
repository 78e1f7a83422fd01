"""The small recipe with a layer that can behave differently on rank 1."""

import os
from dataclasses import dataclass, replace

import torch
from torch import nn

from jumar.ground.errors import UserError
from jumar.recipes.classification import ClassificationRecipe
from jumar.recipes.registry import register
from jumar.settings import setting
from tests.cli.small_recipe import SmallNetwork, small


class Lopsided(nn.Module):
    """Passes its input on; on rank 1 it scales it, fails or kills the process, if told to."""

    def __init__(self, fault: str) -> None:
        super().__init__()
        self.fault = fault if os.environ.get("RANK") == "1" else "none"

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        if self.fault == "dies":
            os._exit(9)
        if self.fault == "fails":
            raise UserError("rank 1 has no such data")
        return values * (1.001 if self.fault == "scales" else 1.0)


@dataclass(frozen=True, kw_only=True)
class LopsidedNetwork(SmallNetwork):
    """The small network with such a layer."""

    fault: str = setting("none", "what happens on rank 1: none, scales, fails or dies")

    def create(self, *, num_classes: int, image_size: int) -> nn.Module:
        net = super().create(num_classes=num_classes, image_size=image_size)
        return nn.Sequential(net, Lopsided(self.fault))


@register("lopsided")
def lopsided() -> ClassificationRecipe:
    """The small recipe, made to differ between ranks."""
    return replace(small(), model=LopsidedNetwork())
