"""The processes of a run, and everything that depends on their number.

The loop, the state, the checkpoint and the evaluation call their `Ranks`; only this class knows
whether there is one process or several. Another form of parallelism, such as sharded weights, would
be another subclass of `Ranks`.
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
    """A single process, and the interface of several."""

    rank: int = 0
    world: int = 1
    local_world: int = 1
    """Number of ranks on this machine."""

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
            error: An error raised while the ranks communicated.
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
            call: The callable returned by `wrap`.
            last: Whether this is the last part.
        """
        del call, last
        return nullcontext()

    def tree_exchange(self) -> "TreeExchange":
        """Create an exchange whose sums over all parts do not depend on the number of ranks."""
        return TreeExchange()

    def maximum(self, value: Tensor) -> Tensor:
        """The maximum over all ranks, in place, for instance to agree on whether to update."""
        return value

    def mean(self, value: Tensor) -> Tensor:
        """The mean over all ranks, in place."""
        return value

    def mean_weights(self, weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """The mean weight per rank by name, by which losses are divided before the backward pass.

        A weight of zero (no token of the whole batch is masked) counts as 1.
        """
        means = {name: self.mean(weight.detach().float()) for name, weight in weights.items()}
        return {name: torch.where(mean > 0, mean, 1.0) for name, mean in means.items()}

    def sums(self, sums: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """The float64 sums over all ranks on the CPU, added in rank order.

        A rank may have no sums: it has no samples of a small data set, or none that are readable.
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
        a checkpoint contains the first rank's.
        """

    def wait(self) -> None:
        """Wait until every rank has called this."""

    def agreement(self, size: int) -> "Agreement":
        """Create an agreement between the ranks, used between steps.

        Args:
            size: Number of values to agree on.
        """
        del size
        return Agreement()


class TreeExchange:
    """Turns sums over this rank's parts into those over all ranks' parts.

    For each sum, its methods are called once, in order. If there are several exchanges, every rank
    starts all of them and then finishes all of them, in the same order.
    """

    def start(self, sums: TreeSum) -> None:
        """Start to exchange partial sums.

        Args:
            sums: The sums of this rank's parts, vectors of equal length, which are overwritten. The
                ranks have equal numbers of parts, in rank order.
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
    """Agrees on a few integers between all ranks once per step."""

    def exchange(self, values: Sequence[int]) -> list[int]:
        """Contribute this rank's values; returns the agreed ones, the maxima over all ranks."""
        return list(values)

    def finish(self) -> None:
        """Complete the last exchange, so that no rank leaves while it is in progress."""
