"""Heads on top of BERT: masked words and next sentence, classes, tags, spans.

Names of modules and parameters are those of Hugging Face's BERT classes.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

from jumar.models.bert.network import Bert, BertSize, Encoded, LayerNorm, initialize
from jumar.models.keyed_dropout import KeyedTokenDropout

CHUNK = 256
"""Masked words whose logits a CPU computes at once: 256 x 21,128 float32 are 22 MB. Above 32 MB
glibc asks Linux for fresh pages each time, which took a fifth of the step of a small network."""
DEVICE_CHUNK = 8192
"""The same on other devices, which want few large products: 690 MB of float32."""
_KEPT = 1024
"""Masked words whose logits a CPU keeps for the backward pass; those of more are computed twice, as
they would be the largest tensors of the step. Other devices keep one chunk."""


class Transform(nn.Module):
    """Dense layer, activation and norm before the vocabulary."""

    def __init__(self, size: BertSize) -> None:
        super().__init__()
        self.dense = nn.Linear(size.hidden_size, size.hidden_size)
        self.LayerNorm = LayerNorm(size.hidden_size)
        self.gelu = size.gelu

    def forward(self, x: Tensor) -> Tensor:
        """[words, hidden_size] in and out."""
        return self.LayerNorm(functional.gelu(self.dense(x), approximate=self.gelu))


class Predictions(nn.Module):
    """Logits of masked words; the vocabulary's matrix is that of the word embeddings."""

    def __init__(self, size: BertSize) -> None:
        super().__init__()
        self.transform = Transform(size)
        self.bias = nn.Parameter(torch.zeros(size.vocab_size))


class PretrainingHead(nn.Module):
    """Both heads of pre-training."""

    def __init__(self, size: BertSize) -> None:
        super().__init__()
        self.predictions = Predictions(size)
        self.seq_relationship = nn.Linear(size.hidden_size, 2)


class BertForPretraining(nn.Module):
    """BERT or NEZHA with masked words and next sentence."""

    def __init__(self, size: BertSize, *, unpadded: bool = True) -> None:
        super().__init__()
        self.bert = Bert(size, unpadded=unpadded)
        self.cls = PretrainingHead(size)
        initialize(self, size.initializer_range)

    def word_losses(self, encoded: Encoded, places: Tensor, ids: Tensor) -> tuple[Tensor, Tensor]:
        """Cross-entropy of masked words.

        Args:
            encoded: The batch.
            places: int64 [words], positions of the words among the packed tokens.
            ids: int64 [words], the original words.

        Returns:
            The losses, float32 [words], and whether the largest logit is that of the word,
            bool [words].
        """
        words = self.cls.predictions.transform(encoded.tokens.index_select(0, places))
        losses: list[Tensor] = []
        right: list[Tensor] = []
        chunk, kept = (CHUNK, _KEPT) if words.device.type == "cpu" else (DEVICE_CHUNK, DEVICE_CHUNK)
        again = torch.is_grad_enabled() and len(words) > kept
        for part, targets in zip(words.split(chunk), ids.split(chunk), strict=True):
            if again:
                loss, is_right = checkpoint(self._chunk, part, targets, use_reentrant=False)
            else:
                loss, is_right = self._chunk(part, targets)
            losses.append(loss)
            right.append(is_right)
        return torch.cat(losses), torch.cat(right)

    def word_logits(self, words: Tensor) -> Tensor:
        """Logits [words, vocabulary] of transformed words [words, hidden_size]."""
        table = self.bert.embeddings.word_embeddings.weight
        return functional.linear(words, table, self.cls.predictions.bias)

    def sentence_logits(self, encoded: Encoded) -> Tensor:
        """Logits [samples, 2]: 0 where the second segment follows the first, 1 where not."""
        return self.cls.seq_relationship(self.bert.pooler(encoded.first()))

    def _chunk(self, words: Tensor, ids: Tensor) -> tuple[Tensor, Tensor]:
        logits = self.word_logits(words).float()
        return functional.cross_entropy(logits, ids, reduction="none"), logits.argmax(1) == ids


class _BertWithClassifier(nn.Module):
    """An encoder with a linear classifier."""

    def __init__(self, size: BertSize, num_classes: int, *, unpadded: bool = True) -> None:
        super().__init__()
        self.bert = Bert(size, unpadded=unpadded)
        self.dropout = KeyedTokenDropout(size.hidden_dropout)
        self.classifier = nn.Linear(size.hidden_size, num_classes)
        initialize(self, size.initializer_range)


class BertForClassification(_BertWithClassifier):
    """BERT or NEZHA with one class per sample."""

    def forward(self, input_ids: Tensor, segment_ids: Tensor, mask: Tensor) -> Tensor:
        """Logits [samples, classes]; for the arguments see `Bert`."""
        pooled = self.bert.pooler(self.bert(input_ids, segment_ids, mask).first())
        rows = torch.arange(pooled.shape[0], device=pooled.device)
        return self.classifier(self.dropout(pooled, rows, torch.zeros_like(rows)))


class BertForTagging(_BertWithClassifier):
    """BERT or NEZHA with one class per token."""

    def forward(self, input_ids: Tensor, segment_ids: Tensor, mask: Tensor) -> Tensor:
        """Logits [samples, length, tags], 0 at padding; length is the longest sample's."""
        encoded = self.bert(input_ids, segment_ids, mask)
        packing = encoded.packing
        tokens = self.dropout(encoded.tokens, packing.rows(), packing.positions())
        return packing.unpack(self.classifier(tokens))


class BertForSpans(nn.Module):
    """BERT or NEZHA with the start and the end of an answer in each sample."""

    def __init__(self, size: BertSize, *, unpadded: bool = True) -> None:
        super().__init__()
        self.bert = Bert(size, unpadded=unpadded)
        self.qa_outputs = nn.Linear(size.hidden_size, 2)
        initialize(self, size.initializer_range)

    def forward(self, input_ids: Tensor, segment_ids: Tensor, mask: Tensor) -> Tensor:
        """Logits [samples, length, 2] of start and end, 0 at padding."""
        encoded = self.bert(input_ids, segment_ids, mask)
        return encoded.packing.unpack(self.qa_outputs(encoded.tokens))
