"""Passes whose sums are bit-identical for any number of ranks: `training.sums=exact`."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from jumar.data.samples import Batch
from jumar.ground.errors import UserError
from jumar.models.keyed_random import set_random_position
from jumar.observer import COMMUNICATION, Observers
from jumar.precision.recording.restoring import copy_into
from jumar.training.lanes import Lane
from jumar.training.parallel.gradient_sums import GradientSums
from jumar.training.parallel.ranks import Ranks
from jumar.training.parallel.tree_sum import Span, TreeSum
from jumar.training.passes import SEED_MASK, Part, Passes, batch_length, step_seed
from jumar.training.settings import Plan
from jumar.training.state import TrainState


class ExactPasses(Passes):
    """Runs the passes of a step's parts one by one, and adds their results in one tree.

    Every part has `training.micro_batch_size` samples and starts with the same buffers and a
    different seed, so that nothing depends on its rank. Gradients, loss terms, weights (numbers of
    masked tokens) and flags of non-finite losses are added up. Changes to floating-point buffers,
    such as the averages of batch norms, are averaged over the parts; other buffers are those of one
    part.

    Raises:
        UserError: The size of the parts is not set, or does not divide a rank's batch.
    """

    def __init__(self, state: TrainState, plan: Plan, ranks: Ranks, observers: Observers) -> None:
        super().__init__(state, plan, ranks, observers)
        size = plan.training.micro_batch_size
        if size == 0 or plan.batch_size % size:
            problem = "is not set" if size == 0 else f"{size} does not divide the batch of a rank"
            raise UserError(
                f"training.sums=exact adds parts of equal size: micro_batch_size {problem}",
                where="training.micro_batch_size",
                todo=f"Choose a divisor of {plan.batch_size}, the batch of a rank. The weights are "
                "then the same for all numbers of ranks whose batches it divides.",
            )
        modules = [state.task.model, *(lane.objective for lane in state.lanes)]
        buffers = {id(buffer): buffer for module in modules for buffer in module.buffers()}
        self._averaged = [value for value in buffers.values() if value.is_floating_point()]
        not_averaged = [value for value in buffers.values() if not value.is_floating_point()]
        self._buffers = [*self._averaged, *not_averaged]
        self._gradients: dict[str, GradientSums] = {}

    def run(self, lane: Lane, batch: Batch, step: int) -> Tensor:
        """See `Passes.run`."""
        parts = self._parts(batch)
        first, total = self._ranks.rank * len(parts), self._ranks.world * len(parts)
        self._weights = self._total_weights(lane, parts, first, total)
        gradients = self._gradient_sums(lane, first, total)
        before = [buffer.clone() for buffer in self._buffers]
        other_sums, names = TreeSum(total), list[str]()
        with gradients.collecting():
            for number, part in enumerate(parts, start=first):
                if number > first:
                    copy_into(self._buffers, before)
                with gradients.part(number):
                    terms = self._part(lane, part, number, step, lane.call, self._observers)
                names = list(terms)
                bad = (~torch.isfinite(terms["loss"])).float()
                scalars = torch.stack([*(value.float() for value in terms.values()), bad])
                other_sums.add(Span(number, 1), torch.cat([scalars, *self._changes(before)]))
        with self._observers.phase(COMMUNICATION):
            values = self._ranks.tree_exchange().whole(other_sums)
            gradients.finish()
        scalars, changes = values.tensor_split([len(names) + 1])
        *all_terms, num_bad = scalars.unbind()
        lane.add_terms(dict(zip(names, all_terms, strict=True)))
        self._average_buffers(before, changes, total)
        return (num_bad > 0).float()

    def repeat(self, lane: Lane, batch: Batch, step: int) -> None:
        """See `Passes.repeat`."""
        parts = self._parts(batch)
        before = [buffer.clone() for buffer in self._buffers]
        first = self._ranks.rank * len(parts)
        for number, part in enumerate(parts, start=first):
            if number > first:
                copy_into(self._buffers, before)
            self._part(lane, part, number, step, lane.objective, Observers())

    def _parts(self, batch: Batch) -> list[Part]:
        if batch_length(batch) != self._plan.batch_size:
            raise UserError(
                "a batch lacks samples that could not be read; with training.sums=exact its parts "
                "would then depend on the number of ranks",
                where="data.skip_corrupt",
                todo="Remove unreadable samples, or train with training.sums=fast.",
            )
        return super()._parts(batch)

    def _part(
        self, lane: Lane, part: Part, number: int, step: int, call: nn.Module, observers: Observers
    ) -> dict[str, Tensor]:
        seed = step_seed(self._plan.seed, step)
        torch.manual_seed((seed + number) & SEED_MASK)
        set_random_position(lane.objective, seed, part.first_row)
        samples = self._plan.batch_size * self._ranks.world
        return self._pass(lane, part, samples, call, observers)

    def _total_weights(
        self, lane: Lane, parts: Sequence[Part], first: int, total: int
    ) -> dict[str, Tensor]:
        """The divisors of sums: the total weights of all parts, where a total of 0 counts as 1."""
        sums, names = TreeSum(total), list[str]()
        for number, part in enumerate(parts, start=first):
            weights = lane.objective.weights(part.batch)
            if not weights:
                return {}
            names = list(weights)
            stacked = torch.stack([value.detach().float() for value in weights.values()])
            sums.add(Span(number, 1), stacked)
        totals = self._ranks.tree_exchange().whole(sums)
        return dict(zip(names, torch.where(totals > 0, totals, 1.0).unbind(), strict=True))

    @torch.no_grad()
    def _changes(self, before: Sequence[Tensor]) -> list[Tensor]:
        """A part's change to each averaged buffer, as vectors."""
        pairs = zip(self._averaged, before, strict=False)
        return [(buffer - value).float().reshape(-1) for buffer, value in pairs]

    @torch.no_grad()
    def _average_buffers(self, before: Sequence[Tensor], changes: Tensor, total: int) -> None:
        if total > 1:
            by_buffer = changes.split([buffer.numel() for buffer in self._averaged])
            for buffer, value, change in zip(self._averaged, before, by_buffer, strict=False):
                buffer.copy_(value + change.view_as(value) / total)

    def _gradient_sums(self, lane: Lane, first: int, total: int) -> GradientSums:
        name = lane.objective.name
        sums = self._gradients.get(name)
        if sums is None or len(sums.parameters) != len(lane.parameters):
            sums = GradientSums(lane.parameters, self._ranks, first=first, total=total)
            self._gradients[name] = sums
        return sums
