"""Train a recipe, or resume a run: `jumar train`."""

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from jumar.environment import inspect_environment
from jumar.ground.errors import UserError
from jumar.ground.paths import exists, is_file, is_folder, missing
from jumar.ground.text import plain_text
from jumar.observer import Observer
from jumar.recipes.first_stage import keep_first_stage, with_kept_first_stage
from jumar.recipes.recipe import Recipe
from jumar.recipes.registry import create_recipe, import_modules
from jumar.recipes.resolved import (
    data_line,
    keep_resolved,
    movable_paths,
    refuse_other_data,
    with_data_in_place,
)
from jumar.recipes.stored import stored_recipe
from jumar.runs.batch_warning import batch_warnings
from jumar.runs.context import ChosenRun, RunContext, open_context, print_unreadable
from jumar.runs.elastic import share_ranks
from jumar.runs.profile import create_capture
from jumar.settings import fixed_differences, override, value_text
from jumar.tasks.task import Task
from jumar.training.cadence import check_durations
from jumar.training.checkpoint_retention import (
    newest_checkpoint,
    newest_weights,
    remove_leftovers,
    set_aside_newer,
)
from jumar.training.device_load import LoadObserver
from jumar.training.foreign_folder import refuse_foreign_folder
from jumar.training.parallel.ranks import Ranks
from jumar.training.profiling.capture import Capture, CaptureSettings
from jumar.training.progress import Console
from jumar.training.results import Outcome
from jumar.training.resume_hint import resume_hint
from jumar.training.run_directory import (
    RunDirectory,
    next_run_path,
    recorded_recipe,
    write_json,
)
from jumar.training.settings import Plan
from jumar.training.signals import StopRequest, listening
from jumar.training.skipped_updates import NoUpdateError
from jumar.training.trackers.chosen import create_services
from jumar.training.trainer import Trainer
from jumar.training.transfer import transfer_weights


@dataclass(frozen=True, kw_only=True)
class TrainRequest:
    """The options of `jumar train`.

    Attributes:
        tuned: The applied part of a tuned file, for `environment.json`.
    """

    recipe: str | None
    assignments: Sequence[str] = ()
    imports: Sequence[str] = ()
    run_dir: Path | None = None
    device: str = "auto"
    resume: bool = False
    dry_run: bool = False
    profile: bool = False
    track: Sequence[str] = ()
    tuned: Mapping[str, Any] | None = None


def train_recipe(request: TrainRequest) -> int:
    """Train a recipe, or resume a run.

    Returns:
        The exit code: 0 if finished, 3 if stopped by a non-finite loss, 128 + n if stopped by
        signal n.

    Raises:
        UserError: The request or the run is not valid; checked before the device is opened where
            possible.
    """
    share = share_ranks(request.run_dir)
    if share.is_spare:
        return share.wait()
    with (
        share.meeting() as end_spares,
        open_context(
            lambda ranks: _resolve(request, ranks),
            device=request.device,
            writes=not request.dry_run,
            restart_hint=lambda run, ranks: resume_hint(run, request.device, ranks),
        ) as context,
        listening() as stop,
    ):
        finished_line = None if request.dry_run else _finished(context)
        if share.line:
            context.console.line(share.line)
        if finished_line is None:
            code = _train(request, context, stop)
        else:
            hint = (
                f"; to record its steps: jumar profile {shlex.quote(str(context.run))}"
                if request.profile
                else ""
            )
            context.console.line(finished_line + hint)
            code = 0
        end_spares(code)
        return code


def _resolve(request: TrainRequest, ranks: Ranks) -> ChosenRun:
    """Return the run directory and the recipe, checked against the stored recipe."""
    run = RunDirectory(request.run_dir) if request.run_dir else None
    if request.resume and run is not None and not exists(run.path):
        raise missing(run.path, "run directory", where="--resume")
    if request.resume and (run is None or not run.exists):
        problem = "--run-dir is missing" if run is None else f"there is no run in '{run}'"
        raise UserError(f"--resume: {problem}", todo="Name the run with --run-dir DIRECTORY.")
    if run is not None and run.exists:
        name, imports, stored = stored_recipe(run, request.imports, as_recorded=True)
        if request.recipe not in (None, name):
            raise UserError(
                f"'{run}' contains a run of '{name}', not of '{request.recipe}'",
                todo="Choose another --run-dir.",
            )
        requested = override(
            stored if request.recipe is None else create_recipe(name), request.assignments
        )
        _refuse_changes(stored, requested, run)
        notice = Console(silent=not ranks.is_first).line
        requested = with_data_in_place(requested, run, notice, request.assignments)
        return ChosenRun(
            run=run,
            recipe=requested,
            name=name,
            imports=imports,
            global_batch=recorded_recipe(run.read_recipe(), where=str(run.recipe)).global_batch,
            is_stored=True,
        )
    if request.recipe is None:
        raise UserError("the recipe is missing", todo="`jumar recipes list` lists the recipes.")
    import_modules(request.imports)
    recipe = create_recipe(request.recipe, request.assignments)
    if run is None:
        path = next_run_path(Path("runs"), request.recipe) if ranks.is_first else Path()
        run = RunDirectory(path)
    if exists(run.path) and not is_folder(run.path):
        raise UserError(f"'{run}' is a file", where="--run-dir")
    refuse_foreign_folder(run)
    return ChosenRun(run=run, recipe=recipe, name=request.recipe, imports=request.imports)


