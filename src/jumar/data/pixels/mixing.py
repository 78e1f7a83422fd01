"""Mixes training images and their labels in pairs: mixup and CutMix.

Papers: H. Zhang, M. Cisse, Y. Dauphin, D. Lopez-Paz, "mixup: Beyond Empirical Risk Minimization",
https://arxiv.org/abs/1710.09412; S. Yun et al., "CutMix: Regularization Strategy to Train Strong
Classifiers with Localizable Features", https://arxiv.org/abs/1905.04899.

Pairs are neighbours in the global batch: rows 0 and 1, 2 and 3, and so on, each mixed into the
other. The order of an epoch is a permutation, so a neighbour is a random sample. The random choices
for a pair depend on the seed and the keys of both.

Ranks and micro-batches are contiguous rows, so if their sizes are even, no pair is split, and the
result is the same on any number of ranks and workers. The host draws the parameters; the device
mixes the images, after colour changes and normalisation.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from jumar.data.samples import Batch, SampleKey
from jumar.ground.errors import UserError
from jumar.settings import Component, setting

_MIXING = 7
"""First entropy word; see `sampler.py`, `balanced.py` and `keyword_set.py` for others."""

LABEL, SHARE, BOX, OPACITY = "mixed_label", "own_share", "mixed_box", "mixed_opacity"
"""Additional tensors of a batch: the partner's label, int64 [N]; the weight of the sample's label,
float32 [N]; the box in which the partner is mixed in, int64 [N, 4] as top, left, bottom, right; and
its opacity there, float32 [N]."""


class Mix(NamedTuple):
    """How a pair is mixed; the same for both images.

    Attributes:
        box: Top, left, bottom, right of the area in which the partner is mixed in.
        opacity: Opacity of the partner in it; 1 replaces the image.
    """

    box: tuple[int, int, int, int]
    opacity: float

    def own_share(self, height: int, width: int) -> float:
        """Return the weight of the image's label: the fraction of the image that is left."""
        top, left, bottom, right = self.box
        return 1 - self.opacity * (bottom - top) * (right - left) / (height * width)


@dataclass(frozen=True, kw_only=True)
class MixingSettings(Component, ABC):
    """How to mix training images."""

    @abstractmethod
    def drawn(self, random: np.random.Generator, height: int, width: int) -> Mix | None:
        """Draw how to mix a pair of images; None to leave both unchanged."""


@dataclass(frozen=True, kw_only=True)
class NoMixing(MixingSettings, kind="none"):
    """No mixing."""

    def drawn(self, random: np.random.Generator, height: int, width: int) -> None:
        """Return None; see `MixingSettings.drawn`."""
        del random, height, width


@dataclass(frozen=True, kw_only=True)
class _SometimesMixed(MixingSettings):
    probability: float = setting(1.0, "Fraction of pairs that are mixed.", minimum=0, maximum=1)

    def drawn(self, random: np.random.Generator, height: int, width: int) -> Mix | None:
        """See `MixingSettings.drawn`."""
        if random.random() >= self.probability:
            return None
        return self._mix(random, height, width)

    @abstractmethod
    def _mix(self, random: np.random.Generator, height: int, width: int) -> Mix:
        """Draw how to mix a pair that is to be mixed."""


@dataclass(frozen=True, kw_only=True)
class Mixup(_SometimesMixed, kind="mixup"):
    """mixup: both images blended."""

    alpha: float = setting(0.2, "Both parameters of the beta distribution of shares.", minimum=0.01)

    def _mix(self, random: np.random.Generator, height: int, width: int) -> Mix:
        return overlaid(random, self.alpha, height, width)


@dataclass(frozen=True, kw_only=True)
class CutMix(_SometimesMixed, kind="cutmix"):
    """CutMix: a box of one image in the other."""

    alpha: float = setting(1.0, "Both parameters of the beta distribution of areas.", minimum=0.01)

    def _mix(self, random: np.random.Generator, height: int, width: int) -> Mix:
        return pasted(random, self.alpha, height, width)


