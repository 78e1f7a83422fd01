"""Losses of the text detectors PSENet and EAST: those of the TensorFlow originals and the papers'.

All compare maps at a quarter of the image's size: float32 predictions with targets that are 0 or 1
(geometry: float32), and a mask that is 0 where nothing counts. All return sums over the images,
of which every term is already weighted, so that a loss is their sum.

The originals use one dice coefficient over the whole batch, which is not a sum over its images.
Each micro-batch and rank computes its own, and the loss is their mean, as on the originals' GPUs.
The papers' losses are computed per image, so that their gradients do not depend on how a batch is
split (except for batch norms).
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass

import torch
from torch import Tensor

from jumar.settings import Component, setting

_TINY = 1e-5
"""The originals' guard against division by zero; the papers state none."""

Terms = dict[str, Tensor]


def linear_dice(prediction: Tensor, target: Tensor, mask: Tensor) -> Tensor:
    """The dice coefficient over everything, without squares as in the originals; a scalar."""
    intersection = (target * prediction * mask).sum()
    return 2 * intersection / ((target * mask).sum() + (prediction * mask).sum() + _TINY)


def squared_dice(prediction: Tensor, target: Tensor, mask: Tensor) -> Tensor:
    """The dice coefficient of each image with squares, as in PSENet's paper; [N].

    Args:
        prediction: [N, height, width].
        target: The same.
        mask: The same.
    """
    predicted, right = prediction * mask, target * mask
    intersection = (predicted * right).sum(dim=(1, 2))
    return 2 * intersection / (predicted.square().sum((1, 2)) + right.square().sum((1, 2)) + _TINY)


@dataclass(frozen=True, kw_only=True)
class KernelLoss(Component, ABC):
    """PSENet's loss: that of the whole text, and that of the kernels within the text found."""

    text_weight: float = setting(
        0.7, "share of the whole text; the rest is the kernels'", minimum=0, maximum=1
    )

    @abstractmethod
    def terms(self, maps: Tensor, kernels: Tensor, mask: Tensor) -> Terms:
        """The terms `text` and `kernels`, weighted and summed over the images.

        Args:
            maps: Probabilities [N, kernels, height, width], the whole text last.
            kernels: 0 or 1, the same shape.
            mask: 0 or 1, [N, height, width].
        """

    def _weighted(self, text: Tensor, kernels: Tensor) -> Terms:
        return {"text": self.text_weight * text, "kernels": (1 - self.text_weight) * kernels}


@dataclass(frozen=True, kw_only=True)
class BatchDice(KernelLoss, kind="dice"):
    """The TensorFlow original's: linear dice over the whole batch, all pixels of the mask."""

    def terms(self, maps: Tensor, kernels: Tensor, mask: Tensor) -> Terms:
        """See `KernelLoss.terms`."""
        text_mask = mask * (maps[:, -1] >= 0.5)
        dice = [
            linear_dice(maps[:, number], kernels[:, number], text_mask)
            for number in range(maps.shape[1] - 1)
        ]
        text = 1 - linear_dice(maps[:, -1], kernels[:, -1], mask)
        # One value for all images, as a sum: it is divided by the number of images later.
        return self._weighted(len(maps) * text, len(maps) * (1 - torch.stack(dice).mean()))


@dataclass(frozen=True, kw_only=True)
class HardDice(KernelLoss, kind="dice_ohem"):
    """The paper's: squared dice of each image; only the hardest background pixels count."""

    negatives: float = setting(
        3.0, "pixels of background that count for each pixel of text, the hardest first", minimum=0
    )

    def terms(self, maps: Tensor, kernels: Tensor, mask: Tensor) -> Terms:
        """See `KernelLoss.terms`."""
        text_mask = mask * (maps[:, -1] >= 0.5)
        text = 1 - squared_dice(maps[:, -1], kernels[:, -1], self._hard(maps, kernels, mask))
        dice = [
            squared_dice(maps[:, number], kernels[:, number], text_mask)
            for number in range(maps.shape[1] - 1)
        ]
        return self._weighted(text.sum(), (1 - torch.stack(dice).mean(0)).sum())

    @torch.no_grad()
    def _hard(self, maps: Tensor, kernels: Tensor, mask: Tensor) -> Tensor:
        """The mask without easy background."""
        text = kernels[:, -1] * mask
        background = (1 - kernels[:, -1]) * mask
        negative_count = (self.negatives * text.sum((1, 2))).floor()
        negative_count = torch.minimum(negative_count, background.sum((1, 2))).long()
        # Text and masked pixels come last in this order, below every probability.
        scores = torch.where(background > 0, maps[:, -1], -1.0).flatten(1)
        sorted_scores = scores.sort(dim=1, descending=True).values
        last = sorted_scores.gather(1, (negative_count - 1).clamp(min=0).unsqueeze(1))
        # An image without text keeps no pixels; its dice is 0 with any mask.
        return text + (scores >= last).view_as(text) * background * (negative_count > 0).view(
            -1, 1, 1
        )


