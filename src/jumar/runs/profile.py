"""Profile a recipe or a run: `jumar profile`, and `jumar train --profile`."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from jumar.environment import inspect_environment
from jumar.ground.errors import UserError
from jumar.recipes.resolved import keep_resolved
from jumar.runs.context import ChosenRun, RunContext, open_context
from jumar.runs.observed_steps import ChosenStart, find_source, observing_trainer
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
class ProfileRequest:
    """The options of `jumar profile`.

    Attributes:
        what: A recipe's name, or a run directory.
        run_dir: Folder for `profile/`; by default the run, or the next free `runs/RECIPE-N`.
    """

    what: str
    capture: CaptureSettings = field(default_factory=CaptureSettings)
    assignments: Sequence[str] = ()
    imports: Sequence[str] = ()
    run_dir: Path | None = None
    device: str = "auto"


@dataclass(frozen=True, kw_only=True)
class _Chosen(ChosenStart):
    """The training to record, and the checkpoint to start from.

    Attributes:
        begins_run: Whether to write the recipe into the directory for later commands.
    """

    begins_run: bool


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


def _chosen(request: ProfileRequest, ranks: Ranks) -> _Chosen:
    """Return the recipe and the run to write to."""
    source = find_source(
        request.what,
        request.assignments,
        request.imports,
        ranks,
        todo=f"To show a profile in it: jumar profile show {request.what}",
    )
    path = request.run_dir
    if source.is_stored:
        run = source.run if path is None else RunDirectory(path)
        begins_run = not run.exists
    else:
        if path is None:
            path = next_run_path(Path("runs"), request.what) if ranks.is_first else Path()
        run, begins_run = RunDirectory(path), True
        if request.run_dir is not None and run.exists:
            raise UserError(
                f"'{run}' already contains a run",
                where="--run-dir",
                todo=f"To profile that run: jumar profile {run}",
            )
    return _Chosen(
        run=run,
        recipe=source.recipe,
        is_stored=source.is_stored,
        name=source.name,
        imports=source.imports,
        checkpoint=source.checkpoint,
        begins_run=begins_run,
    )


def _record(request: ProfileRequest, context: RunContext[_Chosen]) -> None:
    chosen = context.chosen
    context.print_first_line(chosen.plan.batch_size)
    task = context.build_task(chosen.recipe)
    environment = asdict(inspect_environment())
    capture = create_capture(request.capture, task, environment, context)
    context.ranks.wait()
    trainer = observing_trainer(context, task, chosen.plan, [capture])
    trainer.observe(chosen.checkpoint)
    if context.ranks.is_first and chosen.begins_run:
        write_json(context.run.recipe, chosen.recorded())
        keep_resolved(context.run, chosen.recipe, task)
        write_json(context.run.environment, environment)
