"""One training step, determined by (state, batch, step number)."""

from collections.abc import Iterator

import torch

from jumar.data.samples import Batch
from jumar.observer import COMMUNICATION, OBJECTIVE, OPTIMIZER, Observers
from jumar.precision.recording.restoring import copy_into
from jumar.training.clipping import clip_gradients
from jumar.training.exact_passes import ExactPasses
from jumar.training.explaining import Explainer
from jumar.training.guard import Guard
from jumar.training.lanes import Lane
from jumar.training.optimizers.updating import set_learning_rate, step_unless
from jumar.training.parallel.ranks import Ranks
from jumar.training.passes import Passes
from jumar.training.schedules import learning_rate
from jumar.training.settings import Plan
from jumar.training.state import TrainState


class Stepper:
    """Runs steps with everything that does not change between them."""

    def __init__(
        self,
        state: TrainState,
        plan: Plan,
        ranks: Ranks,
        guard: Guard,
        *,
        steps_per_epoch: int,
        total_steps: int,
        observers: Observers,
        explainer: Explainer | None = None,
    ) -> None:
        self._phase = observers.phase
        self._explainer = explainer
        self._state = state
        self._plan = plan
        self._ranks = ranks
        self._guard = guard
        self._steps_per_epoch = steps_per_epoch
        self._total_steps = total_steps
        self._check_gradients = state.policy.can_overflow
        kind = ExactPasses if plan.training.sums == "exact" else Passes
        self._passes = kind(state, plan, ranks, observers)

    def step(self, batch: Batch) -> None:
        """Train all objectives that are due on the batch, and count the step."""
        state = self._state
        state.unfreeze_if_due()
        step = state.step
        changes_averaged = False
        for position, lane in self._due(step):
            changes_averaged |= lane.averaged
            with self._phase(OBJECTIVE, lane.objective.name):
                self._train(lane, batch, step, position)
        if state.ema is not None and changes_averaged:
            # Not at other steps: a generator that is due at every second step would count twice.
            state.ema.update(step)
        state.step = step + 1

    def _train(self, lane: Lane, batch: Batch, step: int, position: int) -> None:
        """Train one objective on the batch."""
        rate = learning_rate(
            lane.schedule,
            lane.learning_rate,
            step,
            steps_per_epoch=self._steps_per_epoch,
            total_steps=self._total_steps,
        )
        set_learning_rate(lane.optimizer, rate)
        lane.last_rate = rate
        explainer = self._explainer
        if explainer is not None:
            explainer.prepare(self.buffers)
        loss_is_bad = self._passes.run(lane, batch, step)
        with self._phase(OPTIMIZER):
            is_blocked = self._judge(lane, loss_is_bad, step + 1, position)
            self._state.before_change()
            step_unless(lane.optimizer, is_blocked)
            if self._state.policy.loss_scale is not None:
                lane.updates.add_(is_blocked == 0)
            self._state.drop_gradients()
        if explainer is not None:
            explainer.explain(lane, is_blocked, lambda: self._passes.repeat(lane, batch, step))
        lane.steps += 1
        lane.attempts += 1

    def rehearse(self, batch: Batch) -> tuple[torch.Tensor, list[torch.Tensor | None]]:
        """Run a forward and a backward pass as the next step would, without side effects.

        Returns:
            The same as `passes`.
        """
        buffers = self.buffers
        copies = [buffer.clone() for buffer in buffers]
        result = self.passes(batch)
        copy_into(buffers, copies)
        return result

    @property
    def buffers(self) -> list[torch.Tensor]:
        """The buffers of network and objectives, which a forward pass may change."""
        state = self._state
        modules = [state.task.model, *(lane.objective for lane in state.lanes)]
        return [buffer for module in modules for buffer in module.buffers()]

    def passes(self, batch: Batch) -> tuple[torch.Tensor, list[torch.Tensor | None]]:
        """Run the passes of the next step without side effects, except on `buffers`.

        Returns:
            The sum of the losses, and the gradients of the parameters of all objectives that are
            due, multiplied by the loss scale.
        """
        state = self._state
        losses: list[torch.Tensor] = []
        gradients: list[torch.Tensor | None] = []
        for _, lane in self._due(state.step):
            sums, lane.sums = lane.sums, {}
            self._passes.run(lane, batch, state.step)
            losses.append(lane.sums["loss"])
            gradients += [parameter.grad for parameter in lane.parameters]
            lane.sums = sums
            state.drop_gradients()
        return torch.stack(losses).sum(), gradients

    def _due(self, step: int) -> Iterator[tuple[int, Lane]]:
        return (
            (position, lane)
            for position, lane in enumerate(self._state.lanes)
            if lane.objective.is_due(step)
        )

    def _judge(
        self, lane: Lane, loss_is_bad: torch.Tensor, step: int, position: int
    ) -> torch.Tensor:
        """Decide on the device whether the update must be skipped, and clip the gradients."""
        training, scale = self._plan.training, self._state.policy.loss_scale
        if scale is not None:
            overflow = self._state.policy.unscale_and_check(lane.parameters)
            with self._phase(COMMUNICATION):
                overflow = self._ranks.maximum(torch.maximum(overflow, loss_is_bad))
            scale.update(overflow)
            is_stuck = self._guard.watch(scale.overflow_at_floor.float(), step, position)
            self._clip(lane, needs_norm=training.log_gradient_norm)
            return torch.maximum(overflow, is_stuck)
        is_judged = self._check_gradients or training.clip != "none"
        norm = self._clip(lane, needs_norm=is_judged or training.log_gradient_norm)
        if norm is not None and is_judged:
            loss_is_bad = torch.maximum(loss_is_bad, (~torch.isfinite(norm)).float())
        return self._guard.watch(loss_is_bad, step, position)

    def _clip(self, lane: Lane, *, needs_norm: bool) -> torch.Tensor | None:
        """Clip the gradients; returns their joint norm before clipping, if it was computed.

        Args:
            lane: The lane with the parameters.
            needs_norm: Whether to compute the norm even if clipping does not need it.
        """
        training = self._plan.training
        norm: torch.Tensor | None = None
        if needs_norm and training.clip in ("none", "value"):
            # Before clipping: clipping by value turns infinity into an ordinary number.
            gradients = [p.grad for p in lane.parameters if p.grad is not None]
            norm = torch.nn.utils.get_total_norm(gradients)
        clipping_norm = clip_gradients(lane.parameters, training.clip, training.clip_limit)
        norm = clipping_norm if norm is None else norm
        if norm is not None:
            lane.add_gradient_norm(norm)
        return norm
