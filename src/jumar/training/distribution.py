"""Several ranks: starting and leaving them, and the few things they agree on.

The ranks are started by torchrun. Gradients are averaged by DistributedDataParallel; what is
here is the rest.
"""

import importlib
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn

from jumar.devices.contract import Device
from jumar.ground.errors import UserError

TIMEOUT = timedelta(minutes=30)
"""How long a rank waits for the others; the first step on an NPU compiles for minutes."""


@dataclass(frozen=True, kw_only=True)
class Ranks:
    """Which of how many processes this is."""

    rank: int = 0
    world: int = 1
    local_world: int = 1
    """How many of them are on this machine."""

    @property
    def is_first(self) -> bool:
        """Whether this rank writes files and log lines."""
        return self.rank == 0


def announced_ranks() -> Ranks:
    """The ranks by the environment that torchrun sets, before any of them is connected.

    Raises:
        UserError: The variables contradict each other.
    """
    try:
        ranks = Ranks(
            rank=int(os.environ.get("RANK", "0")),
            world=int(os.environ.get("WORLD_SIZE", "1")),
            local_world=int(os.environ.get("LOCAL_WORLD_SIZE", "1")),
        )
    except ValueError as error:
        raise UserError(f"RANK and WORLD_SIZE must be whole numbers: {error}") from None
    if not 0 <= ranks.rank < ranks.world:
        raise UserError(
            f"RANK={ranks.rank} does not fit WORLD_SIZE={ranks.world}",
            todo="Start several ranks with: torchrun --nproc-per-node N -m jumar train ...",
        )
    return ranks


def connect(ranks: Ranks, device: Device) -> None:
    """Join the other ranks with the back end of the device (gloo, nccl, hccl)."""
    if ranks.world > 1 and not dist.is_initialized():
        # The first optimizer imports the compiler. Imported while there is a process group, it
        # keeps that (torch 2.13), whose threads then outlive `disconnect` and abort the process
        # at its end in one of three cases.
        importlib.import_module("torch._dynamo")
        dist.init_process_group(
            device.distributed_backend, timeout=TIMEOUT, device_id=device.group_device
        )


def disconnect() -> None:
    """Leave the other ranks at the regular end of a run."""
    if dist.is_initialized():
        # A thread of gloo that has just finished an exchange needs the interpreter to let go of
        # its tensors. If the group ended at that moment, each would wait for the other for ever.
        time.sleep(0.2)
        dist.destroy_process_group()


def maximum_over_ranks(value: torch.Tensor, ranks: Ranks) -> torch.Tensor:
    """The largest value of all ranks, in place; the flags on which an update depends must agree."""
    if ranks.world > 1:
        dist.all_reduce(value, op=dist.ReduceOp.MAX)
    return value


def weights_over_ranks(
    weights: Mapping[str, torch.Tensor], ranks: Ranks
) -> dict[str, torch.Tensor]:
    """The mean weight of a rank, by name: gradients are averaged over the ranks after it divides.

    Nothing to divide (no token of the whole batch is masked) counts as 1.
    """
    means = {
        name: mean_over_ranks(value.detach().clone().float(), ranks)
        for name, value in weights.items()
    }
    return {name: torch.where(mean > 0, mean, 1.0) for name, mean in means.items()}


def mean_over_ranks(value: torch.Tensor, ranks: Ranks) -> torch.Tensor:
    """The mean over all ranks, in place."""
    if ranks.world > 1:
        dist.all_reduce(value, op=dist.ReduceOp.SUM)
        value /= ranks.world
    return value


def sums_over_ranks(sums: Mapping[str, torch.Tensor], ranks: Ranks) -> dict[str, torch.Tensor]:
    """The float64 sums of all ranks on the CPU, added in the order of the ranks.

    A rank may have none: a small set does not reach all of them, and a batch of which nothing can
    be read is left out. They travel as objects, so that such a rank need not know their names.
    """
    if ranks.world == 1:
        return dict(sums)
    held: list[dict[str, torch.Tensor]] = [{}] * ranks.world
    dist.all_gather_object(held, dict(sums))
    names = dict.fromkeys(name for own in held for name in own)
    return {
        name: torch.stack([own[name] for own in held if name in own]).sum(dim=0) for name in names
    }


def rows_over_ranks(rows: Mapping[str, torch.Tensor], ranks: Ranks) -> dict[str, torch.Tensor]:
    """The rows [n, ...] of all ranks on the CPU, one after the other in the order of the ranks."""
    if ranks.world == 1:
        return dict(rows)
    held: list[dict[str, torch.Tensor]] = [{}] * ranks.world
    dist.all_gather_object(held, dict(rows))
    names = dict.fromkeys(name for own in held for name in own)
    return {name: torch.cat([own[name] for own in held if name in own]) for name in names}


def gather_texts(texts: Sequence[str], ranks: Ranks) -> list[str]:
    """The texts of all ranks in the order of the ranks, each once."""
    if ranks.world == 1:
        return list(dict.fromkeys(texts))
    held: list[list[str]] = [[]] * ranks.world
    dist.all_gather_object(held, list(texts))
    return list(dict.fromkeys(text for own in held for text in own))


def share_text(text: str, ranks: Ranks) -> str:
    """The first rank's text, on every rank."""
    if ranks.world == 1:
        return text
    held: list[str] = [text]
    dist.broadcast_object_list(held, src=0)
    return held[0]


def share_buffers(model: nn.Module, ranks: Ranks) -> None:
    """The first rank's buffers (batch-norm averages) on every rank, to be scored or saved.

    Each rank averages the statistics of its own part of the batch, as the originals do; a
    checkpoint holds the first rank's.
    """
    if ranks.world > 1:
        for buffer in model.buffers():
            dist.broadcast(buffer, src=0)


def wait_for_ranks(ranks: Ranks) -> None:
    """Wait until every rank is here."""
    if ranks.world > 1:
        dist.barrier()


class Agreement:
    """A few small numbers that all ranks agree on once a step, a step late.

    A rank that is asked to stop, or whose clock says that it is time for a checkpoint, cannot
    act alone: the others would wait for it in the next all-reduce. The exchange of step n runs on
    the CPU while step n computes and is read at step n + 1, so nobody waits for it.

    Args:
        ranks: The ranks that agree.
        size: How many numbers.
    """

    def __init__(self, ranks: Ranks, size: int) -> None:
        self._ranks = ranks
        self._values = torch.zeros(size, dtype=torch.int32)
        self._work: dist.Work | None = None
        self._group = dist.new_group(backend="gloo", timeout=TIMEOUT) if ranks.world > 1 else None

    def exchange(self, mine: Sequence[int]) -> list[int]:
        """Offer this rank's numbers; returns the largest ones offered a step before (or these,
        where there is one rank).
        """
        if self._ranks.world == 1:
            return list(mine)
        self.finish()
        agreed: list[int] = self._values.tolist()
        self._values.copy_(torch.tensor(mine, dtype=torch.int32))
        self._work = dist.all_reduce(
            self._values, op=dist.ReduceOp.MAX, group=self._group, async_op=True
        )
        return agreed

    def finish(self) -> None:
        """Take in the last exchange, so that no rank leaves while it is under way."""
        if self._work is not None:
            self._work.wait()
            self._work = None
