"""Lanes: objectives in training, each with its optimizer and its sums since the last log line."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import cast

import torch
from torch import nn

from jumar.devices.contract import Device
from jumar.ground.errors import UserError
from jumar.tasks.task import Objective
from jumar.training.optimizers import create_optimizer
from jumar.training.optimizers.layer_rates import rate_factors
from jumar.training.optimizers.optimizer import ParameterGroup
from jumar.training.parallel.ranks import Ranks
from jumar.training.schedules import ScheduleSettings
from jumar.training.settings import Plan

_NORM, _NORMS = "gradient_norm", "gradient_norms"
"""Keys of a lane's sums: the sum of the gradient norms, and the number of steps with a norm."""


@dataclass(kw_only=True)
class Lane:
    """One objective in training: its optimizer, its sums since the last log line, and its callable.

    The callable returns the objective's sums and averages gradients over ranks.
    """

    objective: Objective
    call: nn.Module
    optimizer: torch.optim.Optimizer
    schedule: ScheduleSettings
    learning_rate: float
    parameters: list[nn.Parameter]
    factors: dict[str, float]
    """Factors on the learning rate, by the names of all parameters, including frozen ones."""
    averaged: bool = False
    """Whether the moving average covers any of the parameters."""
    sums: dict[str, torch.Tensor] = field(
        default_factory=lambda: cast("dict[str, torch.Tensor]", {})
    )
    steps: int = 0
    last_rate: float = 0.0
    updates: torch.Tensor
    """Number of updates in this run, on the device; counted if a loss scale can skip updates."""
    attempts: int = 0
    """Number of steps of this process at which the objective was due."""

    def add_terms(self, terms: Mapping[str, torch.Tensor]) -> None:
        """Add a part's contribution to each term's sum since the last log line, on the device."""
        for name, value in terms.items():
            addend = value.detach().float()
            self.sums[name] = self.sums[name] + addend if name in self.sums else addend

    def add_gradient_norm(self, norm: torch.Tensor) -> None:
        """Add the norm of a step's gradients to the window, unless it is not finite."""
        is_finite = torch.isfinite(norm)
        terms = {_NORM: torch.where(is_finite, norm, 0.0), _NORMS: is_finite}
        self.add_terms({name: value.float() for name, value in terms.items()})

    def gradient_norm(self) -> float | None:
        """The mean norm of the gradients since the last log line; waits for the device.

        It is the same on every rank, because the gradients are. Updates that the loss scale skipped
        do not count. None if no norm was computed.
        """
        total, count = self.sums.get(_NORM), self.sums.get(_NORMS)
        if total is None or count is None or not count.item():
            return None
        return (total / count).item()

    def term_sums(self, ranks: Ranks) -> dict[str, torch.Tensor]:
        """The sums of the terms since the last log line, averaged over the ranks."""
        return {
            name: ranks.mean(value.clone())
            for name, value in self.sums.items()
            if name not in (_NORM, _NORMS)
        }

    def saved_sums(self, ranks: Ranks) -> dict[str, float]:
        """The sums to store in a checkpoint, independent of the number of ranks."""
        sums = self.sums | self.term_sums(ranks)
        return {name: value.item() for name, value in sums.items()}

    def close_window(self) -> None:
        """Start the sums of the next log line."""
        self.sums, self.steps = {}, 0


