"""Entity recognition in sentences: a tag for each token.

The loss is the mean over the tokens that have a tag. Ascend's run_ner.py sums it over all tokens of
a batch, including padding, so its gradients are about 4,000 times as large. Adam normalises them,
so the only difference in training is gradient clipping, which is always active in Ascend's script.
"""

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor
from torch.nn import functional

from jumar.data.samples import Batch, SampleSet
from jumar.data.text.entity_set import UNSCORED
from jumar.models.bert.heads import BertForTagging
from jumar.tasks.confusion import confusion_of
from jumar.tasks.encoder_objective import EncoderObjective
from jumar.tasks.scoring.entities import (
    OUTSIDE,
    Entity,
    EntityCounts,
    Scheme,
    entities,
    split_tag,
    strict_entities,
)
from jumar.tasks.scoring.label_rates import label_rates
from jumar.tasks.task import Headline, ScoreTable, Task


class TaggingObjective(EncoderObjective[BertForTagging]):
    """Softmax cross-entropy of the tagged tokens."""

    name = "tagging"

    def sums(self, batch: Batch) -> dict[str, Tensor]:
        """Return the loss of a batch, summed over its tagged tokens; see `entity_set`."""
        return {"loss": tag_loss(self.logits(batch), batch["label"])}

    def weights(self, batch: Batch) -> Mapping[str, Tensor]:
        """Return the number of tagged tokens."""
        return {"loss": (batch["label"] != UNSCORED).sum()}


def tag_loss(logits: Tensor, labels: Tensor) -> Tensor:
    """Return the summed cross-entropy of logits [N, length, tags], labels [N, length or more]."""
    labels = labels[:, : logits.shape[1]].flatten()
    return functional.cross_entropy(
        logits.flatten(0, 1), labels, ignore_index=UNSCORED, reduction="sum"
    )


class TaggingTask(Task):
    """A network that tags tokens.

    Args:
        network: Pieces in, logits out.
        labels: The tags in the order of the logits.
        train_data: Sentences to learn from.
        eval_data: Sentences to score on.
        by_character: Whether the tokens of the training data are characters.
        scheme: Only entities whose tags follow it count; None to count all.
    """

    name = "tagging"
    headline = Headline(name="f1", unit="%", higher_is_better=True)

    def __init__(
        self,
        network: BertForTagging,
        *,
        labels: Sequence[str],
        train_data: SampleSet,
        eval_data: SampleSet | None,
        by_character: bool = True,
        scheme: Scheme | None = None,
    ) -> None:
        self.model = network
        self.by_character = by_character
        self.outputs = tuple(labels)
        self.kinds = sorted({split_tag(label)[1] for label in labels} - {""})
        self.train_data, self.eval_data = train_data, eval_data
        self._scheme: Scheme | None = scheme
        self._objective = TaggingObjective(network)
        self.objectives = [self._objective]

    def evaluate_batch(self, batch: Batch) -> dict[str, Tensor]:
        """Return the loss, the counts of entities [type; right, predicted, true] and the confusion
        matrix of the tags [true, predicted], summed over the samples.
        """
        logits = self._objective.logits(batch)
        labels = batch["label"][:, : logits.shape[1]]
        is_scored = labels != UNSCORED
        predicted = logits.argmax(dim=2)
        counts = EntityCounts()
        rows = zip(labels.cpu(), predicted.cpu(), is_scored.cpu(), strict=True)
        for truth, prediction, mask in rows:
            counts.add(self._entities(truth[mask]), self._entities(prediction[mask]))
        counts_by_type = [
            [counter[kind] for counter in (counts.right, counts.predicted, counts.true)]
            for kind in self.kinds
        ]
        return {
            "count": torch.tensor(len(labels), device=logits.device),
            "tokens": is_scored.sum(),
            "entities": torch.tensor(counts_by_type, device=logits.device).view(-1, 3),
            "confusion": confusion_of(labels[is_scored], predicted[is_scored], len(self.outputs)),
            "loss": tag_loss(logits, labels),
        }

    def summarize(self, sums: Mapping[str, Tensor]) -> dict[str, float]:
        """Return `f1`, `precision` and `recall` of whole entities and `token_f1` of single tags
        other than `O`, all in percent, and the mean `loss` of a token.
        """
        total = self._counts(sums).total()
        entity_labels = [index for index, label in enumerate(self.outputs) if label != OUTSIDE]
        tokens = label_rates(sums["confusion"].numpy(), entity_labels)
        return {
            "f1": 100 * total.f1,
            "precision": 100 * total.precision,
            "recall": 100 * total.recall,
            "token_f1": 100 * tokens.f1,
            "loss": sums["loss"].item() / max(sums["tokens"].item(), 1),
        }

    def score_tables(self, sums: Mapping[str, Tensor]) -> Sequence[ScoreTable]:
        """Return a table with the precision, recall and F1 of each type."""
        counts = self._counts(sums)
        rows = [
            [kind, *(f"{100 * rate:.2f}" for rate in rates), f"{counts.true[kind]}"]
            for kind, rates in counts.by_type().items()
        ]
        header = ["type", "precision %", "recall %", "f1 %", "entities"]
        title = f"entities (strict, {self._scheme})" if self._scheme else "entities"
        return [ScoreTable(title=title, header=header, rows=rows)]

    def _entities(self, labels: Tensor) -> list[Entity]:
        tags = [str(self.outputs[label]) for label in labels.tolist()]
        return strict_entities(tags, self._scheme) if self._scheme else entities(tags)

    def _counts(self, sums: Mapping[str, Tensor]) -> EntityCounts:
        counts = EntityCounts()
        for kind, row in zip(self.kinds, sums["entities"].tolist(), strict=True):
            counts.right[kind], counts.predicted[kind], counts.true[kind] = map(round, row)
        return counts
