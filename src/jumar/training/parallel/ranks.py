"""The processes of a run, and all that depends on how many there are.

The loop, the state, the checkpoint and the evaluation ask their `Ranks`; that there is one
process or that there are several is known here alone. Another way of working together (weights in
parts, sums that do not depend on the number of ranks) is another class below `Ranks`.
"""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from jumar.devices.contract import Device
from jumar.tasks.task import Objective


@dataclass(frozen=True, kw_only=True)
class Ranks:
    """One process, which has nobody to agree with."""

    rank: int = 0
    world: int = 1
    local_world: int = 1
    """How many of them are on this machine."""

    @property
    def is_first(self) -> bool:
        """Whether this rank writes files and log lines."""
        return self.rank == 0

    def connect(self, device: Device) -> None:
        """Join the other ranks."""

    def disconnect(self) -> None:
        """Leave the other ranks at the regular end of a run."""

    def wrap(self, call: nn.Module, objective: Objective, device: Device) -> nn.Module:
        """The form of an objective whose gradients are those of the whole batch.

        Args:
            call: The objective, compiled or not.
            objective: Whose trained parameters get gradients.
            device: Where it computes.
        """
        del objective, device
        return call

    def accumulating(self, call: nn.Module, *, last: bool) -> AbstractContextManager[None]:
        """Around a part of a batch: ranks exchange gradients in the last one only.

        Args:
            call: From `wrap`.
            last: Whether this is the last part.
        """
        del call, last
        return nullcontext()

    def maximum(self, value: Tensor) -> Tensor:
        """The largest value of all ranks, in place; flags on which an update depends must agree."""
        return value

    def mean(self, value: Tensor) -> Tensor:
        """The mean over all ranks, in place."""
        return value

    def mean_weights(self, weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """The mean weight of a rank, by name: gradients are averaged after it divides.

        Nothing to divide (no token of the whole batch is masked) counts as 1.
        """
        means = {name: self.mean(weight.detach().float()) for name, weight in weights.items()}
        return {name: torch.where(mean > 0, mean, 1.0) for name, mean in means.items()}

    def sums(self, sums: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """The float64 sums of all ranks on the CPU, added in the order of the ranks.

        A rank may have none: a small set does not reach all of them, and a batch of which nothing
        can be read is left out.
        """
        return dict(sums)

    def rows(self, rows: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """The rows [n, ...] of all ranks on the CPU, one after the other in their order."""
        return dict(rows)

    def texts(self, texts: Sequence[str]) -> list[str]:
        """The texts of all ranks in the order of the ranks, each once."""
        return list(dict.fromkeys(texts))

    def shared_text(self, text: str) -> str:
        """The first rank's text, on every rank."""
        return text

    def share_buffers(self, model: nn.Module) -> None:
        """The first rank's buffers (batch-norm averages) on every rank, to be scored or saved.

        Each rank averages the statistics of its own part of the batch, as the originals do; a
        checkpoint holds the first rank's.
        """

    def wait(self) -> None:
        """Wait until every rank is here."""

    def agreement(self, size: int) -> "Agreement":
        """What the ranks agree on between steps.

        Args:
            size: How many numbers.
        """
        del size
        return Agreement()


class Agreement:
    """A few small numbers that all ranks agree on once a step."""

    def exchange(self, own: Sequence[int]) -> list[int]:
        """Offer this rank's numbers; returns the largest ones that are agreed on."""
        return list(own)

    def finish(self) -> None:
        """Take in the last exchange, so that no rank leaves while it is under way."""
