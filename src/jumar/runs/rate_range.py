"""The learning rate range test: training steps at rising rates until the loss diverges.

Proposed by L. N. Smith, https://arxiv.org/abs/1506.01186.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from jumar.ground.errors import UserError, unknown_name
from jumar.ground.text import counted
from jumar.recipes.registry import create_recipe, import_modules
from jumar.runs.context import ChosenRun, RunContext, open_context
from jumar.runs.observed_steps import NOWHERE, starting_task
from jumar.training.parallel.announced import announced_ranks
from jumar.training.progress import Console
from jumar.training.schedules import Run, ScheduleSettings
from jumar.training.settings import EarlyStoppingSettings, Optimization, Plan
from jumar.training.step_loop import StepLoop

SMOOTHING = 0.9
"""Decay of the smoothed loss, with bias correction as in Adam."""
DIVERGENCE_RATIO = 4.0
"""A smoothed loss of this multiple of its lowest value ends the ramp."""
PROPOSAL_DIVISOR = 10.0
"""The proposal is the rate with the lowest smoothed loss divided by this."""
MIN_STEPS = 20


@dataclass(frozen=True, kw_only=True)
class RateRequest:
    """The options of `jumar tune rate`.

    Attributes:
        objective: The objective whose rate rises; empty for a recipe with only one.
        low: The rate of the first step.
        high: The rate of the last step.
        steps: Length of the ramp.
    """

    recipe: str
    objective: str = ""
    low: float = 1e-6
    high: float = 10.0
    steps: int = 100
    assignments: Sequence[str] = ()
    imports: Sequence[str] = ()
    device: str = "auto"

    def check(self) -> None:
        """Check the ramp.

        Raises:
            UserError: It does not rise, or is too short.
        """
        if not 0 < self.low < self.high:
            raise UserError(
                f"rates from {self.low:g} to {self.high:g} do not rise",
                where="--low, --high",
                todo="Both must be above 0, and --high above --low.",
            )
        if self.steps < MIN_STEPS:
            raise UserError(
                f"{counted(self.steps, 'step')} are too few to smooth the loss",
                where="--steps",
                todo=f"At least {MIN_STEPS}; 100 is usual.",
            )


@dataclass(frozen=True, kw_only=True)
class RampStep:
    """A step of the ramp, with the losses before its update."""

    step: int
    rate: float
    loss: float
    smoothed: float


@dataclass(frozen=True, kw_only=True)
class RateRange:
    """The result of the ramp.

    Attributes:
        objective: The objective whose rate rose.
        own_rate: The recipe's learning rate.
        steps: The steps until the end or the divergence.
        end: The reason why the ramp ended.
        proposal: The proposed rate; None if the ramp shows none.
        reason: The reason for the proposal, or why there is none.
    """

    objective: str
    own_rate: float
    steps: Sequence[RampStep]
    end: str
    proposal: float | None
    reason: str


@dataclass(frozen=True, kw_only=True)
class Ramp(ScheduleSettings):
    """Rates that rise by the same factor at each step; not registered for recipes to choose."""

    ratio: float = 1.0
    steps: int = 2

    def decay(self, step: int, run: Run) -> float:
        """See `ScheduleSettings.decay`."""
        del run
        return self.ratio ** (step / (self.steps - 1))


def find_rate(request: RateRequest, say: Callable[[str], None]) -> RateRange:
    """Train along the ramp from the recipe's initial weights, discarding the result.

    Args:
        request: The recipe and the ramp.
        say: Prints a line.

    Raises:
        UserError: There is no such recipe or objective, or the ramp is not valid.
    """
    request.check()
    if announced_ranks().world > 1:
        raise UserError("the ramp is trained in one process", todo="Start it without torchrun.")
    import_modules(request.imports)
    recipe = create_recipe(request.recipe, request.assignments)
    chosen = ChosenRun(
        run=NOWHERE,
        recipe=recipe,
        name=request.recipe,
        imports=request.imports,
    )
    with open_context(lambda _: chosen, device=request.device, writes=False) as context:
        return _along_ramp(request, context, say)


def proposed(steps: Sequence[RampStep], *, diverged: bool) -> tuple[float | None, str]:
    """Return the proposed rate and the reason for it, or None and why there is none.

    Args:
        steps: The steps of the ramp, at least one.
        diverged: Whether the ramp ended because the loss diverged.
    """
    # The first smoothed values are averages of few losses.
    settled_steps = steps[MIN_STEPS // 4 :]
    if not settled_steps:
        return None, "the loss diverged within the first steps: lower --low"
    lowest = min(settled_steps, key=lambda step: step.smoothed)
    if lowest is settled_steps[0]:
        return None, "the loss never fell: lower --low or raise --steps"
    if lowest is settled_steps[-1] and not diverged:
        return None, f"the loss was still falling at {lowest.rate:.3g}: raise --high"
    return lowest.rate / PROPOSAL_DIVISOR, (
        f"a tenth of {lowest.rate:.3g}, the rate with the lowest smoothed loss "
        f"({lowest.smoothed:.4g})"
    )


def _along_ramp(
    request: RateRequest, context: RunContext[ChosenRun], say: Callable[[str], None]
) -> RateRange:
    plan = context.chosen.plan
    objective = _objective(request, plan)
    optimizer = plan.optimization[objective].optimizer
    task = starting_task(context, None)
    say(
        f"device: {context.device.kind} ({context.device.name}) · "
        f"{counted(request.steps, 'step')} of {plan.batch_size} samples, rates of '{objective}' "
        f"from {request.low:g} to {request.high:g}"
    )
    loop = StepLoop(
        task,
        _with_ramp(plan, objective, request),
        device=context.device,
        ranks=context.ranks,
        console=Console(silent=True),
        policy=context.policy,
    )
    steps, end, diverged = _trained(loop, objective, request.steps)
    if not steps:
        raise UserError(
            "the loss of the first step is not a number",
            where="--low",
            todo="Lower it, or check the data: jumar train ... --dry-run",
        )
    proposal, reason = proposed(steps, diverged=diverged)
    return RateRange(
        objective=objective,
        own_rate=optimizer.learning_rate,
        steps=steps,
        end=end,
        proposal=proposal,
        reason=reason,
    )


def _trained(loop: StepLoop, objective: str, count: int) -> tuple[list[RampStep], str, bool]:
    """Train the ramp and return its steps, why they ended, and whether the loss diverged."""
    steps: list[RampStep] = []
    average, lowest = 0.0, math.inf
    for _ in loop.each_step(count):
        window = loop.state.read_window()
        if window is None or objective not in window.losses:
            continue  # an objective that is not due at every step
        loss, rate = window.losses[objective], window.learning_rates[objective]
        if not math.isfinite(loss) or loop.is_blocked:
            return steps, f"the loss was no longer a number at {rate:.3g}", True
        average = SMOOTHING * average + (1 - SMOOTHING) * loss
        smoothed = average / (1 - SMOOTHING ** (len(steps) + 1))
        steps.append(RampStep(step=loop.state.step, rate=rate, loss=loss, smoothed=smoothed))
        lowest = min(lowest, smoothed)
        if smoothed > DIVERGENCE_RATIO * lowest > 0:
            return (
                steps,
                f"at a learning rate of {rate:.3g}, the smoothed loss was "
                f"{DIVERGENCE_RATIO:g} times its lowest value",
                True,
            )
    return steps, f"all {counted(count, 'step')} were trained", False


def _objective(request: RateRequest, plan: Plan) -> str:
    names = list(plan.optimization)
    if request.objective:
        if request.objective not in names:
            raise unknown_name("objective", request.objective, names, where="--objective")
        return request.objective
    if len(names) > 1:
        raise UserError(
            f"'{plan.recipe}' trains {counted(len(names), 'objective')}",
            where="--objective",
            todo=f"Choose the one whose rate rises: {', '.join(names)}.",
        )
    return names[0]


def _with_ramp(plan: Plan, objective: str, request: RateRequest) -> Plan:
    """Return the plan with rising rates, without early stopping and overflow explanations."""
    original = plan.optimization[objective]
    ramp = Optimization(
        optimizer=replace(original.optimizer, learning_rate=request.low),
        schedule=Ramp(ratio=request.high / request.low, steps=request.steps),
    )
    return replace(
        plan,
        training=replace(
            plan.training, duration=f"{request.steps}it", explain_overflow=False, compile=False
        ),
        early_stopping=EarlyStoppingSettings(),
        optimization={**plan.optimization, objective: ramp},
    )
