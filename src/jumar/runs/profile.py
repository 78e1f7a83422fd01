"""Profile a recipe or a run: `jumar profile`, and `jumar train --profile`."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from jumar.devices.contract import Device
from jumar.devices.registry import open_device
from jumar.environment import inspect_environment
from jumar.ground.errors import UserError
from jumar.ground.paths import is_folder
from jumar.recipes.recipe import Recipe
from jumar.recipes.registry import create_recipe, import_modules
from jumar.recipes.stored import stored_recipe
from jumar.runs.start import policy_in_force, prepare, say_first_line
from jumar.settings import override, to_json
from jumar.tasks.task import Task
from jumar.training.checkpoint import Checkpoint
from jumar.training.distribution import (
    Ranks,
    announced_ranks,
    connect,
    disconnect,
    share_text,
    wait_for_ranks,
)
from jumar.training.kept_checkpoints import newest_checkpoint, say_damaged
from jumar.training.profiling.capture import (
    Capture,
    CapturePlan,
    CaptureSettings,
    Recorded,
    raw_folder,
)
from jumar.training.profiling.ranges import ModuleRanges, named_layers
from jumar.training.profiling.steps import record_steps
from jumar.training.progress import Console
from jumar.training.run_directory import RunDirectory, next_run_path, write_json


@dataclass(frozen=True, kw_only=True)
class ProfileRequest:
    """What `jumar profile` was asked for.

    Attributes:
        what: A recipe's name, or a run directory.
        run_dir: Where `profile/` goes; by default into the run, or the next free `runs/RECIPE-N`.
    """

    what: str
    capture: CaptureSettings = field(default_factory=CaptureSettings)
    assignments: Sequence[str] = ()
    imports: Sequence[str] = ()
    run_dir: Path | None = None
    device: str = "auto"


@dataclass(frozen=True, kw_only=True)
class _Chosen:
    """What is recorded, and into which run directory."""

    run: RunDirectory
    recipe: Recipe
    name: str
    imports: Sequence[str]
    checkpoint: Checkpoint | None
    begins_run: bool
    """Whether the directory gets the recipe, so that later commands know what was recorded."""


def profile_recipe(request: ProfileRequest) -> int:
    """Record steps of a recipe or a run.

    A run goes on from its newest checkpoint for as many steps as are recorded; nothing of it but
    `profile/` changes.

    Returns:
        The exit code.

    Raises:
        UserError: There is no such recipe or run, or nothing can be written.
    """
    request.capture.check()
    ranks = announced_ranks()
    chosen = _chosen(request, ranks)
    device = open_device(request.device)
    console = Console(silent=not ranks.is_first)
    connect(ranks, device)
    run = RunDirectory(Path(share_text(str(chosen.run.path), ranks)))
    if ranks.is_first:
        with run.locked():
            _record(request, chosen, run, device, ranks, console)
    else:
        _record(request, chosen, run, device, ranks, console)
    disconnect()
    return 0


def create_capture(
    settings: CaptureSettings | None,
    task: Task,
    recipe: Mapping[str, Any],
    environment: Mapping[str, Any],
    *,
    run: RunDirectory,
    device: Device,
    ranks: Ranks,
    console: Console,
) -> Capture:
    """What records a task's steps and writes `profile/`; without settings one that does nothing.

    Args:
        settings: Which steps.
        task: Whose layers are marked.
        recipe: Name, imports and settings, for the environment.
        environment: Versions and machine.
        run: Where the files go.
        device: Whose ops are recorded.
        ranks: Which rank this is.
        console: Hears where the files lie.
    """
    if settings is None:
        return Capture()

    def keep(recorded: Recorded) -> None:
        # Only a recording needs polars, which takes a fraction of a second to import.
        from jumar.training.profiling.files import write_profile

        kept = write_profile(
            recorded,
            run.path,
            device=device,
            ranks=ranks,
            settings=settings,
            environment={"recipe": recipe, "environment": environment},
        )
        console.line(kept.line())

    return Capture(
        CapturePlan(
            settings=settings,
            ranges=ModuleRanges(named_layers(task.model, task.objectives)),
            device=device,
            folder=raw_folder(run.path, ranks),
            keep=keep,
        )
    )


def _chosen(request: ProfileRequest, ranks: Ranks) -> _Chosen:
    """The recipe, and the run if there is one."""
    place = Path(request.what)
    if RunDirectory(place).exists:
        source = RunDirectory(place)
        name, imports, stored = stored_recipe(source, request.imports)
        run = source if request.run_dir is None else RunDirectory(request.run_dir)
        return _Chosen(
            run=run,
            recipe=override(stored, request.assignments),
            name=name,
            imports=imports,
            checkpoint=newest_checkpoint(source.checkpoints, say_damaged),
            begins_run=not run.exists,
        )
    if is_folder(place):
        raise UserError(
            f"'{place}' is not a run directory: it has no recipe.json",
            todo=f"To read a profile that lies there: jumar profile show {place}",
        )
    import_modules(request.imports)
    recipe = override(create_recipe(request.what), request.assignments)
    path = request.run_dir
    if path is None:
        path = next_run_path(Path("runs"), request.what) if ranks.is_first else Path()
    run = RunDirectory(path)
    if request.run_dir is not None and run.exists:
        raise UserError(
            f"'{run}' already holds a run",
            where="--run-dir",
            todo=f"To record that run: jumar profile {run}",
        )
    return _Chosen(
        run=run,
        recipe=recipe,
        name=request.what,
        imports=list(request.imports),
        checkpoint=None,
        begins_run=True,
    )


def _record(
    request: ProfileRequest,
    chosen: _Chosen,
    run: RunDirectory,
    device: Device,
    ranks: Ranks,
    console: Console,
) -> None:
    prepare(chosen.recipe, device)
    plan = chosen.recipe.plan(chosen.name)
    policy = policy_in_force(chosen.recipe, device)
    try:
        say_first_line(
            console, run, plan_batch=plan.batch_size, device=device, ranks=ranks, policy=policy
        )
        task = chosen.recipe.build_task(console.line)
        recorded = {
            "recipe": chosen.name,
            "imports": list(chosen.imports),
            "settings": to_json(chosen.recipe),
        }
        environment = asdict(inspect_environment())
        capture = create_capture(
            request.capture,
            task,
            recorded,
            environment,
            run=run,
            device=device,
            ranks=ranks,
            console=console,
        )
        wait_for_ranks(ranks)
        record_steps(
            task,
            plan,
            capture,
            device=device,
            ranks=ranks,
            policy=policy,
            checkpoint=chosen.checkpoint,
        )
        if ranks.is_first and chosen.begins_run:
            write_json(run.recipe, recorded)
            write_json(run.environment, environment)
    finally:
        policy.close()
        console.close()
