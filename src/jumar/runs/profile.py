"""Profile a recipe or a run: `jumar profile`, and `jumar train --profile`."""

import shlex
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from jumar.environment import inspect_environment
from jumar.ground.errors import UserError
from jumar.recipes.resolved import keep_resolved
from jumar.runs.context import ChosenRun, RunContext, open_context
from jumar.runs.observed_steps import ChosenStart, SourceRequest, find_source, observing_trainer
from jumar.tasks.task import Task
from jumar.training.parallel.ranks import Ranks
from jumar.training.profiling.capture import (
    Capture,
    CapturePlan,
    CaptureSettings,
    Recorded,
    raw_folder,
)
from jumar.training.profiling.ranges import ModuleRanges, named_layers
from jumar.training.run_directory import RunDirectory, next_run_path, write_json


@dataclass(frozen=True, kw_only=True)
class ProfileRequest(SourceRequest):
    """The options of `jumar profile`.

    Attributes:
        run_dir: Folder for `profile/`; by default the run, or the next free `runs/RECIPE-N`.
    """

    capture: CaptureSettings = field(default_factory=CaptureSettings)
    run_dir: Path | None = None


def profile_recipe(request: ProfileRequest) -> int:
    """Profile some steps of a recipe or a run.

    A run continues from its newest checkpoint until the last recorded step; only its `profile/`
    changes.

    Returns:
        The exit code.

    Raises:
        UserError: There is no such recipe or run, or nothing can be written.
    """
    request.capture.check()
    with open_context(
        lambda ranks: _chosen(request, ranks), device=request.device, writes=True
    ) as context:
        _record(request, context)
    return 0


def create_capture(
    settings: CaptureSettings,
    task: Task,
    environment: Mapping[str, Any],
    context: RunContext[ChosenRun],
) -> Capture:
    """Create the capture that records a task's steps and writes `profile/`.

    Args:
        settings: The steps to record.
        task: The task whose layers are marked.
        environment: Versions and machine, for `environment.json`.
        context: The run and its device.
    """

    def keep(recorded: Recorded) -> None:
        # Imported here because it needs polars, which takes a fraction of a second to import.
        from jumar.training.profiling.files import write_profile

        profile = write_profile(
            recorded,
            context.run.path,
            device=context.device,
            ranks=context.ranks,
            settings=settings,
            environment={"recipe": context.chosen.recorded(), "environment": environment},
        )
        context.console.line(profile.report())

    return Capture(
        CapturePlan(
            settings=settings,
            ranges=ModuleRanges(named_layers(task.model, task.objectives)),
            device=context.device,
            folder=raw_folder(context.run.path, context.ranks),
            keep=keep,
        )
    )


def _chosen(request: ProfileRequest, ranks: Ranks) -> ChosenStart:
    """Return the recipe and the run to write to."""
    source = find_source(
        request,
        ranks,
        todo=f"To show a profile in it: jumar profile show {request.what}",
    )
    if request.run_dir is not None:
        run = RunDirectory(request.run_dir)
        if run.exists and not source.is_stored:
            raise UserError(
                f"'{run}' already contains a run",
                where="--run-dir",
                todo=f"To profile that run: jumar profile {shlex.quote(str(run))}",
            )
    elif source.is_stored:
        run = source.run
    else:
        path = next_run_path(Path("runs"), request.what) if ranks.is_first else Path()
        run = RunDirectory(path)
    return replace(source, run=run)


def _record(request: ProfileRequest, context: RunContext[ChosenStart]) -> None:
    chosen = context.chosen
    begins_run = not context.run.exists
    context.print_first_line(chosen.plan.batch_size)
    task = context.build_task(chosen.recipe)
    environment = asdict(inspect_environment())
    capture = create_capture(request.capture, task, environment, context)
    context.ranks.wait()
    trainer = observing_trainer(context, task, chosen.plan, [capture])
    trainer.observe(chosen.checkpoint)
    if context.ranks.is_first and begins_run:
        write_json(context.run.recipe, chosen.recorded())
        keep_resolved(context.run, chosen.recipe, task)
        write_json(context.run.environment, environment)
