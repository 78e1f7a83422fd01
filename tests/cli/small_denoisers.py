"""Denoisers for `--import` that can be distinguished without training: they change their input."""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from jumar.data.denoising.denoise_sets import DenoisingData
from jumar.recipes.denoising import DenoisingNetwork, DenoisingRecipe
from jumar.recipes.registry import register
from jumar.training.optimizers import Momentum
from jumar.training.settings import TrainingSettings


class Inverse(nn.Module):
    """The negative of an image, plus a number that training leaves alone."""

    def __init__(self) -> None:
        super().__init__()
        self.shift = nn.Parameter(torch.zeros(()))

    def forward(self, noisy: Tensor) -> Tensor:
        return 1 - noisy + self.shift


@dataclass(frozen=True, kw_only=True)
class InverseNetwork(DenoisingNetwork):
    """Settings of `Inverse`: none."""

    def create(self, *, channels: int) -> nn.Module:
        """For any number of channels."""
        del channels
        return Inverse()


class Previous(DenoisingRecipe):
    """Gives for each frame the one before it, the first one for the first."""

    def denoise_frames(self, model: nn.Module, frames: Iterator[Tensor]) -> Iterator[Tensor]:
        """Two frames are kept at a time."""
        before: Tensor | None = None
        for frame in frames:
            yield 1 - model(frame if before is None else before)
            before = frame

    def frames_before(self) -> int:
        """One."""
        return 1


class Brightest(DenoisingRecipe):
    """Gives each pixel the highest level that it has had so far, for which a clip is needed."""

    def denoise_frames(self, model: nn.Module, frames: Iterator[Tensor]) -> Iterator[Tensor]:
        """One frame is kept."""
        highest: Tensor | None = None
        for frame in frames:
            level = 1 - model(frame)
            highest = level if highest is None else torch.maximum(highest, level)
            yield highest


SMALL = {
    "model": InverseNetwork(),
    "data": DenoisingData(patch_size=8, batch_size=8, patches_per_image=1, workers=0),
    "optimizer": Momentum(learning_rate=0.0),
    "training": TrainingSettings(duration="1it", evaluate_every=""),
}


@register("inverse")
def inverse() -> DenoisingRecipe:
    """Each image by itself."""
    return DenoisingRecipe(**SMALL)


@register("previous")
def previous() -> Previous:
    """Frames that belong together."""
    return Previous(**SMALL)


@register("brightest")
def brightest() -> Brightest:
    """Frames that need all before them."""
    return Brightest(**SMALL)