def _refuse_changes(stored: Recipe, requested: Recipe, run: RunDirectory) -> None:
    movable = movable_paths(run)
    for field, before, after in fixed_differences(stored, requested):
        if field in movable:
            continue
        raise UserError(
            f"the run was started with {field}={value_text(before)}, not {value_text(after)}",
            where=str(run),
            todo="Choose another --run-dir, or repeat the settings it was started with "
            "(`jumar train --resume --run-dir DIRECTORY` needs none).",
        )


def _train(request: TrainRequest, context: RunContext[ChosenRun], stop: StopRequest) -> int:
    """Train, resuming from the newest checkpoint if there is one."""
    run, ranks, console, chosen = context.run, context.ranks, context.console, context.chosen
    unusable: list[str] = []
    checkpoint = newest_checkpoint(run.checkpoints, unusable.append)
    plan = chosen.shared_plan(ranks, checkpoint)
    check_durations(plan)
    context.print_first_line(plan.batch_size)
    for line in unusable:
        console.line(line)
    if checkpoint is None:
        for line in batch_warnings(
            chosen.name, chosen.recipe, request.assignments, plan.batch_size * ranks.world
        ):
            console.line(line)
    task = context.build_task(with_kept_first_stage(chosen.recipe, run))
    console.line(plain_text(data_line(chosen.recipe, task)))
    if checkpoint is not None:
        refuse_other_data(run, task)
    if checkpoint is None and plan.transfer.start_from:
        transferred = transfer_weights(task.model, plan.transfer, chosen.recipe.settings_of_weights)
        for line in transferred.lines():
            console.line(line)
    environment = asdict(inspect_environment())
    if ranks.is_first and not request.dry_run:
        remove_leftovers(run.checkpoints)

    def begin() -> None:
        if ranks.is_first:
            if checkpoint is not None:
                for path in set_aside_newer(run.checkpoints, checkpoint):
                    console.line(f"set aside: {path}")
            batch = plan.batch_size * ranks.world
            write_json(run.recipe, {**chosen.recorded(), "global_batch": batch})
            if checkpoint is None or not is_file(run.first_stage):
                keep_first_stage(chosen.recipe, run)
            keep_resolved(run, chosen.recipe, task)
            tuned_facts = {} if request.tuned is None else {"tuned": request.tuned}
            write_json(run.environment, {**environment, **tuned_facts})
            console.keep_log(run.log)

    capture, load, services = _observers(request, context, task, environment, plan)
    trainer = Trainer(
        task,
        plan,
        device=context.device,
        ranks=ranks,
        run=run,
        console=console,
        stop=stop,
        policy=context.policy,
        versions={name: text for name, text in environment["versions"].items() if text},
        observers=[*services, *filter(None, [capture, load])],
        asked_device=request.device,
    )
    if checkpoint is not None:
        trainer.resume(checkpoint)
        console.line(f"resuming from step {checkpoint.step} ({checkpoint.path})")
    ranks.wait()
    outcome = trainer.train(dry_run=request.dry_run, begin=begin)
    if capture is not None and capture.is_cut_short:
        console.line("no profile: the run ended before all of its steps were recorded")
    print_unreadable(console, trainer.unreadable)
    if load is not None and (line := load.last_line()):
        console.line(line)
    _report_end(console, run, outcome, dry_run=request.dry_run)
    return outcome.exit_code


def _observers(
    request: TrainRequest,
    context: RunContext[ChosenRun],
    task: Task,
    environment: Mapping[str, Any],
    plan: Plan,
) -> tuple[Capture | None, LoadObserver | None, list[Observer]]:
    """Return the recorder of a profile, the observer of the device's load, and the trackers.

    A dry run has none of them; other ranks than the first have at most the recorder.
    """
    if request.dry_run:
        return None, None, []
    console, every_s = context.console, plan.training.device_load_every_s
    capture = (
        create_capture(CaptureSettings(), task, environment, context) if request.profile else None
    )
    if not context.ranks.is_first:
        return capture, None, []
    load = LoadObserver(context.device, every_s=every_s, say=console.line) if every_s else None
    return capture, load, create_services(request.track, context.run, console.line, console)


def _finished(context: RunContext[ChosenRun]) -> str | None:
    """Return the line to print if the run is finished and no changed setting continues it.

    Raises:
        UserError: It is finished, but all its checkpoints are damaged.
    """
    run, recipe = context.run, context.chosen.recipe
    results = run.read_results()
    if results is None or results.get("state") != "finished":
        return None
    stored = stored_recipe(run, as_recorded=True)[2]
    if stored.training.duration != recipe.training.duration:
        return None
    if results.get("stopped_early") and stored.early_stopping != recipe.early_stopping:
        return None
    scores = ", ".join(
        f"{key} {value:.3f}"
        for key, value in results.get("metrics", {}).items()
        if isinstance(value, (int, float))
    )
    line = f"'{run}' is finished: {results.get('steps')} steps; {scores or 'not evaluated'}"
    try:
        weights = newest_weights(run.checkpoints, context.console.line)
    except UserError as error:
        raise UserError(
            f"{line}; but {error.what}",
            todo="Copy the checkpoints from a backup, or train again into another --run-dir.\n"
            f"  {error.todo}",
        ) from None
    return line if weights else f"{line}; it has no checkpoint"


def _report_end(console: Console, run: RunDirectory, outcome: Outcome, *, dry_run: bool) -> None:
    if dry_run:
        console.line("dry run: data, recipe, weights, disk space and one step are fine")
    elif isinstance(outcome.failure, NoUpdateError):
        raise outcome.failure
    elif outcome.state == "finished":
        console.line(f"finished after step {outcome.step}: {run.results}")
