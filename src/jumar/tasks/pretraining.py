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
        terms = self.scored(batch)
        return {name: terms[name] for name in self.minimized}

    def weights(self, batch: Batch) -> Mapping[str, torch.Tensor]:
        """Return the divisor of the masked words' loss: their total weight."""
        # The original adds the constant, which also keeps a batch without masked words finite.
        return {f"{WORDS}_loss": batch["masked_lm_weights"].sum() + 1e-5}

    def scored(self, batch: Batch) -> dict[str, torch.Tensor]:
        """Return the sums of losses and correct predictions, and their divisors."""
        weights = batch["masked_lm_weights"].flatten()
        # Called before the encoder, so that the host does not wait for it.
        masked = weights.nonzero().squeeze(1)
        weights, ids = weights[masked], batch["masked_lm_ids"].flatten()[masked].long()
        encoded = self.network.bert(batch["input_ids"], batch["segment_ids"], batch["input_mask"])
        positions = encoded.packing.at(batch["masked_lm_positions"].long())[masked]
        losses, right = self.network.word_losses(encoded, positions, ids)
        logits = self.network.sentence_logits(encoded).float()
        labels = batch["next_sentence_labels"].flatten().long()
        return {
            f"{WORDS}_loss": (losses * weights).sum(),
            f"{WORDS}_right": (right * weights).sum(),
            f"{WORDS}_weight": weights.sum(),
            f"{SENTENCES}_loss": functional.cross_entropy(sentences, labels, reduction="sum"),
            f"{SENTENCES}_right": (sentences.argmax(1) == labels).sum(),
            "count": torch.ones_like(labels).sum(),
        }

    def _encoded(self, batch: Batch) -> tuple[torch.Tensor, torch.Tensor, Encoded, torch.Tensor]:
        """Weights and ids of the masked words, the encoded batch, and where the words are in it."""
        weights = batch["masked_lm_weights"].flatten()
        # Before the encoder, so that the host need not wait for the device.
        masked = weights.nonzero().squeeze(1)
        ids = batch["masked_lm_ids"].flatten()[masked].long()
        encoded = self.network.bert(batch["input_ids"], batch["segment_ids"], batch["input_mask"])
        places = encoded.packing.at(batch["masked_lm_positions"].long())[masked]
        return weights[masked], ids, encoded, places

    def _sentences(self, encoded: Encoded, batch: Batch) -> tuple[torch.Tensor, torch.Tensor]:
        """Logits and labels of the next sentences."""
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