class LaneMaker:
    """Creates the lanes of a network, and adds unfrozen parameters to them.

    Args:
        model: The network with all objectives' parameters.
        plan: Defines how objectives are minimised.
        device: The device to train on.
        ranks: The processes of the run.
    """

    def __init__(self, model: nn.Module, plan: Plan, device: Device, ranks: Ranks) -> None:
        self._model, self._plan, self._device, self._ranks = model, plan, device, ranks
        self._names = {parameter: name for name, parameter in model.named_parameters()}

    def create(self, objective: Objective) -> Lane:
        """Create the lane of an objective.

        Raises:
            UserError: All of its parameters are frozen, or the optimizer's settings are not valid
                for it.
        """
        objective.to(self._device.torch)
        optimization = self._plan.optimization_of(objective.name)
        parameters = [p for p in objective.trained.parameters() if p.requires_grad]
        if not parameters:
            frozen = self._plan.transfer.freeze
            raise UserError(
                f"the objective '{objective.name}' has no parameters to train",
                where="transfer.freeze" if frozen else "",
                todo=f"All of its parameters are frozen by {','.join(frozen)}." if frozen else "",
            )
        names = [self._name(objective, p) for p in objective.trained.parameters()]
        factors = rate_factors(self._model, names, optimization.optimizer)
        lane = Lane(
            objective=objective,
            call=objective,
            optimizer=self._optimizer(objective, [parameters], factors),
            schedule=optimization.schedule,
            learning_rate=optimization.optimizer.learning_rate,
            parameters=parameters,
            factors=factors,
            updates=torch.zeros((), dtype=torch.int64, device=parameters[0].device),
        )
        lane.call = self._wrapped(objective)
        return lane

    def extend(self, lane: Lane) -> None:
        """Add unfrozen parameters to a lane, in their own groups.

        The optimizer's state for the other parameters is kept; update counters and averages of the
        new groups start at zero.
        """
        trained = [p for p in lane.objective.trained.parameters() if p.requires_grad]
        present = {id(parameter) for parameter in lane.parameters}
        late = [parameter for parameter in trained if id(parameter) not in present]
        if not late:
            return
        before = lane.optimizer.state_dict()
        lane.optimizer = self._optimizer(lane.objective, [lane.parameters, late], lane.factors)
        after = lane.optimizer.state_dict()
        # State dicts number parameters in the order of their groups, so the earlier parameters have
        # the same numbers in both.
        groups = [*before["param_groups"], *after["param_groups"][len(before["param_groups"]) :]]
        state = {**after["state"], **before["state"]}
        lane.optimizer.load_state_dict({"state": state, "param_groups": groups})
        lane.parameters = [*lane.parameters, *late]
        lane.call = self._wrapped(lane.objective)

    def _wrapped(self, objective: Objective) -> nn.Module:
        call: nn.Module = objective
        if self._plan.training.compile:
            call = cast(nn.Module, torch.compile(objective))
        return self._ranks.wrap(call, objective, self._device)

    def _optimizer(
        self,
        objective: Objective,
        rounds: Sequence[Sequence[nn.Parameter]],
        factors: Mapping[str, float],
    ) -> torch.optim.Optimizer:
        """The optimizer for parameters that were added in several rounds."""
        first, *later_rounds = (
            self._groups(objective, parameters, factors) for parameters in rounds
        )
        base = {group.is_decayed: group.parameters for group in first if group.rate_factor == 1.0}
        return create_optimizer(
            self._plan.optimization_of(objective.name).optimizer,
            base.get(True, ()),
            base.get(False, ()),
            device_type=self._device.torch.type,
            order=[parameter for parameters in rounds for parameter in parameters],
            further=[
                *(group for group in first if group.rate_factor != 1.0),
                *(group for groups in later_rounds for group in groups),
            ],
        )

    def _groups(
        self,
        objective: Objective,
        parameters: Sequence[nn.Parameter],
        factors: Mapping[str, float],
    ) -> list[ParameterGroup]:
        """Parameters grouped by factor and decay, in the order in which they first occur."""
        names = {parameter: name for name, parameter in objective.trained.named_parameters()}
        groups: dict[tuple[float, bool], list[nn.Parameter]] = {}
        for parameter in parameters:
            factor = factors[self._name(objective, parameter)]
            is_decayed = objective.decays(names[parameter], parameter)
            groups.setdefault((factor, is_decayed), []).append(parameter)
        return [
            ParameterGroup(parameters=members, is_decayed=is_decayed, rate_factor=factor)
            for (factor, is_decayed), members in groups.items()
        ]

    def _name(self, objective: Objective, parameter: nn.Parameter) -> str:
        """A parameter's name in the network, or in the objective if only the objective has it."""
        if parameter in self._names:
            return self._names[parameter]
        return next(
            name
            for name, candidate in objective.trained.named_parameters()
            if candidate is parameter
        )
