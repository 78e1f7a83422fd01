"""Ranks that add up what their parts give in one fixed tree, instead of by an all-reduce."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, chain

import torch
import torch.distributed as dist
from torch import Tensor, nn

from jumar.devices.contract import Device
from jumar.tasks.task import Objective
from jumar.training.parallel.ranks import Ranks
from jumar.training.parallel.replicated import Replicated
from jumar.training.parallel.tree_sum import Span, TreeSum, partial_sums


@dataclass(frozen=True, kw_only=True)
class Exact(Replicated):
    """Several processes with the whole network, whose sums are the same bits for any number."""

    def wrap(self, call: nn.Module, objective: Objective, device: Device) -> nn.Module:
        """The objective as it is: gradients are added by `summed`."""
        del objective, device
        return call

    def mean(self, value: Tensor) -> Tensor:
        """The value: what is logged was added up over the ranks at every step."""
        return value

    def share_buffers(self, model: nn.Module) -> None:
        """Nothing: every rank has the same buffers."""

    @torch.no_grad()
    def summed(self, sums: TreeSum) -> list[Tensor]:
        """See `Ranks.summed`.

        Each rank gets one slice of every rank's partial sums, adds these, and gives the result to
        all: as many bytes as an all-reduce in a ring.
        """
        count = sums.total // self.world
        spans = [partial_sums(Span(rank * count, count), sums.total) for rank in range(self.world)]
        size = sum(value.numel() for value in sums.values[0])
        per_rank = -(-size // self.world)
        sent = _slices(sums.values, self.world, per_rank)
        received = sent.new_empty(sum(map(len, spans)) * per_rank)
        dist.all_to_all_single(
            received,
            sent,
            output_split_sizes=[len(own) * per_rank for own in spans],
            input_split_sizes=[len(sums.values) * per_rank] * self.world,
        )
        slices = TreeSum(sums.total)
        for span, value in zip(chain(*spans), received.view(-1, per_rank), strict=True):
            slices.add(span, [value])
        whole = sent.new_empty(self.world * per_rank)
        # The older name warns in torch 2.13, the newer one is not in 2.6.
        name = "all_gather_single"
        gather = getattr(dist, name if hasattr(dist, name) else "all_gather_into_tensor")
        gather(whole, slices.whole()[0])
        return _shaped_like(sums.values[0], whole)


def adding_exactly(ranks: Ranks) -> Ranks:
    """The same processes, for steps whose parts are added by `Ranks.summed`."""
    if ranks.world == 1:
        return ranks
    return Exact(rank=ranks.rank, world=ranks.world, local_world=ranks.local_world)


def _slices(partials: Sequence[Sequence[Tensor]], ranks: int, per_rank: int) -> Tensor:
    """The partial sums as one tensor, ordered by the rank that a slice goes to."""
    first = partials[0][0]
    flat = first.new_zeros((len(partials), ranks * per_rank))
    for row, values in zip(flat, partials, strict=True):
        size = sum(value.numel() for value in values)
        torch.cat([_in_memory_order(value) for value in values], out=row[:size])
    return flat.view(len(partials), ranks, per_rank).transpose(0, 1).reshape(-1)


def _in_memory_order(value: Tensor) -> Tensor:
    return value.as_strided((value.numel(),), (1,))


def _shaped_like(values: Sequence[Tensor], flat: Tensor) -> list[Tensor]:
    """Views of consecutive elements, each laid out as one of the values."""
    starts = accumulate((value.numel() for value in values), initial=0)
    return [
        flat.as_strided(value.shape, value.stride(), start)
        for value, start in zip(values, starts, strict=False)
    ]