@dataclass(frozen=True, kw_only=True)
class BoxLoss(Component, ABC):
    """EAST's loss: that of the score, and that of the rotated boxes where there is text."""

    @abstractmethod
    def terms(
        self, score: Tensor, geometry: Tensor, target: Tensor, boxes: Tensor, mask: Tensor
    ) -> Terms:
        """The terms `score` and `geometry`, weighted and summed over the images.

        Args:
            score: Probabilities [N, height, width].
            geometry: Distances and angle, [N, 5, height, width].
            target: 0 or 1, [N, height, width].
            boxes: The true geometry where the target is 1, [N, 5, height, width].
            mask: 0 or 1, [N, height, width].
        """


@dataclass(frozen=True, kw_only=True)
class DiceAndBoxes(BoxLoss, kind="dice"):
    """The TensorFlow original's: dice over the whole batch, boxes as a mean over all pixels."""

    score_weight: float = setting(0.01, "weight of the score", minimum=0)
    angle_weight: float = setting(20.0, "weight of the angle relative to the distances", minimum=0)

    def terms(
        self, score: Tensor, geometry: Tensor, target: Tensor, boxes: Tensor, mask: Tensor
    ) -> Terms:
        """See `BoxLoss.terms`."""
        dice = linear_dice(score, target, mask)
        losses = box_losses(geometry, boxes, self.angle_weight) * target * mask
        return {
            "score": self.score_weight * len(score) * (1 - dice),
            "geometry": losses.mean(dim=(1, 2)).sum(),
        }


@dataclass(frozen=True, kw_only=True)
class BalancedCrossEntropy(BoxLoss, kind="balanced"):
    """The paper's: class-balanced cross-entropy, boxes as a mean over each image's text."""

    score_weight: float = setting(1.0, "weight of the score", minimum=0)
    angle_weight: float = setting(10.0, "weight of the angle relative to the distances", minimum=0)

    def terms(
        self, score: Tensor, geometry: Tensor, target: Tensor, boxes: Tensor, mask: Tensor
    ) -> Terms:
        """See `BoxLoss.terms`."""
        pixels = mask.sum((1, 2)).clamp(min=1)
        text = target * mask
        balance = 1 - text.sum((1, 2), keepdim=True) / pixels.view(-1, 1, 1)
        clamped = score.clamp(_TINY, 1 - _TINY)
        entropy = -balance * text * clamped.log()
        entropy = entropy - (1 - balance) * (1 - target) * mask * (1 - clamped).log()
        losses = (box_losses(geometry, boxes, self.angle_weight) * text).sum((1, 2))
        return {
            "score": self.score_weight * (entropy.sum((1, 2)) / pixels).sum(),
            "geometry": (losses / text.sum((1, 2)).clamp(min=1)).sum(),
        }


def box_losses(geometry: Tensor, boxes: Tensor, angle_weight: float) -> Tensor:
    """Minus the logarithm of the overlap of boxes without their angles, plus 1 - cos of the angle.

    Args:
        geometry: Distances to top, right, bottom and left and the angle, [N, 5, height, width].
        boxes: The true ones; elsewhere the result is finite and meaningless.
        angle_weight: Weight of the angle.

    Returns:
        [N, height, width].
    """
    top, right, bottom, left = geometry[:, :4].unbind(1)
    tops, rights, bottoms, lefts = boxes[:, :4].unbind(1)
    width = torch.minimum(right, rights) + torch.minimum(left, lefts)
    height = torch.minimum(top, tops) + torch.minimum(bottom, bottoms)
    intersection = width * height
    areas = (top + bottom) * (right + left) + (tops + bottoms) * (rights + lefts)
    overlap = -torch.log((intersection + 1) / (areas - intersection + 1))
    return overlap + angle_weight * (1 - torch.cos(geometry[:, 4] - boxes[:, 4]))
