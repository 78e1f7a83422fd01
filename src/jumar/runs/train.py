"""A recipe on a device in a run directory: train it, go on with it: `jumar train`."""

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from jumar.devices.contract import Device
from jumar.devices.registry import open_device
from jumar.environment import inspect_environment
from jumar.ground.errors import UserError
from jumar.ground.paths import exists, is_file, is_folder, missing
from jumar.precision.policy import PrecisionPolicy
from jumar.recipes.first_stage import keep_first_stage, with_kept_first_stage
from jumar.recipes.recipe import Recipe
from jumar.recipes.registry import create_recipe, import_modules
from jumar.recipes.stored import stored_recipe
from jumar.runs.profile import create_capture
from jumar.runs.start import policy_in_force, prepare, say_first_line, say_unreadable
from jumar.settings import fixed_differences, override, to_json, value_text
from jumar.tasks.task import Task
from jumar.training.distribution import (
    Ranks,
    announced_ranks,
    connect,
    disconnect,
    share_text,
    wait_for_ranks,
)
from jumar.training.kept_checkpoints import newest_checkpoint, remove_leftovers, set_aside_newer
from jumar.training.profiling.capture import Capture, CaptureSettings
from jumar.training.progress import Console
from jumar.training.results import Outcome
from jumar.training.run_directory import RunDirectory, next_run_path, write_json
from jumar.training.settings import Plan
from jumar.training.signals import StopRequest, listening
from jumar.training.skipped_updates import NoUpdateError
from jumar.training.trainer import Trainer
from jumar.training.transfer import transfer_weights


@dataclass(frozen=True, kw_only=True)
class TrainRequest:
    """What `jumar train` was asked for."""

    recipe: str | None
    assignments: Sequence[str] = ()
    imports: Sequence[str] = ()
    run_dir: Path | None = None
    device: str = "auto"
    resume: bool = False
    dry_run: bool = False
    profile: bool = False


@dataclass(frozen=True, kw_only=True)
class _Session:
    """One training: what was asked for, what of it, where, and who hears of it."""

    request: TrainRequest
    run: RunDirectory
    recipe: Recipe
    name: str
    imports: Sequence[str]
    device: Device
    ranks: Ranks
    console: Console
    stop: StopRequest


def train_recipe(request: TrainRequest) -> int:
    """Train a recipe, or go on with a run.

    Returns:
        The exit code: 0 finished, 3 stopped by a loss that is not finite, 128 + n left on
        signal n.

    Raises:
        UserError: Anything the user can mend, before the device is opened where possible.
    """
    ranks = announced_ranks()
    run, recipe, name, imports = _resolve(request, ranks)
    device = open_device(request.device)
    console = Console(silent=not ranks.is_first)
    connect(ranks, device)
    run = RunDirectory(Path(share_text(str(run.path), ranks)))
    with listening() as stop:
        session = _Session(
            request=request,
            run=run,
            recipe=recipe,
            name=name,
            imports=imports,
            device=device,
            ranks=ranks,
            console=console,
            stop=stop,
        )
        locks = not request.dry_run and ranks.is_first
        with run.locked() if locks else nullcontext():
            code = _train(session)
    disconnect()
    return code


def _resolve(request: TrainRequest, ranks: Ranks) -> tuple[RunDirectory, Recipe, str, list[str]]:
    """The run directory and the recipe, checked against what is stored there."""
    run = RunDirectory(request.run_dir) if request.run_dir else None
    if request.resume and run is not None and not exists(run.path):
        raise missing(run.path, "run directory", where="--resume")
    if request.resume and (run is None or not run.exists):
        place = "--run-dir names no run" if run is None else f"there is no run in '{run}'"
        raise UserError(f"--resume: {place}", todo="Name the run with --run-dir DIRECTORY.")
    if run is not None and run.exists:
        name, imports, stored = stored_recipe(run, request.imports, as_recorded=True)
        if request.recipe not in (None, name):
            raise UserError(
                f"'{run}' holds a run of '{name}', not of '{request.recipe}'",
                todo="Choose another --run-dir.",
            )
        asked = override(
            stored if request.recipe is None else create_recipe(name), request.assignments
        )
        _refuse_changes(stored, asked, run)
        return run, asked, name, imports
    if request.recipe is None:
        raise UserError("no recipe given", todo="`jumar recipes list` lists them.")
    import_modules(request.imports)
    recipe = override(create_recipe(request.recipe), request.assignments)
    if run is None:
        path = next_run_path(Path("runs"), request.recipe) if ranks.is_first else Path()
        run = RunDirectory(path)
    if exists(run.path) and not is_folder(run.path):
        raise UserError(f"'{run}' is a file", where="--run-dir")
    return run, recipe, request.recipe, list(request.imports)


