"""Losses of the text detectors PSENet and EAST, as in the TensorFlow originals and in the papers.

All compare maps at a quarter of the image's size: float32 predictions with targets that are 0 or 1
(geometry: float32), and a mask that is 0 where pixels are ignored. All return terms that are
weighted and summed over the images; the loss is the sum of the terms.

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
"""The originals' guard against division by zero; the papers have none."""

Terms = dict[str, Tensor]


def linear_dice(prediction: Tensor, target: Tensor, mask: Tensor) -> Tensor:
    """Return the dice coefficient of all pixels, without squares as in the originals; a scalar."""
    intersection = (target * prediction * mask).sum()
    return 2 * intersection / ((target * mask).sum() + (prediction * mask).sum() + _TINY)


def squared_dice(prediction: Tensor, target: Tensor, mask: Tensor) -> Tensor:
    """Return the dice coefficient of each image [N], with squares, as in PSENet's paper.

    Args:
        prediction: [N, height, width].
        target: [N, height, width].
        mask: [N, height, width].
    """
    predicted, true = prediction * mask, target * mask
    intersection = (predicted * true).sum(dim=(1, 2))
    return 2 * intersection / (predicted.square().sum((1, 2)) + true.square().sum((1, 2)) + _TINY)


@dataclass(frozen=True, kw_only=True)
class KernelLoss(Component, ABC):
    """PSENet's loss: a term for whole words, and one for the kernels inside the detected text."""

    text_weight: float = setting(
        0.7, "Weight of whole words; the kernels have the rest.", minimum=0, maximum=1
    )

    @abstractmethod
    def terms(self, maps: Tensor, kernels: Tensor, mask: Tensor) -> Terms:
        """Return the terms `text` and `kernels`, weighted and summed over the images.

        Args:
            maps: Probabilities [N, kernels, height, width], whole words last.
            kernels: 0 or 1, in the shape of `maps`.
            mask: 0 or 1, [N, height, width].
        """

    def _weighted(self, text: Tensor, kernels: Tensor) -> Terms:
        return {"text": self.text_weight * text, "kernels": (1 - self.text_weight) * kernels}


@dataclass(frozen=True, kw_only=True)
class BatchDice(KernelLoss, kind="dice"):
    """The TensorFlow original's loss: linear dice over the whole batch and all unmasked pixels."""

    def terms(self, maps: Tensor, kernels: Tensor, mask: Tensor) -> Terms:
        """See `KernelLoss.terms`."""
        text_mask = mask * (maps[:, -1] >= 0.5)
        dice = [
            linear_dice(maps[:, number], kernels[:, number], text_mask)
            for number in range(maps.shape[1] - 1)
        ]
        text = 1 - linear_dice(maps[:, -1], kernels[:, -1], mask)
        # The trainer divides sums by the number of images, but these values are already means.
        return self._weighted(len(maps) * text, len(maps) * (1 - torch.stack(dice).mean()))


@dataclass(frozen=True, kw_only=True)
class HardDice(KernelLoss, kind="dice_ohem"):
    """The paper's loss: squared dice of each image; only the hardest background pixels count."""

    negatives: float = setting(
        3.0, "Background pixels counted per text pixel, the hardest first.", minimum=0
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
        """Return the mask without easy background."""
        text = kernels[:, -1] * mask
        background = (1 - kernels[:, -1]) * mask
        negative_count = (self.negatives * text.sum((1, 2))).floor()
        negative_count = torch.minimum(negative_count, background.sum((1, 2))).long()
        # Text and masked pixels are sorted last, below every probability.
        scores = torch.where(background > 0, maps[:, -1], -1.0).flatten(1)
        sorted_scores = scores.sort(dim=1, descending=True).values
        threshold = sorted_scores.gather(1, (negative_count - 1).clamp(min=0).unsqueeze(1))
        # An image without text keeps no pixels; its dice is 0 with any mask.
        has_negatives = (negative_count > 0).view(-1, 1, 1)
        return text + (scores >= threshold).view_as(text) * background * has_negatives


@dataclass(frozen=True, kw_only=True)
class BoxLoss(Component, ABC):
    """EAST's loss: a term for the score, and one for the rotated boxes where there is text."""

    @abstractmethod
    def terms(
        self, score: Tensor, geometry: Tensor, target: Tensor, boxes: Tensor, mask: Tensor
    ) -> Terms:
        """Return the terms `score` and `geometry`, weighted and summed over the images.

        Args:
            score: Probabilities [N, height, width].
            geometry: Distances and angle, [N, 5, height, width].
            target: 0 or 1, [N, height, width].
            boxes: The true geometry where the target is 1, [N, 5, height, width].
            mask: 0 or 1, [N, height, width].
        """


@dataclass(frozen=True, kw_only=True)
class DiceAndBoxes(BoxLoss, kind="dice"):
    """The TensorFlow original's loss: dice over the whole batch, mean box loss over all pixels."""

    score_weight: float = setting(0.01, "Weight of the score.", minimum=0)
    angle_weight: float = setting(20.0, "Weight of the angle relative to the distances.", minimum=0)

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
    """The paper's loss: class-balanced cross-entropy, mean box loss over each image's text."""

    score_weight: float = setting(1.0, "Weight of the score.", minimum=0)
    angle_weight: float = setting(10.0, "Weight of the angle relative to the distances.", minimum=0)

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
    """Return the box loss of each pixel: -log(IoU), ignoring angles, plus 1 - cos(angle error).

    Args:
        geometry: Distances to top, right, bottom and left and the angle, [N, 5, height, width].
        boxes: The true geometry; where there is no text, the loss is finite but meaningless.
        angle_weight: Weight of the angle error.

    Returns:
        [N, height, width].
    """
    top, right, bottom, left = geometry[:, :4].unbind(1)
    true_top, true_right, true_bottom, true_left = boxes[:, :4].unbind(1)
    width = torch.minimum(right, true_right) + torch.minimum(left, true_left)
    height = torch.minimum(top, true_top) + torch.minimum(bottom, true_bottom)
    intersection = width * height
    true_areas = (true_top + true_bottom) * (true_right + true_left)
    areas = (top + bottom) * (right + left) + true_areas
    overlap = -torch.log((intersection + 1) / (areas - intersection + 1))
    return overlap + angle_weight * (1 - torch.cos(geometry[:, 4] - boxes[:, 4]))
