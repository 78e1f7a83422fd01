"""The forward and backward passes of a step, which accumulate the gradients of a batch's parts."""

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import nn

from jumar.data.samples import Batch
from jumar.models.keyed_random import set_random_position
from jumar.observer import BACKWARD, FORWARD, Observers
from jumar.training.lanes import Lane
from jumar.training.parallel.ranks import Ranks
from jumar.training.settings import Plan
from jumar.training.state import TrainState

SEED_MASK = 2**63 - 1


@dataclass(frozen=True, kw_only=True)
class Part:
    """A slice of a rank's batch.

    Attributes:
        batch: The slice.
        first_row: Position of its first sample in the global batch.
    """

    batch: Batch
    first_row: int


def split_batch(batch: Batch, micro_batch_size: int, first_row: int) -> list[Part]:
    """Cut a batch into parts whose gradients are accumulated.

    Args:
        batch: Tensors whose first dimension is the sample.
        micro_batch_size: Maximum size of a part; 0 for the whole batch.
        first_row: Position of the batch in the global batch.
    """
    size = batch_length(batch)
    stride = micro_batch_size or size
    return [
        Part(
            batch={name: value[start : start + stride] for name, value in batch.items()},
            first_row=first_row + start,
        )
        for start in range(0, size, stride)
    ]


def batch_length(batch: Batch) -> int:
    """Number of samples in a batch."""
    return next(iter(batch.values())).shape[0]


def step_seed(seed: int, step: int) -> int:
    """The seed for all random numbers of a step (SplitMix64 of the run's seed and the step)."""
    mask = (1 << 64) - 1
    mixed = (seed * 0x9E3779B97F4A7C15 + (step + 1) * 0xBF58476D1CE4E5B9) & mask
    mixed = ((mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9) & mask
    mixed = ((mixed ^ (mixed >> 27)) * 0x94D049BB133111EB) & mask
    return (mixed ^ (mixed >> 31)) & SEED_MASK


class Passes:
    """Runs the passes of steps for `training.sums=fast`.

    Each rank adds up the gradients of its parts, and DistributedDataParallel averages those of the
    ranks during the backward pass of the last part.
    """

    def __init__(self, state: TrainState, plan: Plan, ranks: Ranks, observers: Observers) -> None:
        self._state, self._plan, self._ranks = state, plan, ranks
        self._observers = observers
        self._weights: Mapping[str, torch.Tensor] = {}

    def run(self, lane: Lane, batch: Batch, step: int) -> torch.Tensor:
        """Accumulate the gradients of the batch, times the loss scale.

        Args:
            lane: The objective to train.
            batch: The whole batch of this rank.
            step: The step, counted from 0.

        Returns:
            Whether a loss was not finite (0-dim).
        """
        # Every rank has the same number of samples, so the sample count need not be averaged.
        self._weights = self._ranks.mean_weights(lane.objective.weights(batch))
        return self._add(lane, batch, step, lane.call, self._observers)

    def repeat(self, lane: Lane, batch: Batch, step: int) -> None:
        """Repeat this rank's passes of `run` without other ranks, observers or log lines."""
        self._add(lane, batch, step, lane.objective, None)

    def _add(
        self,
        lane: Lane,
        batch: Batch,
        step: int,
        call: nn.Module,
        observers: Observers | None,
    ) -> torch.Tensor:
        """Run the passes of all parts; without observers nothing is logged."""
        seed = step_seed(self._plan.seed, step)
        torch.manual_seed((seed + self._ranks.rank) & SEED_MASK)
        samples = batch_length(batch)
        parts = self._parts(batch)
        bad: torch.Tensor | None = None
        for part in parts:
            set_random_position(lane.objective, seed, part.first_row)
            with self._ranks.accumulating(call, last=part is parts[-1]):
                terms = self._pass(lane, part, samples, call, observers or Observers())
            if observers is not None:
                lane.add_terms(terms)
            part_is_bad = (~torch.isfinite(terms["loss"])).float()
            bad = part_is_bad if bad is None else torch.maximum(bad, part_is_bad)
        assert bad is not None, "a batch has at least one part"
        return bad

    def _parts(self, batch: Batch) -> list[Part]:
        plan = self._plan
        first_row = self._ranks.rank * plan.batch_size
        return split_batch(batch, plan.training.micro_batch_size, first_row)

    def _pass(
        self, lane: Lane, part: Part, samples: int, call: nn.Module, observers: Observers
    ) -> dict[str, torch.Tensor]:
        """Forward and backward of a part.

        Args:
            lane: The objective to train.
            part: A part of this rank's batch.
            samples: Divisor of sums that have no weight.
            call: The objective, with or without exchanging gradients.
            observers: Observers of the passes.

        Returns:
            The part's contributions to the terms and to the minimised `loss`.
        """
        policy = self._state.policy
        with observers.phase(FORWARD), policy.forward():
            sums: Mapping[str, torch.Tensor] = call(part.batch)
        terms = {name: value / self._weights.get(name, samples) for name, value in sums.items()}
        first, *other_terms = (terms[name] for name in lane.objective.minimized)
        loss = sum(other_terms, first)
        with observers.phase(BACKWARD):
            policy.scale(loss).backward()
        return {name: value.detach() for name, value in {**terms, "loss": loss}.items()}
