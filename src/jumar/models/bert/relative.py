"""NEZHA's functional relative positions: sinusoids of the clipped distance between two tokens.

Paper: J. Wei et al., "NEZHA: Neural Contextualized Representation for Chinese Language
Understanding", https://arxiv.org/abs/1909.00204. Original: huawei-noah's NEZHA-TensorFlow.

R[p] is a constant row for each clipped distance p = clip(j - i, -64, 64) + 64 of key j and query i,
the same for all heads and layers:

    score(i, j) = (q_i . k_j + q_i . R[p(i, j)]) / sqrt(d)
    output(i)   = sum over j of a(i, j) (v_j + R[p(i, j)])

There are two exact forms. `dense` multiplies by R[p(i, j)] [length, length, d] as one batch of
matrix products. `buckets` multiplies the query by R and gathers the products by distance, and sums
the probabilities of equal distances before multiplying, which saves length * length * d values.
"""

import math
from functools import lru_cache

import torch
from torch import Tensor

from jumar.models.export_mode import in_export_mode

MAX_DISTANCE = 64
DENSE_UP_TO = 256
"""Longest sequence for which the dense form is used. On a CPU it is the faster one at 128 and the
slower one at 512 (`benchmarks/bert_step.py --only nezha`); lengths in between were not measured."""


def relative_table(head_size: int, device: torch.device) -> Tensor:
    """R, float32 [2 * MAX_DISTANCE + 1, head_size]: sines at even columns, cosines at odd ones."""
    rows = torch.arange(2 * MAX_DISTANCE + 1, dtype=torch.float64)[:, None]
    rates = torch.exp(
        torch.arange(0, head_size, 2, dtype=torch.float64) * (-math.log(10000.0) / head_size)
    )
    table = torch.empty(len(rows), head_size, dtype=torch.float64)
    table[:, 0::2], table[:, 1::2] = torch.sin(rows * rates), torch.cos(rows * rates)
    return table.to(device=device, dtype=torch.float32)


class RelativePositions:
    """The relative terms for one sequence length.

    Args:
        length: Tokens of the longest sample.
        head_size: Features per head.
        device: The device to create them on.
    """

    # Instances are cached: the first batch of a length may come from an evaluation, and tensors
    # created in inference mode cannot take part in a backward pass.
    @torch.inference_mode(False)
    def __init__(self, length: int, head_size: int, device: torch.device) -> None:
        positions = torch.arange(length, device=device)
        distance = (positions[None, :] - positions[:, None]).clamp(-MAX_DISTANCE, MAX_DISTANCE)
        self._buckets = distance + MAX_DISTANCE
        self._table = relative_table(head_size, device)
        is_dense = in_export_mode() or length <= DENSE_UP_TO
        self._dense = self._table[self._buckets] if is_dense else None

    def scores(self, query: Tensor) -> Tensor:
        """The term added to the products of queries and keys.

        Args:
            query: [samples, heads, length, head_size].

        Returns:
            [samples, heads, length, length].
        """
        samples, heads, length, _ = query.shape
        if self._dense is not None:
            by_query = query.permute(2, 0, 1, 3).reshape(length, samples * heads, -1)
            terms = torch.bmm(by_query, self._dense.to(query.dtype).transpose(1, 2))
            return terms.view(length, samples, heads, length).permute(1, 2, 0, 3)
        terms = query @ self._table.to(query.dtype).T
        return terms.gather(3, self._buckets.expand(samples, heads, length, length))

    def outputs(self, probabilities: Tensor) -> Tensor:
        """The term added to the products of probabilities and values.

        Args:
            probabilities: [samples, heads, length, length], after dropout.

        Returns:
            [samples, heads, length, head_size].
        """
        samples, heads, length, _ = probabilities.shape
        if self._dense is not None:
            by_query = probabilities.permute(2, 0, 1, 3).reshape(length, samples * heads, length)
            terms = torch.bmm(by_query, self._dense.to(probabilities.dtype))
            return terms.view(length, samples, heads, -1).permute(1, 2, 0, 3)
        sums = probabilities.new_zeros(samples, heads, length, len(self._table))
        sums = sums.scatter_add(
            3, self._buckets.expand(samples, heads, length, length), probabilities
        )
        return sums @ self._table.to(probabilities.dtype)


@lru_cache(maxsize=8)
def relative_positions(length: int, head_size: int, device: torch.device) -> RelativePositions:
    """The terms for a length, cached for its later batches."""
    return RelativePositions(length, head_size, device)
