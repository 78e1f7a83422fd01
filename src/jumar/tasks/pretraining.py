"""Pre-training of BERT and NEZHA: masked language model and next-sentence prediction.

Original: `run_pretraining.py` of google-research/bert, which adds both losses: that of the masked
words divided by their weights, and that of the sentence pairs divided by their number.
"""

from collections.abc import Mapping

import torch
from torch.nn import functional

from jumar.data.samples import Batch, SampleSet
from jumar.models.bert.heads import BertForPretraining
from jumar.models.bert.network import Encoded
from jumar.tasks.encoder_objective import EncoderObjective
from jumar.tasks.task import Headline, Task

WORDS = "masked_lm"
SENTENCES = "next_sentence"


class PretrainingObjective(EncoderObjective[BertForPretraining]):
    """Cross-entropy of masked words, and of whether the second segment follows the first.

    Args:
        network: The encoder with both heads.
    """

    name = "pretraining"
    minimized = (f"{WORDS}_loss", f"{SENTENCES}_loss")

    def sums(self, batch: Batch) -> dict[str, torch.Tensor]:
        """Return both losses of a batch with the features of `create_pretraining_data`."""
        weights, ids, encoded, positions = self._encoded(batch)
        losses = self.network.word_losses(encoded, positions, ids)
        logits, labels = self._sentences(encoded, batch)
        return {
            f"{WORDS}_loss": (losses * weights).sum(),
            f"{SENTENCES}_loss": functional.cross_entropy(logits, labels, reduction="sum"),
        }

    def weights(self, batch: Batch) -> Mapping[str, torch.Tensor]:
        """Return the divisor of the masked words' loss: their total weight."""
        # The original adds the constant, which also keeps a batch without masked words finite.
        return {f"{WORDS}_loss": batch["masked_lm_weights"].sum() + 1e-5}

    def scored(self, batch: Batch) -> dict[str, torch.Tensor]:
        """Return the sums of losses and correct predictions, and their divisors."""
        weights, ids, encoded, positions = self._encoded(batch)
        losses, right = self.network.word_scores(encoded, positions, ids)
        logits, labels = self._sentences(encoded, batch)
        return {
            f"{WORDS}_loss": (losses * weights).sum(),
            f"{WORDS}_right": (right * weights).sum(),
            f"{WORDS}_weight": weights.sum(),
            f"{SENTENCES}_loss": functional.cross_entropy(logits, labels, reduction="sum"),
            f"{SENTENCES}_right": (logits.argmax(1) == labels).sum(),
            "count": torch.ones_like(labels).sum(),
        }

    def _encoded(self, batch: Batch) -> tuple[torch.Tensor, torch.Tensor, Encoded, torch.Tensor]:
        """Return the weights and ids of the masked words, the encoding and their indices in it."""
        weights = batch["masked_lm_weights"].flatten()
        # Before the encoder, while the device has nothing queued that the host would wait for.
        masked = weights.nonzero().squeeze(1)
        ids = batch["masked_lm_ids"].flatten()[masked].long()
        encoded = self.network.bert(batch["input_ids"], batch["segment_ids"], batch["input_mask"])
        positions = encoded.packing.at(batch["masked_lm_positions"].long())[masked]
        return weights[masked], ids, encoded, positions

    def _sentences(self, encoded: Encoded, batch: Batch) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the logits and labels of next-sentence prediction."""
        logits = self.network.sentence_logits(encoded).float()
        return logits, batch["next_sentence_labels"].flatten().long()


class PretrainingTask(Task):
    """A network that learns a language from unlabelled text.

    Args:
        network: The encoder with both heads.
        train_data: Samples to learn from, with the features of `create_pretraining_data`.
        eval_data: Samples to score on.
    """

    name = "pretraining"
    headline = Headline(name=f"{WORDS}_accuracy", unit="%", higher_is_better=True)

    def __init__(
        self,
        network: BertForPretraining,
        *,
        train_data: SampleSet,
        eval_data: SampleSet | None,
    ) -> None:
        self.model = network
        self.train_data = train_data
        self.eval_data = eval_data
        self._objective = PretrainingObjective(network)
        self.objectives = [self._objective]

    def evaluate_batch(self, batch: Batch) -> dict[str, torch.Tensor]:
        """Return losses, correct predictions and their weights, summed over the batch."""
        return self._objective.scored(batch)

    def summarize(self, sums: Mapping[str, torch.Tensor]) -> dict[str, float]:
        """Return accuracy in percent and mean loss, of masked words and of next sentences."""
        values = {name: value.item() for name, value in sums.items()}
        words, samples = max(values[f"{WORDS}_weight"], 1e-5), values["count"]
        return {
            f"{WORDS}_accuracy": 100 * values[f"{WORDS}_right"] / words,
            f"{SENTENCES}_accuracy": 100 * values[f"{SENTENCES}_right"] / samples,
            f"{WORDS}_loss": values[f"{WORDS}_loss"] / words,
            f"{SENTENCES}_loss": values[f"{SENTENCES}_loss"] / samples,
        }
