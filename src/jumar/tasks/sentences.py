"""Which label a sentence or a pair of sentences has: opinion, same meaning, inference."""

from collections.abc import Mapping, Sequence

from torch import Tensor
from torch.nn import functional

from jumar.data.samples import Batch, SampleSet
from jumar.models.bert.heads import BertForClassification
from jumar.tasks.confusion import accuracy, confusion_of, confusion_table
from jumar.tasks.encoder_objective import EncoderObjective
from jumar.tasks.task import Headline, ScoreTable, Task


class SentenceObjective(EncoderObjective[BertForClassification]):
    """Softmax cross-entropy of the network's logits."""

    name = "sentences"

    def logits(self, batch: Batch) -> Tensor:
        """Logits float32 [N, labels]."""
        return self.network(batch["input_ids"], batch["segment_ids"], batch["input_mask"]).float()

    def sums(self, batch: Batch) -> dict[str, Tensor]:
        """The loss of a batch; see `sentence_set`."""
        logits = self.logits(batch)
        return {"loss": functional.cross_entropy(logits, batch["label"], reduction="sum")}


class SentenceTask(Task):
    """A network that labels sentences or pairs.

    Args:
        network: Pieces in, logits out.
        labels: What the logits mean.
        train_data: Sentences to learn from.
        eval_data: Sentences to score on.
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
    ) -> None:
        self.model = network
        self.outputs = tuple(labels)
        self.train_data, self.eval_data = train_data, eval_data
        self._objective = SentenceObjective(network)
        self.objectives = [self._objective]

    def evaluate_batch(self, batch: Batch) -> dict[str, Tensor]:
        """The loss and the confusion matrix [true, predicted], summed over the samples."""
        labels = batch["label"]
        logits = self._objective.logits(batch)
        return {
            "count": (labels >= 0).sum(),
            "confusion": confusion_of(labels, logits.argmax(dim=1), len(self.outputs)),
            "loss": functional.cross_entropy(logits, labels, reduction="sum"),
        }

    def summarize(self, sums: Mapping[str, Tensor]) -> dict[str, float]:
        """`accuracy` in percent and the mean `loss`."""
        loss = sums["loss"].item() / sums["count"].item()
        return {"accuracy": accuracy(sums["confusion"]), "loss": loss}

    def score_tables(self, sums: Mapping[str, Tensor]) -> Sequence[ScoreTable]:
        """The confusion matrix."""
        return [confusion_table(sums["confusion"], self.outputs, "samples")]
