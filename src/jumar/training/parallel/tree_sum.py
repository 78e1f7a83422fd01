"""Sums that do not depend on the number of ranks: the parts of a step, added in one fixed tree.

Floating-point addition is not associative, so an all-reduce gives different bits for each number of
ranks. Here the sum of parts 0 to V - 1 is that of the first 2**k and that of the others, 2**k being
the largest power of two below V, and so on down to single parts. A rank adds what lies within its
own parts; the others' partial sums are added in the same tree.
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
    """Every addition in the tree over `total` parts, as its two operands."""
    pending = [Span(0, total)]
    while pending:
        first, size = pending.pop()
        if size > 1:
            half = 1 << ((size - 1).bit_length() - 1)
            pair = Span(first, half), Span(first + half, size - half)
            yield pair
            pending += pair


def partial_sums(parts: Span, total: int) -> list[Span]:
    """What a rank with these parts can add on its own: few sums, in the order of the parts."""
    merging = _Merging(total)
    for number in range(parts.first, parts.first + parts.size):
        merging.push(Span(number, 1))
    return merging.spans


class _Merging:
    """Spans in order, any two of them merged as soon as the tree adds them."""

    def __init__(self, total: int) -> None:
        self._pairs = set(subtrees(total))
        self.spans: list[Span] = []

    def push(self, span: Span) -> int:
        """Append a span; returns how often the last two were merged."""
        self.spans.append(span)
        num_merges = 0
        while len(self.spans) > 1 and (self.spans[-2], self.spans[-1]) in self._pairs:
            right, left = self.spans.pop(), self.spans.pop()
            self.spans.append(Span(left.first, left.size + right.size))
            num_merges += 1
        return num_merges


class TreeSum:
    """Adds tensors, of which every part of a step has one.

    Args:
        total: Parts of the step, over all ranks.

    Attributes:
        values: The sum of each of `spans`.
    """

    def __init__(self, total: int) -> None:
        self.total = total
        self.values: list[Tensor] = []
        self._merging = _Merging(total)

    @property
    def spans(self) -> Sequence[Span]:
        """The parts added so far."""
        return self._merging.spans

    @torch.no_grad()
    def add(self, span: Span, value: Tensor) -> None:
        """Add the value of the next parts; an earlier one takes the sum."""
        self.values.append(value)
        for _ in range(self._merging.push(span)):
            right = self.values.pop()
            self.values[-1].add_(right)

    def whole(self) -> Tensor:
        """The sum of all parts.

        Raises:
            ValueError: Some are missing.
        """
        if list(self.spans) != [Span(0, self.total)]:
            raise ValueError(f"of {self.total} parts only {list(self.spans)} were added")
        return self.values[0]