@dataclass(frozen=True, kw_only=True)
class MixupOrCutMix(_SometimesMixed, kind="mixup-or-cutmix"):
    """mixup or CutMix for each pair."""

    mixup_alpha: float = setting(0.8, "Alpha of mixup.", minimum=0.01)
    cutmix_alpha: float = setting(1.0, "Alpha of CutMix.", minimum=0.01)
    cutmix_share: float = setting(
        0.5, "Fraction of mixed pairs that use CutMix.", minimum=0, maximum=1
    )

    def _mix(self, random: np.random.Generator, height: int, width: int) -> Mix:
        if random.random() < self.cutmix_share:
            return pasted(random, self.cutmix_alpha, height, width)
        return overlaid(random, self.mixup_alpha, height, width)


def overlaid(random: np.random.Generator, alpha: float, height: int, width: int) -> Mix:
    """Draw the parameters of mixup: the partner's share from Beta(alpha, alpha)."""
    return Mix((0, 0, height, width), float(random.beta(alpha, alpha)))


def pasted(random: np.random.Generator, alpha: float, height: int, width: int) -> Mix:
    """Draw the parameters of CutMix: a box of the image's aspect ratio, clipped at the edges.

    Its centre is drawn uniformly; its area is 1 - lambda of the image, with lambda drawn from
    Beta(alpha, alpha).
    """
    side = np.sqrt(1 - random.beta(alpha, alpha))
    half_height, half_width = int(height * side) // 2, int(width * side) // 2
    row, column = int(random.integers(height)), int(random.integers(width))
    top, left = max(row - half_height, 0), max(column - half_width, 0)
    bottom, right = min(row + half_height, height), min(column + half_width, width)
    return Mix((top, left, bottom, right), 1.0)


@dataclass(frozen=True, kw_only=True)
class PairMixer:
    """Draws how to mix the pairs of a batch.

    Attributes:
        settings: How to mix.
        seed: The run's seed.
    """

    settings: MixingSettings
    seed: int

    def __call__(self, batch: Batch, keys: Sequence[SampleKey]) -> Batch:
        """Add `mixed_label`, `own_share`, `mixed_box` and `mixed_opacity` to a batch of `image` and
        `label`.

        Raises:
            UserError: An image has no partner.
        """
        if len(keys) % 2:
            raise uneven("data.batch_size", len(keys))
        height, width = batch["image"].shape[-2:]
        no_mix = Mix((0, 0, 0, 0), 0.0)
        mixes = [
            self._drawn(first, second, height, width) or no_mix
            for first, second in zip(keys[::2], keys[1::2], strict=True)
        ]
        mixes = [mix for mix in mixes for _ in range(2)]
        return {
            **batch,
            LABEL: partners(batch["label"]),
            SHARE: torch.tensor([mix.own_share(height, width) for mix in mixes]),
            BOX: torch.tensor([mix.box for mix in mixes], dtype=torch.int64),
            OPACITY: torch.tensor([mix.opacity for mix in mixes]),
        }

    def _drawn(self, first: SampleKey, second: SampleKey, height: int, width: int) -> Mix | None:
        random = np.random.default_rng((_MIXING, self.seed, *first, *second))
        return self.settings.drawn(random, height, width)


def uneven(field: str, size: int) -> UserError:
    """Return the error for samples that cannot be mixed because one has no partner.

    Args:
        field: The setting that determines their number on a rank or in a part of its batch.
        size: Number of samples.
    """
    return UserError(
        f"images are mixed in pairs, and {size} is odd",
        where=field,
        todo="Choose an even number, on every rank.",
    )


def partners(values: Tensor) -> Tensor:
    """Return each sample's partner, [N, ...]: rows 1, 0, 3, 2 and so on."""
    rows = torch.arange(len(values), device=values.device)
    return values[rows ^ 1]


def mixed(images: Tensor, batch: Batch) -> Tensor:
    """Mix images with their partners as the batch specifies.

    Args:
        images: Float [N, channels, height, width].
        batch: A batch of `PairMixer`; for any other, the images are returned.
    """
    if BOX not in batch:
        return images
    top, left, bottom, right = (edge[:, None, None, None] for edge in batch[BOX].unbind(1))
    height, width = images.shape[-2:]
    rows = torch.arange(height, device=images.device)[:, None]
    columns = torch.arange(width, device=images.device)
    inside = (rows >= top) & (rows < bottom) & (columns >= left) & (columns < right)
    weight = inside * batch[OPACITY].to(images.dtype)[:, None, None, None]
    return torch.lerp(images, partners(images), weight)
