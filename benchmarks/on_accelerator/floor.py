"""What the ops of a step take at least: each its arithmetic at the peak, or its bytes."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torch.utils.flop_counter import flop_registry

COPY = "copy"
"""The rate of memory, bytes read and written a second."""


@dataclass(frozen=True, kw_only=True)
class Floor:
    """The least of a step.

    Attributes:
        flops: Of matrix products, convolutions and attention.
        seconds: Over all ops as they are called, each the larger of its arithmetic at the peak of
            its dtype and its bytes at the rate of memory; 0 where those rates are unknown.
    """

    flops: float
    seconds: float


def floor_of(step: Callable[[], object], rates: Mapping[str, float]) -> Floor:
    """Count a step, which is made.

    Args:
        step: An eager step.
        rates: Measured ones: operations a second by dtype, and `copy`.
    """
    counter = _Counter(rates)
    with counter:
        step()
    known = COPY in rates
    return Floor(flops=counter.flops, seconds=counter.seconds if known else 0.0)


class _Counter(TorchDispatchMode):
    def __init__(self, rates: Mapping[str, float]) -> None:
        super().__init__()
        self._rates = rates
        self.flops, self.seconds = 0.0, 0.0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        del types
        kwargs = kwargs or {}
        result = func(*args, **kwargs)
        if _is_view(func):
            return result
        packet = getattr(func, "_overloadpacket", None)
        flops = 0.0
        if packet in flop_registry:
            flops = float(flop_registry[packet](*args, **kwargs, out_val=result))
        seen = {id(each): each for each in _tensors((args, kwargs, result))}
        if not seen:
            return result
        self.flops += flops
        dtypes = {each.dtype for each in seen.values() if each.is_floating_point()}
        low = min(dtypes, key=lambda dtype: dtype.itemsize, default=torch.float32)
        peak = self._rates.get(str(low).removeprefix("torch."), 0.0)
        arithmetic = flops / peak if peak else 0.0
        size = sum(each.numel() * each.element_size() for each in seen.values())
        self.seconds += max(arithmetic, size / self._rates.get(COPY, float("inf")))
        return result


def _tensors(values: Any) -> Iterator[Tensor]:
    return (each for each in tree_leaves(values) if isinstance(each, Tensor))


def _is_view(func: Any) -> bool:
    """Whether it moves nothing: its result is an alias that it does not write."""
    return any(
        each.alias_info is not None and not each.alias_info.is_write
        for each in func._schema.returns
    )
