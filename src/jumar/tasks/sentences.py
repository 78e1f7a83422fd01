"""Classification of sentences and sentence pairs: sentiment, paraphrase, inference."""

from collections.abc import Mapping, Sequence

from torch import Tensor

from jumar.data.samples import Batch, SampleSet
from jumar.models.bert.heads import BertForClassification
from jumar.tasks.class_weights import cross_entropy_sum, loss_weights
from jumar.tasks.confusion import accuracy, confusion_of, confusion_table
from jumar.tasks.encoder_objective import EncoderObjective
from jumar.tasks.task import Headline, ScoreTable, Task


class SentenceObjective(EncoderObjective[BertForClassification]):
    """Softmax cross-entropy of the network's logits.

    Args:
        network: The encoder with its head.
        class_weights: Float32 [labels]; None for equal weights.
    """

    name = "sentences"

    def __init__(self, network: BertForClassification, class_weights: Tensor | None = None) -> None:
        super().__init__(network)
        self.class_weights: Tensor | None
        self.register_buffer("class_weights", class_weights, persistent=False)

    def sums(self, batch: Batch) -> dict[str, Tensor]:
        """Return the loss of a batch; see `sentence_set`."""
        logits = self.logits(batch)
        return {"loss": cross_entropy_sum(logits, batch["label"], self.class_weights)}

    def weights(self, batch: Batch) -> Mapping[str, Tensor]:
        """Return the total weight of the samples, if there are class weights."""
        return loss_weights(batch["label"], self.class_weights)


class SentenceTask(Task):
    """A network that labels sentences or pairs of sentences.

    Args:
        network: Pieces in, logits out.
        labels: The labels in the order of the logits.
        train_data: Sentences to learn from.
        eval_data: Sentences to score on.
        class_weights: See `SentenceObjective`.
    """

    name = "sentences"
    headline = Headline(name="accuracy", unit="%", higher_is_better=True)

    def __init__(
        self,
        network: BertForClassification,
        *,
        labels: Sequence[str],
        train_data: SampleSet,
        eval_data: SampleSet | None,
        class_weights: Tensor | None = None,
    ) -> None:
        self.model = network
        self.outputs = tuple(labels)
        self.train_data, self.eval_data = train_data, eval_data
        self._objective = SentenceObjective(network, class_weights)
        self.objectives = [self._objective]

    def evaluate_batch(self, batch: Batch) -> dict[str, Tensor]:
        """Return the loss and the confusion matrix [true, predicted], summed over the samples."""
        labels = batch["label"]
        logits = self._objective.logits(batch)
        count = (labels >= 0).sum()
        return {
            "count": count,
            "confusion": confusion_of(labels, logits.argmax(dim=1), len(self.outputs)),
            "loss": cross_entropy_sum(logits, labels, self._objective.class_weights),
            "weight": self._objective.weights(batch).get("loss", count),
        }

    def summarize(self, sums: Mapping[str, Tensor]) -> dict[str, float]:
        """Return `accuracy` in percent and the mean `loss`, weighted as in training."""
        loss = sums["loss"].item() / sums["weight"].item()
        return {"accuracy": accuracy(sums["confusion"]), "loss": loss}

    def score_tables(self, sums: Mapping[str, Tensor]) -> Sequence[ScoreTable]:
        """Return the confusion matrix."""
        return [confusion_table(sums["confusion"], self.outputs, "samples")]
