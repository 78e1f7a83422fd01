"""The small recipe with a layer whose outputs exceed float16's range, if a weight is large."""

from dataclasses import dataclass, replace

from torch import nn

from jumar.recipes.classification import ClassificationRecipe
from jumar.recipes.registry import register
from jumar.settings import setting
from tests.cli.small_recipe import SmallNetwork, small


@dataclass(frozen=True, kw_only=True)
class OverflowingNetwork(SmallNetwork):
    """The small network with every weight of its last layer the same."""

    weight: float = setting(3e4, "each weight of the last layer")

    def create(self, *, num_classes: int, image_size: int) -> nn.Module:
        net = super().create(num_classes=num_classes, image_size=image_size)
        last = net.get_submodule("classifier")
        assert isinstance(last, nn.Linear)
        nn.init.constant_(last.weight, self.weight)
        return net


@register("overflowing")
def overflowing() -> ClassificationRecipe:
    """The small recipe with an overflow."""
    return replace(small(), model=OverflowingNetwork())