def _refuse_changes(stored: Recipe, asked: Recipe, run: RunDirectory) -> None:
    for field, before, after in fixed_differences(stored, asked):
        raise UserError(
            f"the run was started with {field}={value_text(before)}, not {value_text(after)}",
            where=str(run),
            todo="Choose another --run-dir, or repeat the settings that it was started with "
            "(`jumar train --resume --run-dir DIRECTORY` needs none).",
        )


def _train(session: _Session) -> int:
    request, run, console = session.request, session.run, session.console
    finished = _finished(run, session.recipe) if not request.dry_run else None
    if finished is not None:
        hint = f"; to record its steps: jumar profile {run}" if request.profile else ""
        console.line(finished + hint)
        return 0
    prepare(session.recipe, session.device)
    plan = session.recipe.plan(session.name)
    policy = policy_in_force(session.recipe, session.device)
    try:
        return _train_plan(session, plan, policy)
    finally:
        policy.close()
        console.close()


def _train_plan(session: _Session, plan: Plan, policy: PrecisionPolicy) -> int:
    """Train with the precision in force, from the last checkpoint where there is one."""
    request, run, ranks, console = session.request, session.run, session.ranks, session.console
    say_first_line(
        console, run, plan_batch=plan.batch_size, device=session.device, ranks=ranks, policy=policy
    )
    checkpoint = newest_checkpoint(run.checkpoints, console.line)
    task = with_kept_first_stage(session.recipe, run).build_task(console.line)
    if checkpoint is None and plan.transfer.start_from:
        for line in transfer_weights(task.model, plan.transfer).lines():
            console.line(line)
    environment = asdict(inspect_environment())
    if ranks.is_first and not request.dry_run:
        remove_leftovers(run.checkpoints)
    recorded = {
        "recipe": session.name,
        "imports": list(session.imports),
        "settings": to_json(session.recipe),
    }

    def begin() -> None:
        if ranks.is_first:
            if checkpoint is not None:
                for place in set_aside_newer(run.checkpoints, checkpoint):
                    console.line(f"set aside: {place}")
            write_json(run.recipe, recorded)
            if checkpoint is None or not is_file(run.first_stage):
                keep_first_stage(session.recipe, run)
            write_json(run.environment, environment)
            console.keep_log(run.log)

    capture = _capture(session, task, recorded, environment)
    trainer = _trainer(session, task, plan, policy, capture, environment)
    if checkpoint is not None:
        trainer.resume(checkpoint)
        console.line(f"resuming from step {checkpoint.step} ({checkpoint.path})")
    wait_for_ranks(ranks)
    outcome = trainer.train(dry_run=request.dry_run, begin=begin)
    if capture.is_cut_short:
        console.line("no profile: the run ended before all of its steps were recorded")
    say_unreadable(console, trainer.unreadable)
    _say_end(console, run, outcome, dry_run=request.dry_run)
    return outcome.exit_code


def _capture(
    session: _Session, task: Task, recorded: Mapping[str, Any], environment: Mapping[str, Any]
) -> Capture:
    """What records steps where `--profile` asks for it, and else does nothing."""
    request = session.request
    return create_capture(
        CaptureSettings() if request.profile and not request.dry_run else None,
        task,
        recorded,
        environment,
        run=session.run,
        device=session.device,
        ranks=session.ranks,
        console=session.console,
    )


def _trainer(
    session: _Session,
    task: Task,
    plan: Plan,
    policy: PrecisionPolicy,
    capture: Capture,
    environment: Mapping[str, Any],
) -> Trainer:
    return Trainer(
        task,
        plan,
        device=session.device,
        ranks=session.ranks,
        run=session.run,
        console=session.console,
        stop=session.stop,
        policy=policy,
        versions=_versions(environment),
        capture=capture,
        asked_device=session.request.device,
    )


def _finished(run: RunDirectory, recipe: Recipe) -> str | None:
    """What to say where the run has been finished and nothing longer is asked for."""
    results = run.read_results()
    if results is None or results.get("state") != "finished":
        return None
    if stored_recipe(run, as_recorded=True)[2].training.duration != recipe.training.duration:
        return None
    scores = ", ".join(
        f"{key} {value:.3f}"
        for key, value in results.get("metrics", {}).items()
        if isinstance(value, (int, float))
    )
    steps = results.get("steps")
    return f"'{run}' is finished: {steps} steps; {scores or 'not evaluated'}"


def _say_end(console: Console, run: RunDirectory, outcome: Outcome, *, dry_run: bool) -> None:
    if dry_run:
        console.line("dry run: data, recipe, weights, disk space and one step are fine")
    elif isinstance(outcome.failure, NoUpdateError):
        raise outcome.failure
    elif outcome.state == "finished":
        console.line(f"finished after step {outcome.step}: {run.results}")


def _versions(environment: Mapping[str, Any]) -> dict[str, Any]:
    return {name: version for name, version in environment["versions"].items() if version}
