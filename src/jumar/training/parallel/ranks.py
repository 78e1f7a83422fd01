"""The processes of a run, and everything that depends on how many there are.

The loop, the state, the checkpoint and the evaluation ask their `Ranks`; only this class knows
whether there is one process or several. Another way of working together (sharded weights) would be
another subclass of `Ranks`.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from jumar.devices.contract import Device
from jumar.tasks.task import Objective
from jumar.training.parallel.tree_sum import TreeSum


@dataclass(frozen=True, kw_only=True)
class Ranks:
    """A single process, which has no others to agree with."""

    rank: int = 0
    world: int = 1
    local_world: int = 1
    """How many of the ranks are on this machine."""

    @property
    def is_first(self) -> bool:
        """Whether this rank writes files and log lines."""
        return self.rank == 0

    def connect(self, device: Device) -> None:
        """Join the other ranks."""

    def disconnect(self) -> None:
        """Leave the other ranks at the normal end of a run."""

    def watch(self, advice: Callable[[], str]) -> None:
        """End this process when another machine stops responding; all ranks call this together.

        Args:
            advice: Returns advice for that case, printed once per machine.
        """

    def loss_in(self, error: Exception) -> str:
        """The message of an error about the loss of another rank; empty for any other error.

        Args:
            error: What was raised while the ranks worked together.
        """
        del error
        return ""

    def wrap(self, call: nn.Module, objective: Objective, device: Device) -> nn.Module:
        """Wrap an objective so that its gradients are those of the whole batch.

        Args:
            call: The objective, compiled or not.
            objective: The objective whose trained parameters get gradients.
            device: The device it runs on.
        """
        del objective, device
        return call

    def accumulating(self, call: nn.Module, *, last: bool) -> AbstractContextManager[None]:
        """Context for a part of a batch: ranks exchange gradients only in the last part.

        Args:
            call: From `wrap`.
            last: Whether this is the last part.
        """
        del call, last
        return nullcontext()

    def tree_exchange(self) -> "TreeExchange":
        """Create what adds the parts of all ranks: bit-identical for any number of ranks."""
        return TreeExchange()

    def maximum(self, value: Tensor) -> Tensor:
        """The largest value of all ranks, in place; ranks must agree on whether to update."""
        return value

    def mean(self, value: Tensor) -> Tensor:
        """The mean over all ranks, in place."""
        return value

    def mean_weights(self, weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """The mean weight per rank, by name: losses are divided by it, then gradients averaged.

        A zero weight (no token of the whole batch is masked) counts as 1.
        """
        means = {name: self.mean(weight.detach().float()) for name, weight in weights.items()}
        return {name: torch.where(mean > 0, mean, 1.0) for name, mean in means.items()}

    def sums(self, sums: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """The float64 sums over all ranks on the CPU, added in rank order.

        A rank may have none: a small data set does not reach every rank, and a batch without a
        readable sample is skipped.
        """
        return dict(sums)

    def rows(self, rows: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """The rows [n, ...] of all ranks on the CPU, concatenated in rank order."""
        return dict(rows)

    def texts(self, texts: Sequence[str]) -> list[str]:
        """The texts of all ranks in rank order, without duplicates."""
        return list(dict.fromkeys(texts))

    def shared_text(self, text: str) -> str:
        """The first rank's text, on every rank."""
        return text

    def share_buffers(self, model: nn.Module) -> None:
        """Copy the first rank's buffers (batch-norm averages) to every rank, to score or save them.

        Each rank averages the statistics of its own part of the batch, as the original scripts do;
        a checkpoint holds the first rank's.
        """

    def wait(self) -> None:
        """Wait until every rank is here."""

    def agreement(self, size: int) -> "Agreement":
        """Create an agreement between the ranks, used between steps.

        Args:
            size: How many numbers to agree on.
        """
        del size
        return Agreement()


class TreeExchange:
    """Turns sums over this rank's parts into those over all ranks' parts.

    Its methods are called in turn, once per sum. If there are several exchanges, every rank starts
    all of them and then finishes all of them, in the same order.
    """

    def start(self, sums: TreeSum) -> None:
        """Start to exchange partial sums.

        Args:
            sums: Of this rank's parts, vectors of one length. The ranks have equally many parts,
                in rank order. They are overwritten.
        """
        self._sums = sums

    def share(self) -> None:
        """Add up this rank's share of the elements, and start sending it to the others."""

    def finish(self) -> Tensor:
        """The sum over all parts, in the memory of the first partial sum."""
        return self._sums.whole()

    def whole(self, sums: TreeSum) -> Tensor:
        """Start, share and finish at once."""
        self.start(sums)
        self.share()
        return self.finish()


class Agreement:
    """A few small numbers that all ranks agree on once per step."""

    def exchange(self, own: Sequence[int]) -> list[int]:
        """Offer this rank's numbers; returns the agreed ones, the largest of all ranks."""
        return list(own)

    def finish(self) -> None:
        """Complete the last exchange, so that no rank leaves while it is in progress."""
