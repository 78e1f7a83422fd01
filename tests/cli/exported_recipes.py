"""Denoisers for `--import` that cannot be exported as they are."""

from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from jumar.recipes.denoising import DenoisingNetwork, DenoisingRecipe
from jumar.recipes.registry import register
from jumar.training.settings import CheckpointSettings
from tests.cli.small_denoisers import Inverse, inverse


class Wavering(Inverse):
    """Computes something else while it is traced."""

    def forward(self, noisy: Tensor) -> Tensor:
        return super().forward(noisy) + (0.01 if torch.compiler.is_compiling() else 0)


class Undecided(Inverse):
    """Decides by the brightness of the image what it computes."""

    def forward(self, noisy: Tensor) -> Tensor:
        return super().forward(noisy if noisy.mean() > 0.5 else 1 - noisy)


@dataclass(frozen=True, kw_only=True)
class WaveringNetwork(DenoisingNetwork):
    """Settings of `Wavering`: none."""

    def create(self, *, channels: int) -> nn.Module:
        """For any number of channels."""
        del channels
        return Wavering()


@dataclass(frozen=True, kw_only=True)
class UndecidedNetwork(DenoisingNetwork):
    """Settings of `Undecided`: none."""

    def create(self, *, channels: int) -> nn.Module:
        """For any number of channels."""
        del channels
        return Undecided()


_SAVED = CheckpointSettings(every="1it")


@register("wavering")
def wavering() -> DenoisingRecipe:
    """A network whose graph is another one."""
    return replace(inverse(), model=WaveringNetwork(), checkpoints=_SAVED)


@register("undecided")
def undecided() -> DenoisingRecipe:
    """A network that no graph can hold."""
    return replace(inverse(), model=UndecidedNetwork(), checkpoints=_SAVED)
