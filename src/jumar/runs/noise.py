"""Sensitivity of a step to rounding errors of each op: `jumar precision noise`."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from jumar.ground.errors import UserError
from jumar.precision.modes import find_mode
from jumar.precision.sensitivity.measuring import NoiseSettings, Sensitivity, sensitivity
from jumar.precision.settings import PrecisionSettings
from jumar.runs.context import RunContext, open_context
from jumar.runs.observed_steps import (
    ChosenStart,
    check_step,
    find_source,
    observing_trainer,
    starting_task,
)
from jumar.training.parallel.announced import announced_ranks
from jumar.training.parallel.ranks import Ranks
from jumar.training.profiling.ranges import named_layers
from jumar.training.progress import Console

FULL = "must_keep_origin_dtype"


@dataclass(frozen=True, kw_only=True)
class NoiseRequest:
    """The options of `jumar precision noise`.

    Attributes:
        what: A recipe's name, or a run directory.
        step: The step, counted from 0; None for the first after the newest checkpoint.
        dtype: The dtype whose rounding the noise imitates; empty for the precision mode's dtype.
        settings: Other settings of the noise.
    """

    what: str
    step: int | None = None
    dtype: str = ""
    settings: NoiseSettings
    assignments: Sequence[str] = ()
    imports: Sequence[str] = ()
    device: str = "auto"


@dataclass(frozen=True, kw_only=True)
class NoiseReport:
    """The measured sensitivity of a step.

    Attributes:
        step: The step, counted from 0.
        result: Its sensitivity.
    """

    step: int
    result: Sensitivity


@dataclass(frozen=True, kw_only=True)
class _Chosen(ChosenStart):
    """The recipe in full precision, its start, and the settings of the noise."""

    settings: NoiseSettings


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
    if announced_ranks().world > 1:
        raise UserError("noise is measured in one process", todo="Start it without torchrun.")
    with open_context(
        lambda ranks: _chosen(request, ranks), device=request.device, writes=False
    ) as context:
        return _measured(request, context, say)


def _chosen(request: NoiseRequest, ranks: Ranks) -> _Chosen:
    source = find_source(
        request.what,
        request.assignments,
        request.imports,
        ranks,
        until=request.step,
        as_trained=True,
    )
    low = find_mode(source.recipe.precision.mode).low
    dtype = request.dtype or (str(low).removeprefix("torch.") if low else "bfloat16")
    settings = replace(request.settings, dtype=dtype)
    settings.check()
    return _Chosen(
        run=source.run,
        recipe=replace(source.recipe, precision=PrecisionSettings(mode=FULL)),
        is_stored=source.is_stored,
        name=source.name,
        imports=source.imports,
        checkpoint=source.checkpoint,
        global_batch=source.global_batch,
        sharing=source.sharing,
        settings=settings,
    )


def _measured(
    request: NoiseRequest, context: RunContext[_Chosen], say: Callable[[str], None]
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
            settings=chosen.settings,
            buffers=stepper.buffers,
            say=say,
        )
    return NoiseReport(step=step, result=result)
