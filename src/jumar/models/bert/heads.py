"""Heads on top of BERT: masked words and next sentence, classes, tags, spans.

Names of modules and parameters are those of Hugging Face's BERT classes.
"""

import math
from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

from jumar.models.bert.network import Bert, BertSize, Encoded, LayerNorm, initialize
from jumar.models.keyed_dropout import KeyedTokenDropout


class LogitLimits(NamedTuple):
    """Limits on the float32 logits of masked words, in bytes.

    Attributes:
        chunk: Logits computed at once.
        kept: Logits kept for the backward pass; those of more words are computed twice, as they
            would be the largest tensors of the step.
    """

    chunk: int
    kept: int


# Above 32 MB glibc asks Linux for fresh pages each time, which took a fifth of the step of a small
# network.
_ON_CPU = LogitLimits(chunk=31 * 2**20, kept=2**27)
# Accelerators are fastest with few large products.
_ON_DEVICES = LogitLimits(chunk=2**30, kept=2**30)


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

    def word_losses(self, encoded: Encoded, places: Tensor, ids: Tensor) -> Tensor:
        """Cross-entropy of masked words, float32 [words].

        Args:
            encoded: The batch.
            places: int64 [words], positions of the words among the packed tokens.
            ids: int64 [words], the original words.
        """
        words = self.cls.predictions.transform(encoded.tokens.index_select(0, places))
        again = torch.is_grad_enabled() and self._logit_bytes(words) > _limits(words).kept
        losses = [
            checkpoint(self._losses, *chunk, use_reentrant=False) if again else self._losses(*chunk)
            for chunk in self._chunks(words, ids)
        ]
        return torch.cat(losses)

    def word_scores(self, encoded: Encoded, places: Tensor, ids: Tensor) -> tuple[Tensor, Tensor]:
        """As `word_losses`, and whether the largest logit is that of the word, bool [words].

        Training does not need the latter, which takes longer than the cross-entropy on a CPU.
        """
        words = self.cls.predictions.transform(encoded.tokens.index_select(0, places))
        losses: list[Tensor] = []
        right: list[Tensor] = []
        for part, targets in self._chunks(words, ids):
            logits = self.word_logits(part).float()
            losses.append(functional.cross_entropy(logits, targets, reduction="none"))
            right.append(logits.argmax(1) == targets)
        return torch.cat(losses), torch.cat(right)

    def word_logits(self, words: Tensor) -> Tensor:
        """Logits [words, vocabulary] of transformed words [words, hidden_size]."""
        table = self.bert.embeddings.word_embeddings.weight
        return functional.linear(words, table, self.cls.predictions.bias)

    def sentence_logits(self, encoded: Encoded) -> Tensor:
        """Logits [samples, 2]: 0 where the second segment follows the first, 1 where not."""
        return self.cls.seq_relationship(self.bert.pooler(encoded.first()))

    def _losses(self, words: Tensor, ids: Tensor) -> Tensor:
        return functional.cross_entropy(self.word_logits(words).float(), ids, reduction="none")

    def _chunks(self, words: Tensor, ids: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
        """Words and their ids in chunks of nearly equal size; one chunk if there are none."""
        count = max(1, math.ceil(self._logit_bytes(words) / _limits(words).chunk))
        yield from zip(words.tensor_split(count), ids.tensor_split(count), strict=True)

    def _logit_bytes(self, words: Tensor) -> int:
        return 4 * len(words) * len(self.cls.predictions.bias)


def _limits(words: Tensor) -> LogitLimits:
    return _ON_CPU if words.device.type == "cpu" else _ON_DEVICES


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
