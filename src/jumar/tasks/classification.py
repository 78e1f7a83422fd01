"""Image classification: one label per image, smoothed cross-entropy, top-1 and top-5."""

from collections.abc import Callable, Mapping, Sequence

import torch
from torch import nn

from jumar.data.pixels.preprocessing import ImagePreprocessing
from jumar.data.samples import Batch, SampleSet
from jumar.tasks.class_weights import cross_entropy_sum, loss_weights
from jumar.tasks.task import Headline, Objective, Task

Decays = Callable[[str, nn.Parameter], bool]
"""Whether weight decay applies to a parameter, by its name in the network."""


class ClassificationObjective(Objective):
    """Softmax cross-entropy of the network's logits.

    Args:
        network: Images `[N, 3, H, W]` in, logits `[N, classes]` out.
        preprocessing: Converts the bytes to normalised images on the device.
        label_smoothing: Share of the probability spread over all classes.
        decays: Which parameters decay.
        class_weights: Float32 [classes]; None if all weigh the same.
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
        super().__init__()
        self.class_weights: torch.Tensor | None
        self.register_buffer("class_weights", class_weights, persistent=False)
        self.trained = network
        self._preprocessing = preprocessing
        self._label_smoothing = label_smoothing
        self._decays = decays

    def decays(self, name: str, parameter: nn.Parameter) -> bool:
        """Decide as the network's original does."""
        return self._decays(name, parameter)

    def sums(self, batch: Batch) -> dict[str, torch.Tensor]:
        """The loss of a batch of `image` and `label`."""
        return {"loss": self.cross_entropy(self.logits(batch), batch["label"])}

    def weights(self, batch: Batch) -> Mapping[str, torch.Tensor]:
        """The weights of the samples' classes, if they differ."""
        return loss_weights(batch["label"], self.class_weights)

    def logits(self, batch: Batch) -> torch.Tensor:
        """Logits `[N, classes]` of a batch."""
        images = self._preprocessing.on_device(batch, training=self.training)
        return self.trained(images)

    def cross_entropy(self, logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        """Softmax cross-entropy with this objective's smoothing and weights, summed."""
        return cross_entropy_sum(
            logits, labels, self.class_weights, label_smoothing=self._label_smoothing
        )


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

    def evaluate_batch(self, batch: Batch) -> dict[str, torch.Tensor]:
        """Top-1 and top-5 hits and the loss, summed over the samples.

        A class ranks above another with the same logit if it comes earlier, so that a dead network
        with equal logits (AlexNet ends in a ReLU) does not count as correct.
        """
        labels = batch["label"]
        logits = self._objective.logits(batch)
        loss = self._objective.cross_entropy(logits, labels)
        own = logits.gather(1, labels.unsqueeze(1))
        earlier = torch.arange(logits.shape[1], device=logits.device) < labels.unsqueeze(1)
        above = ((logits > own) | ((logits == own) & earlier)).sum(dim=1)
        hits = {f"top{k}": ((above < k) & torch.isfinite(own[:, 0])).sum() for k in (1, 5)}
        count = torch.ones_like(labels).sum()
        weight = self._objective.weights(batch).get("loss", count)
        return {"count": count, **hits, "loss": loss, "weight": weight}

    def summarize(self, sums: Mapping[str, torch.Tensor]) -> dict[str, float]:
        """`top1` and `top5` in percent, the mean `loss` smoothed and weighted as in training."""
        count, top1, top5 = (sums[name].item() for name in ("count", "top1", "top5"))
        return {
            "top1": 100 * top1 / count,
            "top5": 100 * top5 / count,
            "loss": sums["loss"].item() / sums["weight"].item(),
        }
