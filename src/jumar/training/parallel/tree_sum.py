"""Sums that do not depend on the number of ranks: the parts of a step are added in a fixed tree.

Floating-point addition is not associative, so the bits of an all-reduce depend on the number of
ranks. Here the sum of parts 0 to V - 1 is the sum of the first 2**k parts plus the sum of the
others, where 2**k is the largest power of two below V, and so on down to single parts. A rank adds
the subtrees within its own parts; the partial sums of all ranks are added in the same tree.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import torch
from torch import Tensor


class Span(NamedTuple):
    """Consecutive parts of a step."""

    first: int
    size: int


def subtrees(total: int) -> Iterator[tuple[Span, Span]]:
    """The two operands of every addition in the tree over `total` parts."""
    pending = [Span(0, total)]
    while pending:
        first, size = pending.pop()
        if size > 1:
            half = 1 << ((size - 1).bit_length() - 1)
            pair = Span(first, half), Span(first + half, size - half)
            yield pair
            pending += pair


def partial_sums(parts: Span, total: int) -> list[Span]:
    """The spans of the sums that a rank with these parts can compute on its own, in order."""
    merger = _Merger(total)
    for number in range(parts.first, parts.first + parts.size):
        merger.push(Span(number, 1))
    return merger.spans


class _Merger:
    """Consecutive spans, two of which are merged as soon as the tree adds them."""

    def __init__(self, total: int) -> None:
        self._pairs = set(subtrees(total))
        self.spans: list[Span] = []

    def push(self, span: Span) -> int:
        """Append a span; returns how many times the last two spans were merged."""
        self.spans.append(span)
        num_merges = 0
        while len(self.spans) > 1 and (self.spans[-2], self.spans[-1]) in self._pairs:
            right, left = self.spans.pop(), self.spans.pop()
            self.spans.append(Span(left.first, left.size + right.size))
            num_merges += 1
        return num_merges


class TreeSum:
    """Adds one tensor for every part of a step.

    Args:
        total: Number of parts of the step over all ranks.

    Attributes:
        values: The sums over `spans`.
    """

    def __init__(self, total: int) -> None:
        self.total = total
        self.values: list[Tensor] = []
        self._merger = _Merger(total)

    @property
    def spans(self) -> Sequence[Span]:
        """The spans of parts added so far."""
        return self._merger.spans

    @torch.no_grad()
    def add(self, span: Span, value: Tensor) -> None:
        """Add the value of the next parts, in place to an earlier value where spans merge."""
        self.values.append(value)
        for _ in range(self._merger.push(span)):
            right = self.values.pop()
            self.values[-1].add_(right)

    def whole(self) -> Tensor:
        """The sum of all parts.

        Raises:
            ValueError: Parts are missing.
        """
        if list(self.spans) != [Span(0, self.total)]:
            raise ValueError(f"only {list(self.spans)} of {self.total} parts were added")
        return self.values[0]
