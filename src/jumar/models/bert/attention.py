"""Multi-head attention over packed tokens, with and without NEZHA's relative positions."""

import math

import torch
from torch import Tensor, nn
from torch.nn import functional

from jumar.models.bert.packing import Packing
from jumar.models.bert.relative import RelativePositions, relative_positions
from jumar.models.export_mode import in_export_mode
from jumar.models.keyed_dropout import KeyedTokenDropout


class SelfAttention(nn.Module):
    """Softmax attention of each sample's tokens to each other.

    The names are those of Hugging Face's `BertSelfAttention`.

    Args:
        hidden_size: Numbers per token; a multiple of `num_heads`.
        num_heads: Heads.
        dropout: Probability of dropping an attention weight.
        relative: Whether NEZHA's relative positions are added.
    """

    def __init__(self, hidden_size: int, num_heads: int, *, dropout: float, relative: bool) -> None:
        super().__init__()
        if hidden_size % num_heads:
            raise ValueError(
                f"{hidden_size} numbers per token are not a multiple of {num_heads} heads"
            )
        self.num_heads = num_heads
        self.head_size = hidden_size // num_heads
        self.relative = relative
        self.query = nn.Linear(hidden_size, hidden_size)
        self.key = nn.Linear(hidden_size, hidden_size)
        self.value = nn.Linear(hidden_size, hidden_size)
        self.dropout = KeyedTokenDropout(dropout)

    def forward(self, x: Tensor, packing: Packing) -> Tensor:
        """[tokens, hidden_size] in and out."""
        query, key, value = (
            self._heads(layer(x), packing) for layer in (self.query, self.key, self.value)
        )
        if self.relative or (self.training and self.dropout.p > 0):
            context = self._explicit(query, key, value, packing)
        else:
            mask = None if packing.is_full else packing.mask[:, None, None, :]
            context = functional.scaled_dot_product_attention(query, key, value, attn_mask=mask)
        return packing.pack(context.transpose(1, 2).flatten(2))

    def _heads(self, x: Tensor, packing: Packing) -> Tensor:
        """[tokens, hidden_size] as [samples, heads, length, head_size]."""
        return packing.unpack(x).unflatten(2, (self.num_heads, self.head_size)).transpose(1, 2)

    def _explicit(self, query: Tensor, key: Tensor, value: Tensor, packing: Packing) -> Tensor:
        # A traced length belongs to a single graph and must not be cached.
        relative_terms = RelativePositions if in_export_mode() else relative_positions
        terms = (
            relative_terms(packing.length, self.head_size, query.device) if self.relative else None
        )
        query = query / math.sqrt(self.head_size)
        scores = query @ key.transpose(2, 3)
        if terms is not None:
            scores = scores + terms.scores(query)
        if not packing.is_full:
            scores = scores.masked_fill(~packing.mask[:, None, None, :], -torch.inf)
        weights = functional.softmax(scores, dim=3).to(value.dtype)
        weights = self._dropped(weights)
        context = weights @ value
        return context if terms is None else context + terms.outputs(weights)

    def _dropped(self, weights: Tensor) -> Tensor:
        if not self.training or self.dropout.p == 0:
            return weights
        samples, heads, length, _ = weights.shape
        device = weights.device
        rows = torch.arange(samples, device=device).repeat_interleave(heads * length)
        # Numbered by position first, so that a query has the same mask at any length.
        queries = torch.arange(length, device=device) * heads
        positions = (queries[None, :] + torch.arange(heads, device=device)[:, None]).flatten()
        flat = weights.reshape(-1, length)
        return self.dropout(flat, rows, positions.repeat(samples)).view(weights.shape)
