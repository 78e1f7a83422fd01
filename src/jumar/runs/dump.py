"""Dump steps of a recipe or a run: `jumar precision dump RECIPE|RUN`."""

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from jumar.ground.errors import UserError
from jumar.precision.recording.dumping import Dumping
from jumar.precision.recording.observing import DumpObserver
from jumar.precision.recording.recorder import COMPILED, RecordSettings, StepRecorder
from jumar.precision.recording.scripts import run_script
from jumar.runs.context import RunContext, open_context
from jumar.runs.observed_steps import (
    ChosenStart,
    SourceRequest,
    check_step,
    find_source,
    observing_trainer,
    starting_task,
)
from jumar.tasks.task import Task
from jumar.training.parallel.announced import announced_ranks
from jumar.training.parallel.ranks import Ranks
from jumar.training.profiling.ranges import named_layers
from jumar.training.progress import Console
from jumar.training.run_directory import RunDirectory, next_run_path

_FOLDER = Path("dumps")


@dataclass(frozen=True, kw_only=True)
class DumpRequest(SourceRequest):
    """The options of `jumar precision dump`.

    Attributes:
        steps: The steps, counted from 0; none for the first trained step.
        to: Folder for the dumps; by default the next free `dumps/NAME-N`.
    """

    steps: Sequence[int] = ()
    settings: RecordSettings = field(default_factory=RecordSettings)
    to: Path | None = None


def dump_recipe(request: DumpRequest, then: Callable[[Path, Console], None] | None = None) -> int:
    """Train a recipe, or a run from the checkpoint before the first requested step, and dump steps.

    The run's files do not change.

    Args:
        request: The steps to dump.
        then: Called by the first rank with the folder after every rank has written its dumps.

    Returns:
        The exit code.

    Raises:
        UserError: There is no such recipe, run or step, or nothing can be written.
    """
    request.settings.check()
    with open_context(
        lambda ranks: chosen_run(request, ranks), device=request.device, writes=False
    ) as context:
        _record(request, context)
        if then is not None:
            context.ranks.wait()
            if context.ranks.is_first:
                then(context.run.path, context.console)
    return 0


def dump_script(
    script: Path,
    arguments: Sequence[str],
    *,
    steps: Sequence[int],
    settings: RecordSettings,
    to: Path | None,
) -> int:
    """Run a training script unchanged and dump steps of it.

    Args:
        script: The script.
        arguments: Its command line.
        steps: The steps, counted from 0; none for the first.
        settings: The tensors and statistics to record.
        to: Folder for the dumps; by default the next free `dumps/NAME-N`.

    Returns:
        The exit code.

    Raises:
        UserError: There is no such script, a step was not reached, or nothing can be written.
    """
    if to is None and announced_ranks().world > 1:
        raise UserError(
            "several ranks need a common folder", where="--to", todo="Name it: --to dumps/mine"
        )
    folder = to or next_run_path(_FOLDER, script.stem)
    return run_script(script, arguments, Dumping(folder, steps=steps or (0,), settings=settings))


def chosen_run(request: DumpRequest, ranks: Ranks) -> ChosenStart:
    """Return the recipe, a run's checkpoint to start from, and as `run` the folder for dumps."""
    source = find_source(
        request,
        ranks,
        until=min(request.steps) if request.steps else None,
        as_trained=True,
    )
    folder = request.to
    if folder is None:
        folder = next_run_path(_FOLDER, source.label) if ranks.is_first else Path()
    return replace(source, run=RunDirectory(folder))


def _record(request: DumpRequest, context: RunContext[ChosenStart]) -> None:
    chosen, plan = context.chosen, context.chosen.plan
    steps = request.steps or (chosen.first,)
    task = starting_task(context, chosen.checkpoint)
    recorder = step_recorder(request, context, task)
    context.print_first_line(plan.batch_size)
    if plan.training.compile:
        context.console.line(COMPILED)
        plan = replace(plan, training=replace(plan.training, compile=False))
    context.ranks.wait()
    observer = DumpObserver(recorder, steps=steps, first=chosen.first, say=context.console.line)
    trainer = observing_trainer(context, task, plan, [observer])
    if request.steps:
        check_step(trainer, max(steps), "--steps")
    if chosen.first < min(steps):
        context.console.line(f"training from step {chosen.first} to step {max(steps)}")
        sys.stdout.flush()
    trainer.observe(chosen.checkpoint)


def step_recorder(
    request: DumpRequest, context: RunContext[ChosenStart], task: Task
) -> StepRecorder:
    """Return the recorder for the steps of a task, with its layers' names."""
    recipe, precision = context.chosen.recipe, context.policy.description
    return StepRecorder(
        context.run.path,
        request.settings,
        rank=context.ranks.rank,
        modules={"": task.model, **named_layers(task.model, task.objectives)},
        facts={
            "recipe": context.chosen.name,
            "device": f"{context.device.kind} ({context.device.name})",
            "precision": f"{precision.mode} computed in {precision.computed}",
            "seed": str(recipe.seed),
            "ranks": str(context.ranks.world),
        },
    )
