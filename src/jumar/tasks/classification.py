"""Image classification: one label per image, smoothed cross-entropy, top-1 and top-5 accuracy."""

from collections.abc import Mapping, Sequence
from typing import Final

import torch
from torch import nn
from torch.nn import functional

from jumar.data.pixels.mixing import LABEL, SHARE, mixed
from jumar.data.pixels.preprocessing import ImagePreprocessing
from jumar.data.samples import Batch, SampleSet
from jumar.tasks.confusion import confusion_of, confusion_table
from jumar.tasks.label_objective import LabelObjective
from jumar.tasks.mistakes import SurestMistakes, weakest_classes
from jumar.tasks.task import Decays, Headline, Illustration, ScoreTable, Task

_MAX_CONFUSED: Final = 50
"""Maximum number of classes for which an evaluation computes a confusion matrix."""
_WEAKEST: Final = 20
"""Number of classes listed instead if there are more."""


class ClassificationObjective(LabelObjective):
    """Softmax cross-entropy of the network's logits.

    Args:
        network: Images `[N, 3, H, W]` in, logits `[N, classes]` out.
        preprocessing: Converts the bytes to normalised images on the device.
        label_smoothing: Share of the probability spread over all classes.
        decays: Which parameters decay.
        class_weights: Float32 [classes]; None for equal weights.
    """

    name = "classification"

    def __init__(
        self,
        network: nn.Module,
        preprocessing: ImagePreprocessing,
        *,
        label_smoothing: float,
        decays: Decays,
        class_weights: torch.Tensor | None = None,
    ) -> None:
        super().__init__(network, label_smoothing=label_smoothing, class_weights=class_weights)
        self._preprocessing = preprocessing
        self._decays = decays

    def decays(self, name: str, parameter: nn.Parameter) -> bool:
        """Decide as the original of the network does."""
        return self._decays(name, parameter)

    def sums(self, batch: Batch) -> dict[str, torch.Tensor]:
        """Return the loss of a batch of `image` and `label`.

        The target of a mixed image is its own label with the weight `own_share`, and its partner's
        with the remaining weight. The cross-entropy is linear in the target, so this equals the
        weighted mean of two cross-entropies.
        """
        logits = self.logits(batch)
        if SHARE not in batch:
            return {"loss": self.cross_entropy(logits, batch["label"])}
        own_losses, partner_losses = (
            self._losses(logits, batch[name]) for name in ("label", LABEL)
        )
        return {"loss": (batch[SHARE] * own_losses + (1 - batch[SHARE]) * partner_losses).sum()}

    def weights(self, batch: Batch) -> Mapping[str, torch.Tensor]:
        """Return the total weight of the samples, if there are class weights; mixed images count
        by their shares.
        """
        if self.class_weights is None or SHARE not in batch:
            return super().weights(batch)
        own_weights, partner_weights = (
            self.class_weights[batch[name]] for name in ("label", LABEL)
        )
        return {"loss": (batch[SHARE] * own_weights + (1 - batch[SHARE]) * partner_weights).sum()}

    def logits(self, batch: Batch) -> torch.Tensor:
        """Return the logits `[N, classes]` of a batch."""
        images = self._preprocessing.on_device(batch, training=self.training)
        return self.trained(mixed(images, batch))

    def _losses(self, logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        """Return the cross-entropy of each sample, weighted by its class, float32 `[N]`."""
        losses = functional.cross_entropy(
            logits.float(), labels, label_smoothing=self._label_smoothing, reduction="none"
        )
        return losses if self.class_weights is None else losses * self.class_weights[labels]


class ClassificationTask(Task):
    """An image classifier.

    Args:
        network: Images in, logits out.
        preprocessing: The device half of the image preprocessing.
        train_data: Images to learn from.
        eval_data: Images to score on.
        label_smoothing: See `ClassificationObjective`.
        decays: Which parameters decay.
        num_classes: Number of outputs of the network.
        classes: The class names, if the data has them.
        class_weights: See `ClassificationObjective`.
    """

    name = "classification"
    headline = Headline(name="top1", unit="%", higher_is_better=True)

    def __init__(
        self,
        network: nn.Module,
        preprocessing: ImagePreprocessing,
        *,
        train_data: SampleSet,
        eval_data: SampleSet | None,
        label_smoothing: float,
        decays: Decays,
        num_classes: int,
        classes: Sequence[str] = (),
        class_weights: torch.Tensor | None = None,
    ) -> None:
        self.model = network
        self.num_classes = num_classes
        self.outputs = tuple(classes)
        self.train_data = train_data
        self.eval_data = eval_data
        self._objective = ClassificationObjective(
            network,
            preprocessing,
            label_smoothing=label_smoothing,
            decays=decays,
            class_weights=class_weights,
        )
        self.objectives = [self._objective]
        self._mistakes = SurestMistakes()

    def evaluate_batch(self, batch: Batch) -> dict[str, torch.Tensor]:
        """Return top-1 and top-5 hits and the loss, summed over the samples, and the confusion
        matrix; with many classes, the hits of each class instead of the matrix.

        Of two classes with the same logit, the earlier one ranks higher, so that a dead network
        with equal logits (AlexNet ends in a ReLU) does not count as correct.
        """
        labels = batch["label"]
        logits = self._objective.logits(batch)
        loss = self._objective.cross_entropy(logits, labels)
        own_logits = logits.gather(1, labels.unsqueeze(1))
        earlier = torch.arange(logits.shape[1], device=logits.device) < labels.unsqueeze(1)
        above = ((logits > own_logits) | ((logits == own_logits) & earlier)).sum(dim=1)
        is_hit = {k: (above < k) & torch.isfinite(own_logits[:, 0]) for k in (1, 5)}
        hits = {f"top{k}": hit.sum() for k, hit in is_hit.items()}
        other_logits = logits.scatter(1, labels.unsqueeze(1), float("-inf"))
        predicted = torch.where(is_hit[1], labels, other_logits.argmax(dim=1))
        self._mistakes.add(batch["image"], logits, labels, predicted)
        count = torch.ones_like(labels).sum()
        weight = self._objective.weights(batch).get("loss", count)
        return {
            "count": count,
            **hits,
            "loss": loss,
            "weight": weight,
            **_confusion(labels, predicted, logits.shape[1]),
        }

    def summarize(self, sums: Mapping[str, torch.Tensor]) -> dict[str, float]:
        """Return `top1`, `top5` in percent and the `loss`, smoothed and weighted as in training."""
        count, top1, top5 = (sums[name].item() for name in ("count", "top1", "top5"))
        return {
            "top1": 100 * top1 / count,
            "top5": 100 * top5 / count,
            "loss": sums["loss"].item() / sums["weight"].item(),
        }

    def score_tables(self, sums: Mapping[str, torch.Tensor]) -> Sequence[ScoreTable]:
        """Return the confusion matrix, or the classes with the lowest accuracy if there are more
        than 50, and the table of the mistakes that `illustrate` has drawn.
        """
        if "confusion" in sums:
            names = self.outputs or [str(number) for number in range(len(sums["confusion"]))]
            table = confusion_table(sums["confusion"], names, "images")
        else:
            right, count = sums["class_right"], sums["class_count"]
            table = weakest_classes(right, count, self.outputs, _WEAKEST)
        return [table, *self._mistakes.tables()]

    def illustrate(self) -> Sequence[Illustration]:
        """Draw the misclassified images with the highest probabilities, among those that the first
        rank scored.
        """
        return self._mistakes.illustrations(self.outputs)


def _confusion(
    labels: torch.Tensor, predicted: torch.Tensor, classes: int
) -> dict[str, torch.Tensor]:
    """Return the sums from which `score_tables` creates a table."""
    if classes <= _MAX_CONFUSED:
        return {"confusion": confusion_of(labels, predicted, classes)}
    one_hot = functional.one_hot(labels, classes)
    right = (labels == predicted).unsqueeze(1)
    return {"class_count": one_hot.sum(dim=0), "class_right": (one_hot * right).sum(dim=0)}
