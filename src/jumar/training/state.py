"""Everything that changes during training, which a checkpoint stores and a resumed run restores."""

import contextlib
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from jumar.data.loading.sampler import steps_per_epoch as count_steps_per_epoch
from jumar.devices.contract import Device
from jumar.ground.errors import UserError
from jumar.precision.policy import PrecisionPolicy
from jumar.tasks.task import Task
from jumar.training.checkpoint import Checkpoint, load_state, load_weights
from jumar.training.checkpoint_state import SavedState
from jumar.training.early_stopping import EarlyStopping
from jumar.training.ema import Ema
from jumar.training.freezing import Frozen, find_frozen
from jumar.training.lanes import LaneMaker
from jumar.training.memory import keep_freed_memory
from jumar.training.optimizers.slots import (
    load_slots,
    named_state,
    names_by_group,
    restore_optimizer,
    stored_powers,
    stored_slots,
)
from jumar.training.optimizers.updating import regularization
from jumar.training.parallel.ranks import Ranks
from jumar.training.settings import Plan


@dataclass(frozen=True, kw_only=True)
class Window:
    """Means per step since the last log line, by the name of the objective.

    Attributes:
        losses: Its loss.
        total_losses: The loss plus the regularisation of the current weights.
        terms: Further terms, by `objective/term` if there are several objectives.
        learning_rates: Its learning rate at the last step.
        gradient_norms: Norm of its gradients, before clipping and without the loss scale; empty
            where it was not computed.
    """

    losses: Mapping[str, float]
    total_losses: Mapping[str, float]
    terms: Mapping[str, float]
    learning_rates: Mapping[str, float]
    gradient_norms: Mapping[str, float]


