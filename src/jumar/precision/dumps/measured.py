"""Statistics of a dump's tensors, where their tool has written none, or only of finite elements."""

import math
from dataclasses import replace

import torch

from jumar.precision.dumps.dump import Dump, Statistics, Tensors, Value


def with_statistics(dump: Dump) -> Dump:
    """Return a dump with the statistics of each tensor that it contains.

    Statistics that cover all elements are kept. The others, of tensors with NaN or infinities in
    our own dumps, are replaced by those of all elements.

    Raises:
        UserError: A tensor cannot be read.
    """
    tensors = dump.tensors
    if tensors is None:
        return dump
    calls = [
        replace(call, values=tuple(_measured(value, tensors) for value in call.values))
        for call in dump.calls
    ]
    return replace(dump, calls=calls)


def _measured(value: Value, tensors: Tensors) -> Value:
    statistics = value.statistics
    if value.tensor is None or (statistics and not (statistics.nan or statistics.inf)):
        return value
    tensor = tensors.read(value.tensor)
    if tuple(tensor.shape) != value.shape:  # only a sample of its elements was stored
        return value
    return replace(value, statistics=_statistics(tensor, statistics))


def _statistics(tensor: torch.Tensor, known: Statistics | None) -> Statistics:
    """Return the statistics of all elements: NaN if any is NaN, as in other tools."""
    if not tensor.numel():
        return Statistics(count=0)
    numbers = tensor.abs().double() if tensor.is_complex() else tensor.double()
    low, high = (extreme.item() for extreme in torch.aminmax(numbers))
    if math.isfinite(low) and math.isfinite(high):
        # Squares of large elements would exceed the range of float64.
        scale = max(-low, high) or 1.0
        norm = torch.linalg.vector_norm(numbers / scale).item() * scale
    else:
        norm = math.nan if math.isnan(low) else math.inf
    counts = known or Statistics(count=tensor.numel())
    mean = numbers.mean().item()
    return replace(counts, min=low, max=high, mean=mean, l2=norm, nan=None, inf=None)
