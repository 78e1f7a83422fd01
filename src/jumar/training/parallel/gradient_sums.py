"""Gradients of a step's parts, added in one tree and sent while the last backward pass runs."""

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import accumulate

import torch
from torch import Tensor, nn

from jumar.training.parallel.ranks import Ranks, TreeExchange
from jumar.training.parallel.tree_sum import Span, TreeSum

BUCKET_BYTES = 25 * 2**20
"""As in DistributedDataParallel: large enough to use the interconnect fully, and small enough to
start early."""


@dataclass(kw_only=True)
class _Bucket:
    """Consecutive parameters whose gradients are sent together.

    Attributes:
        numbers: Indices of the parameters.
        elements: Their slice of a part's vector.
        exchange: Adds their gradients over the ranks.
        sums: The sums of this step.
        missing: Indices of the parameters that still lack a gradient in the last part.
    """

    numbers: range
    elements: slice
    exchange: TreeExchange
    sums: TreeSum
    missing: set[int] = field(default_factory=set)


class GradientSums:
    """Adds up the gradients of an objective's parameters over all parts of a step.

    A part's gradients are views of one vector. Each has the strides of its parameter, because a
    norm depends on the order in memory. The vectors are reused in every step.

    Args:
        parameters: Floating-point parameters of one dtype.
        ranks: The ranks that share the parts.
        first: The number of this rank's first part.
        total: The number of parts of a step over all ranks.
        bucket_bytes: Minimum size of a bucket, except for the last.

    Attributes:
        parameters: The argument of this name.
    """

    def __init__(
        self,
        parameters: Sequence[nn.Parameter],
        ranks: Ranks,
        *,
        first: int,
        total: int,
        bucket_bytes: int = BUCKET_BYTES,
    ) -> None:
        self.parameters, self._total = parameters, total
        self._last = first + total // ranks.world - 1
        sizes = [parameter.numel() for parameter in parameters]
        self._starts = list(accumulate(sizes, initial=0))
        self._vectors: list[Tensor] = []
        self._views: list[list[Tensor]] = []
        self._collected: set[int] = set()
        self._number = first
        # From the last parameter to the first, the order in which gradients are computed.
        self._buckets = [
            _Bucket(
                numbers=numbers,
                elements=slice(self._starts[numbers.start], self._starts[numbers.stop]),
                exchange=ranks.tree_exchange(),
                sums=TreeSum(total),
            )
            for numbers in _ranges(parameters, bucket_bytes)
        ]
        self._unsent: list[_Bucket] = []

    @contextmanager
    def collecting(self) -> Generator[None]:
        """Context for the passes of a step, which collects and clears the parameters' gradients."""
        for bucket in self._buckets:
            bucket.sums, bucket.missing = TreeSum(self._total), set(bucket.numbers)
        self._unsent = list(self._buckets)
        hooks = [
            parameter.register_post_accumulate_grad_hook(partial(self._collect, number))
            for number, parameter in enumerate(self.parameters)
        ]
        try:
            yield
        finally:
            for hook in hooks:
                hook.remove()

    @contextmanager
    def part(self, number: int) -> Generator[None]:
        """Context for the passes of one part; parts must be in order."""
        num_spans = len(self._buckets[0].sums.spans) if self._buckets else 0
        if num_spans == len(self._vectors):
            self._add_vector()
        self._number, self._collected = number, set()
        self._vector, self._vector_views = self._vectors[num_spans], self._views[num_spans]
        yield
        for index in set(range(len(self.parameters))) - self._collected:
            self._vector_views[index].zero_()
        for bucket in self._unsent:
            bucket.sums.add(Span(number, 1), self._vector[bucket.elements])
        if number == self._last:
            self._send(self._unsent)

    def finish(self) -> None:
        """Set each parameter's gradient to the sum over all parts."""
        for bucket in self._buckets:
            bucket.exchange.share()
        for bucket in self._buckets:
            bucket.exchange.finish()
        for parameter, gradient in zip(self.parameters, self._views[0], strict=True):
            parameter.grad = gradient

    @torch.no_grad()
    def _collect(self, number: int, parameter: Tensor) -> None:
        """Collect a complete gradient, and send its bucket if none is missing."""
        gradient, parameter.grad = parameter.grad, None
        assert gradient is not None, "called after a gradient was accumulated"
        total = self._vector_views[number]
        if number not in self._collected:
            self._collected.add(number)
            total.copy_(gradient)
        else:
            total.add_(gradient)
        if self._number != self._last:
            return
        bucket = next(candidate for candidate in self._buckets if number in candidate.numbers)
        if number not in bucket.missing:
            raise RuntimeError("a gradient was accumulated again after it had been sent")
        bucket.missing.remove(number)
        while self._unsent and not self._unsent[0].missing:
            ready = self._unsent.pop(0)
            ready.sums.add(Span(self._number, 1), self._vector[ready.elements])
            self._send([ready])

    def _send(self, buckets: Sequence[_Bucket]) -> None:
        for bucket in buckets:
            bucket.exchange.start(bucket.sums)

    def _add_vector(self) -> None:
        first = self.parameters[0]
        vector = first.detach().new_empty(self._starts[-1])
        self._vectors.append(vector)
        self._views.append(
            [
                vector.as_strided(parameter.shape, parameter.stride(), start)
                for parameter, start in zip(self.parameters, self._starts, strict=False)
            ]
        )


def _ranges(parameters: Sequence[nn.Parameter], bucket_bytes: int) -> list[range]:
    """Ranges of parameters that are sent together, from the last parameter to the first."""
    ranges: list[range] = []
    end, size = len(parameters), 0
    for number in reversed(range(len(parameters))):
        size += parameters[number].nbytes
        if size >= bucket_bytes or number == 0:
            ranges.append(range(number, end))
            end, size = number, 0
    return ranges
