"""Base class for the objectives of classifiers: one label per sample, smoothing, class weights."""

from collections.abc import Mapping

from torch import Tensor, nn

from jumar.data.samples import Batch
from jumar.tasks.class_weights import cross_entropy_sum, loss_weights
from jumar.tasks.task import Objective


class LabelObjective(Objective):
    """Softmax cross-entropy of a network's logits with the `label` of each sample.

    Args:
        network: The network to train; it returns the logits.
        label_smoothing: Share of the probability spread over all classes.
        class_weights: Float32 [classes]; None for equal weights.
    """

    def __init__(
        self, network: nn.Module, *, label_smoothing: float, class_weights: Tensor | None
    ) -> None:
        super().__init__()
        self.class_weights: Tensor | None
        self.register_buffer("class_weights", class_weights, persistent=False)
        self.trained = network
        self._label_smoothing = label_smoothing

    def weights(self, batch: Batch) -> Mapping[str, Tensor]:
        """Return the total weight of the samples, if there are class weights."""
        return loss_weights(batch["label"], self.class_weights)

    def cross_entropy(self, logits: Tensor, labels: Tensor) -> Tensor:
        """Return the summed softmax cross-entropy with this objective's smoothing and weights."""
        return cross_entropy_sum(
            logits, labels, self.class_weights, label_smoothing=self._label_smoothing
        )