class TrainState:
    """Model, optimizers, averages, loss scale and the number of finished steps."""

    def __init__(
        self, task: Task, plan: Plan, device: Device, ranks: Ranks, policy: PrecisionPolicy
    ) -> None:
        self.task = task
        self.policy = policy
        self._ranks = ranks
        self.step = 0
        self.elapsed_s = 0.0
        self.before_change: Callable[[], object] = lambda: None
        """Called before weights, averages or the optimizer's state change, to wait until they are
        copied for a checkpoint."""
        if device.on_host:
            keep_freed_memory()
        task.model.to(device.torch)
        if plan.training.channels_last:
            task.model.to(memory_format=torch.channels_last)  # pyright: ignore[reportCallIssue]
        self._named = {parameter: name for name, parameter in task.model.named_parameters()}
        steps_per_epoch = count_steps_per_epoch(len(task.train_data), plan.batch_size * ranks.world)
        self.frozen = find_frozen(task.model, plan.transfer, steps_per_epoch=steps_per_epoch)
        if self.frozen is not None:
            self.frozen.begin(task.model)
        names = [objective.name for objective in task.objectives]
        if len(set(names)) != len(names):
            raise UserError(f"two objectives of the task have the same name: {', '.join(names)}")
        self._lane_maker = LaneMaker(task.model, plan, device, ranks)
        self.lanes = [self._lane_maker.create(objective) for objective in task.objectives]
        self.early: EarlyStopping | None = None
        if plan.early_stopping.patience:
            self.early = EarlyStopping(plan.early_stopping, task.headline)
        decay = plan.training.ema_decay
        self.ema: Ema | None = None
        if decay > 0:
            warm_up = plan.training.ema_warm_up
            self.ema = Ema(task.model, averaged=task.averaged, decay=decay, warm_up=warm_up)
            averaged_ids = {
                id(parameter) for parameter in (task.averaged or task.model).parameters()
            }
            for lane in self.lanes:
                parameters = lane.objective.trained.parameters()
                lane.averaged = any(id(parameter) in averaged_ids for parameter in parameters)

    def unfreeze_if_due(self) -> None:
        """Unfreeze parameters from the configured step on.

        A checkpoint of that step still has the state before unfreezing.
        """
        frozen = self.frozen
        if frozen is not None and frozen.until is not None and self.step >= frozen.until:
            self._unfreeze(frozen)

    def _unfreeze(self, frozen: Frozen) -> None:
        self.before_change()
        self.frozen = None
        frozen.end(self.task.model)
        for lane in self.lanes:
            self._lane_maker.extend(lane)

    def read_window(self, *, close: bool = True) -> Window | None:
        """The means since the last log line, averaged over the ranks; waits for the device.

        Args:
            close: Whether to begin the next window; otherwise the steps count for that one too.

        Returns:
            The means; None if no objective has been trained since then.
        """
        losses: dict[str, float] = {}
        totals: dict[str, float] = {}
        terms: dict[str, float] = {}
        rates: dict[str, float] = {}
        norms: dict[str, float] = {}
        for lane in self.lanes:
            if lane.steps == 0:
                continue
            name = lane.objective.name
            norm = lane.gradient_norm()
            if norm is not None:
                norms[name] = norm
            extra = regularization(lane.optimizer.param_groups)
            means = {key: value / lane.steps for key, value in lane.term_sums(self._ranks).items()}
            losses[name] = means.pop("loss").item()
            totals[name] = losses[name] + extra.item()
            rates[name] = lane.last_rate
            prefix = f"{name}/" if len(self.lanes) > 1 else ""
            terms.update({f"{prefix}{key}": value.item() for key, value in means.items()})
            if close:
                lane.close_window()
        if not losses:
            return None
        return Window(
            losses=losses,
            total_losses=totals,
            terms=terms,
            learning_rates=rates,
            gradient_norms=norms,
        )

    def drop_gradients(self) -> None:
        """Drop all gradients, including those that one objective left on another's parameters.

        `Module.zero_grad` iterates over the modules, which takes a millisecond at every step.
        """
        for parameter in self._named:
            parameter.grad = None

    def without_update(self) -> list[str]:
        """The objectives whose updates have all been skipped; waits for the device."""
        if self.policy.loss_scale is None:
            return []
        return [
            lane.objective.name
            for lane in self.lanes
            if not lane.updates.item() and any(map(lane.objective.is_due, range(self.step)))
        ]

    @property
    def skipped_steps(self) -> int:
        """Number of updates skipped because of an overflow; waits for the device."""
        scale = self.policy.loss_scale
        return 0 if scale is None else int(scale.skipped.item())

    @contextlib.contextmanager
    def scored_weights(self) -> Generator[str]:
        """Context in which the model has the weights to score; yields `ema` or `model`."""
        if self.ema is None:
            yield "model"
            return
        self.before_change()
        with self.ema.swapped():
            yield "ema"

    def capture(self) -> SavedState:
        """The state that a checkpoint stores besides the weights; waits for the device.

        All ranks call this together.
        """
        scale = self.policy.loss_scale
        slots: dict[str, torch.Tensor] = {}
        objectives: dict[str, Any] = {}
        for lane in self.lanes:
            name = lane.objective.name
            tensors, groups = named_state(
                lane.optimizer.state_dict(), names_by_group(lane.optimizer, self._named), name
            )
            slots |= tensors
            objectives[name] = {
                "updates": int(lane.updates.item()),
                "window": {
                    "sums": lane.saved_sums(self._ranks),
                    "steps": lane.steps,
                },
                "groups": groups,
            }
        values = {
            "step": self.step,
            "elapsed_s": self.elapsed_s,
            "loss_scale": None
            if scale is None
            else {key: value.item() for key, value in scale.state_dict().items()},
            "objectives": objectives,
        }
        if self.early is not None:
            values["early_stopping"] = self.early.state_dict()
        return SavedState(values=values, slots=slots)

    def restore(self, checkpoint: Checkpoint) -> None:
        """Restore a checkpoint, bit for bit.

        Raises:
            UserError: The checkpoint belongs to another model or recipe, or is damaged.
        """
        self.before_change()
        frozen = self.frozen
        if frozen is not None and frozen.until is not None and checkpoint.step > frozen.until:
            self._unfreeze(frozen)
        path = str(checkpoint.path)
        names = {
            lane.objective.name: names_by_group(lane.optimizer, self._named) for lane in self.lanes
        }
        state = load_state(checkpoint, names)
        values = state.values
        if "step" not in values:
            raise UserError(
                "contains imported weights but no optimizer state, so it cannot be resumed",
                where=path,
                todo="Start a new run from it: jumar train RECIPE --set transfer.start_from=DIR",
            )
        self.restore_weights(checkpoint)
        try:
            if "objectives" in values:
                self._resume(state)
            else:
                self._resume_imported(state)
            self.step = int(values["step"])
        except (KeyError, ValueError, TypeError) as error:
            raise UserError(f"does not fit this recipe: {error}", where=path) from None

    def _resume(self, state: SavedState) -> None:
        slots = state.by_owner()
        for lane in self.lanes:
            name = lane.objective.name
            objective_state = state.values["objectives"][name]
            restore_optimizer(lane.optimizer, self._named, name, slots, objective_state["groups"])
            window, device = objective_state["window"], lane.parameters[0].device
            lane.sums = {
                key: torch.tensor(value, dtype=torch.float32, device=device)
                for key, value in window["sums"].items()
            }
            lane.steps = int(window["steps"])
            lane.updates.fill_(int(objective_state["updates"]))
        scale, saved_scale = self.policy.loss_scale, state.values["loss_scale"]
        if scale is not None and saved_scale is not None:
            scale.load_state_dict({key: torch.tensor(value) for key, value in saved_scale.items()})
        self.elapsed_s = float(state.values["elapsed_s"])
        if self.early is not None and "early_stopping" in state.values:
            self.early.load_state_dict(state.values["early_stopping"])

    def _resume_imported(self, state: SavedState) -> None:
        """Load only the optimizers' state from an imported checkpoint."""
        slots, powers = stored_slots(state), stored_powers(state)
        for lane in self.lanes:
            load_slots(lane.optimizer, self._named, slots, powers, int(state.values["step"]))

    def restore_weights(self, checkpoint: Checkpoint) -> None:
        """Load the weights and their averages from a checkpoint, to be scored.

        Raises:
            UserError: The checkpoint belongs to another model, or is damaged.
        """
        path = str(checkpoint.path)
        load_exactly(self.task.model, load_weights(checkpoint.model_file(ema=False)), path)
        if self.ema is not None:
            if not checkpoint.has_ema:
                raise UserError(
                    "contains no averaged weights, but training.ema_decay requires them",
                    where=path,
                )
            self.ema.load_state_dict(load_weights(checkpoint.model_file(ema=True)))


def load_exactly(
    model: nn.Module,
    tensors: Mapping[str, torch.Tensor],
    where: str,
    *,
    todo: str = "To start from other weights use --set transfer.start_from=...",
) -> None:
    """Load weights of exactly the same model; `transfer.py` loads other weights.

    Args:
        model: The network.
        tensors: The weights.
        where: The file with the weights, for the error message.
        todo: The advice in the error message.

    Raises:
        UserError: The weights belong to another model.
    """
    weights = model.state_dict()
    mismatched = sorted(set(weights) ^ set(tensors))
    mismatched += [
        name for name in weights if name in tensors and weights[name].shape != tensors[name].shape
    ]
    if mismatched:
        raise UserError(
            f"belongs to another model: it differs in '{mismatched[0]}'"
            + (" and others" if len(mismatched) > 1 else ""),
            where=where,
            todo=todo,
        )
    for name, tensor in tensors.items():
        weights[name].copy_(tensor)
