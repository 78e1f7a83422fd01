"""Sensitivity of a step to rounding errors of each op: `jumar precision noise`."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from jumar.ground.errors import UserError
from jumar.precision.modes import find_mode
from jumar.precision.sensitivity.measuring import NoiseSettings, Sensitivity, sensitivity
from jumar.precision.settings import PrecisionSettings
from jumar.runs.context import RunContext, open_context
from jumar.runs.observed_steps import (
    ChosenStart,
    SourceRequest,
    check_step,
    find_source,
    observing_trainer,
    starting_task,
)
from jumar.training.parallel.announced import announced_ranks
from jumar.training.profiling.ranges import named_layers
from jumar.training.progress import Console

FULL = "must_keep_origin_dtype"


@dataclass(frozen=True, kw_only=True)
class NoiseRequest(SourceRequest):
    """The options of `jumar precision noise`.

    Attributes:
        step: The step, counted from 0; None for the first after the newest checkpoint.
        dtype: The dtype whose rounding the noise imitates; empty for the precision mode's dtype.
        settings: Other settings of the noise.
    """

    step: int | None = None
    dtype: str = ""
    settings: NoiseSettings


@dataclass(frozen=True, kw_only=True)
class NoiseReport:
    """The measured sensitivity of a step.

    Attributes:
        step: The step, counted from 0.
        result: Its sensitivity.
    """

    step: int
    result: Sensitivity


def measure_noise(request: NoiseRequest, say: Callable[[str], None]) -> NoiseReport:
    """Repeat a step with noise in one op after another, without changing the run.

    The step is computed in float32 in every mode, since noise cannot be distinguished from
    rounding errors of the same size.

    Args:
        request: The step and the noise.
        say: Prints a line.

    Raises:
        UserError: There is no such recipe, run or step, or a setting is not allowed.
    """
    ranks = announced_ranks()
    if ranks.world > 1:
        raise UserError("noise is measured in one process", todo="Start it without torchrun.")
    source = find_source(request, ranks, until=request.step, as_trained=True)
    low = find_mode(source.recipe.precision.mode).low
    dtype = request.dtype or (str(low).removeprefix("torch.") if low else "bfloat16")
    settings = replace(request.settings, dtype=dtype)
    settings.check()
    chosen = replace(source, recipe=replace(source.recipe, precision=PrecisionSettings(mode=FULL)))
    with open_context(lambda _: chosen, device=request.device, writes=False) as context:
        return _measured(request, settings, context, say)


def _measured(
    request: NoiseRequest,
    settings: NoiseSettings,
    context: RunContext[ChosenStart],
    say: Callable[[str], None],
) -> NoiseReport:
    chosen = context.chosen
    step = chosen.first if request.step is None else request.step
    plan = replace(chosen.plan, training=replace(chosen.plan.training, compile=False))
    task = starting_task(context, chosen.checkpoint)
    trainer = observing_trainer(context, task, plan, [], Console(silent=True))
    check_step(trainer, step, "--step")
    if step > chosen.first:
        say(f"training from step {chosen.first} to step {step}")
    with trainer.at_step(step, chosen.checkpoint) as (stepper, batch):
        result = sensitivity(
            lambda: stepper.passes(batch),
            modules={"": task.model, **named_layers(task.model, task.objectives)},
            settings=settings,
            buffers=stepper.buffers,
            say=say,
        )
    return NoiseReport(step=step, result=result)
