"""Run a sweep: each run in its own process, on this or other machines, as resources allow.

Runs have separate processes because the number of inter-op threads can be set only once per
process, and because a run that crashes or runs out of memory must not end the others.
"""

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from jumar.experiments.placing.contract import OUTPUT, Ended, Job, Place, run_jobs
from jumar.experiments.reporting import SWEEP_FILES, save_sweep_report
from jumar.experiments.run_reading import Run, read_run
from jumar.experiments.sweep_plan import (
    FILE,
    PlannedRun,
    SweepPlan,
    exit_text,
    plan_sweep,
    read_plan,
    save_plan,
    stopping_signal,
)
from jumar.experiments.table import Table, reason_of
from jumar.experiments.table_forms import to_text
from jumar.ground.errors import UserError
from jumar.ground.json_text import flattened
from jumar.ground.paths import check_no_file, exists
from jumar.ground.text import counted, time_text
from jumar.precision.modes import find_mode
from jumar.training.run_directory import RunDirectory


@dataclass(frozen=True, kw_only=True)
class RunRequest:
    """A run to start.

    Attributes:
        recipe_name: The recipe.
        assignments: `section.field=value` in order; the last one of a field takes effect.
        directory: The run directory; an existing run in it is resumed.
    """

    recipe_name: str
    assignments: tuple[str, ...]
    directory: Path


@dataclass(frozen=True, kw_only=True)
class Sweep:
    """The state of a sweep.

    Attributes:
        directory: The sweep's directory, with a run directory for each run.
        plan: The runs and their progress.
        table: The comparison, including unfinished runs.
        files: The table files and the page.
        stopped_by: Number of the signal that stopped the sweep; 0 if it completed.
    """

    directory: Path
    plan: SweepPlan
    table: Table
    files: tuple[Path, ...]
    stopped_by: int = 0


def run_sweep(
    recipe_name: str,
    *,
    vary: Sequence[str],
    common_assignments: Sequence[str],
    baseline: Sequence[str],
    directory: Path,
    repeats: int,
    open_place: Callable[[], Place],
    command: Callable[[RunRequest, str], Sequence[str]],
    resolve: Callable[[Sequence[str]], Mapping[str, Any]],
    say: Callable[[str], None] = print,
) -> Sweep:
    """Run every combination that is not finished, and save the table after each run.

    Args:
        recipe_name: The recipe of all runs.
        vary: `section.field=value,value,...`, one item per field.
        common_assignments: `section.field=value` for all runs.
        baseline: Assignments of the combination that the others are compared with; if empty, the
            first one with `must_keep_origin_dtype`, or simply the first.
        directory: Directory for the runs, `sweep.json` and the tables.
        repeats: Number of seeds per combination.
        open_place: Opens the place that computes the runs.
        command: Returns the command of a run for a device.
        resolve: Returns the recipe's settings after assignments, as JSON types; raises `UserError`
            for an unknown field or an invalid value.
        say: Prints progress lines, and at the end the table and the paths.

    Raises:
        UserError: The request is not valid, which is found before any run starts, or a run in the
            directory was created with other settings.
    """
    base = resolve(list(common_assignments))
    plan = plan_sweep(
        recipe_name,
        vary=vary,
        common=common_assignments,
        baseline=baseline,
        repeats=repeats,
        first_seed=_seed_of(base, repeats),
    )
    resolved = {planned: resolve(planned.assignments) for planned in plan.runs}
    _refuse_equal(resolved)
    _refuse_foreign(directory, plan)
    pending = _pending(plan.recipe, resolved, directory, say)
    with RunDirectory(directory).locked():
        plan = _with_earlier_exits(plan, directory)
        return _run_pending(plan, pending, directory, open_place(), command, say)


class _Progress:
    """The plan, the table and its files, updated when a run begins or ends."""

    def __init__(
        self, plan: SweepPlan, directory: Path, num_runs: int, say: Callable[[str], None]
    ) -> None:
        self._directory, self._num_runs, self._say = directory, num_runs, say
        self._begun_at = time.monotonic()
        self._num_begun = self._num_ended = 0
        self.num_left = num_runs
        self.interrupted: list[str] = []
        self.plan = plan
        save_plan(plan, directory)
        self.table, self.files = save_sweep_report(directory)

    def begin(self, job: Job) -> None:
        self._num_begun += 1
        self._say(f"Run {self._num_begun} of {self._num_runs}: {job.name}{self._estimate()}")
        # Otherwise a sweep killed during this run would keep the exit code of an earlier attempt.
        self.plan = self.plan.with_exit_code(job.name, None)
        save_plan(self.plan, self._directory)

    def end(self, ended: Ended) -> None:
        self._num_ended += 1
        name = ended.job.name
        self.plan = self.plan.with_exit_code(name, ended.code, note=ended.note)
        save_plan(self.plan, self._directory)
        self.table, self.files = save_sweep_report(self._directory)
        run = read_run(ended.job.directory)
        # A run that is asked to stop during its last step still finishes.
        if run.state == "finished":
            self.num_left -= 1
        if stopping_signal(ended.code):
            self.interrupted.append(name)
        elif run.state != "finished":
            self.num_left -= 1
            reason = reason_of(run, ended.note or exit_text(ended.code))
            self._say(f"{name} is not available: {reason}")
        elif ended.job.output is not None:
            self._say(f"{name} is finished")

    def _estimate(self) -> str:
        if not self._num_ended:
            return ""
        elapsed_s = time.monotonic() - self._begun_at
        remaining_s = elapsed_s / self._num_ended * (self._num_runs - self._num_ended)
        return f" ({time_text(elapsed_s)} so far, about {time_text(remaining_s)} to go)"


def _run_pending(
    plan: SweepPlan,
    pending: Sequence[PlannedRun],
    directory: Path,
    place: Place,
    command: Callable[[RunRequest, str], Sequence[str]],
    say: Callable[[str], None],
) -> Sweep:
    progress = _Progress(plan, directory, len(pending), say)
    jobs = [
        job_of(plan.recipe, planned.assignments, directory / planned.name, place, command)
        for planned in pending
    ]
    with place:
        stopped_by = run_jobs(place, jobs, begin=progress.begin, end=progress.end)
    if stopped_by:
        say(_stop_message(progress.interrupted, progress.num_left))
    say(f"\n{to_text(progress.table)}")
    for file in progress.files:
        say(str(file))
    return Sweep(
        directory=directory,
        plan=progress.plan,
        table=progress.table,
        files=progress.files,
        stopped_by=stopped_by,
    )


def job_of(
    recipe_name: str,
    assignments: tuple[str, ...],
    folder: Path,
    place: Place,
    command: Callable[[RunRequest, str], Sequence[str]],
) -> Job:
    """Return the job of a run, whose output goes to a file unless its place shows it."""
    request = RunRequest(recipe_name=recipe_name, assignments=assignments, directory=folder)
    return Job(
        directory=folder,
        command=partial(command, request),
        output=None if place.shares_terminal else folder / OUTPUT,
    )


def _seed_of(settings: Mapping[str, Any], repeats: int) -> int:
    seed = settings.get("seed")
    if isinstance(seed, int):
        return seed
    if repeats > 1:
        raise UserError(
            "the recipe has no field 'seed', which repeated runs need",
            where="--repeats",
            todo="Omit it.",
        )
    return 0


def _refuse_foreign(directory: Path, plan: SweepPlan) -> None:
    """Reject a directory with other content before writing to it.

    The table is rewritten from the plan: runs that only an earlier plan has would disappear from
    it. If no run of the plan exists, files with the table's names are not from this sweep.
    """
    check_no_file(directory, "--to")
    if exists(directory / "recipe.json"):
        raise UserError(
            f"'{directory}' is the directory of a single run",
            todo="Give another directory for the sweep.",
        )
    if not exists(directory / FILE):
        foreign = [name for name in SWEEP_FILES if exists(directory / name)]
        if foreign and not any(exists(directory / run.name) for run in plan.runs):
            raise UserError(
                f"it contains '{foreign[0]}', which was not written by a sweep",
                where=str(directory),
                todo="Give another directory for the sweep, or move the file elsewhere.",
            )
        return
    earlier_plan = read_plan(directory)
    if earlier_plan.recipe != plan.recipe:
        raise UserError(
            f"'{directory}' contains a sweep of the recipe '{earlier_plan.recipe}', not of "
            f"'{plan.recipe}'",
            todo="Give another directory for this sweep.",
        )
    if earlier_plan.search:
        raise UserError(
            f"'{directory}' contains a search of hyperparameters, not a sweep of a grid",
            todo="Give another directory for this sweep, or continue the search with --search.",
        )
    planned_names = {run.name for run in plan.runs}
    dropped = [run.name for run in earlier_plan.runs if run.name not in planned_names]
    dropped = [name for name in dropped if exists(directory / name)]
    if dropped:
        suffix = f" and {len(dropped) - 3} more" if len(dropped) > 3 else ""
        raise UserError(
            f"it contains {counted(len(dropped), 'run')} that this sweep lacks and that would be "
            f"dropped from the table: {'; '.join(dropped[:3])}{suffix}",
            where=str(directory),
            todo="Give another directory for this sweep, or add values to --vary and --repeats "
            "without removing any.",
        )


def _pending(
    recipe_name: str,
    resolved: Mapping[PlannedRun, Mapping[str, Any]],
    directory: Path,
    say: Callable[[str], None],
) -> list[PlannedRun]:
    """Return the runs to start, after checking every run."""
    pending: list[PlannedRun] = []
    for planned, settings in resolved.items():
        run = read_run(directory / planned.name)
        _refuse_changed(run, recipe_name, settings)
        if run.state == "finished":
            say(f"{planned.name} is finished, skipping it")
        elif run.state == "failed" and run.results.failure_step is not None:
            # Training is deterministic: the same step would fail again.
            say(
                f"{planned.name} failed ({run.reason}) and is not repeated; "
                f"delete {run.directory} to try again"
            )
        else:
            pending.append(planned)
    return pending


def _refuse_equal(resolved: Mapping[PlannedRun, Mapping[str, Any]]) -> None:
    """Reject equivalent values, such as 0.1 and 1e-1, or a precision mode and its alias.

    The run would be trained twice and be listed in the table as two combinations.
    """
    planned_by_settings: dict[str, PlannedRun] = {}
    for planned, settings in resolved.items():
        flat = flattened(settings)
        if isinstance(mode := flat.get("precision.mode"), str):
            flat["precision.mode"] = find_mode(mode).name
        first = planned_by_settings.setdefault(json.dumps(flat, sort_keys=True), planned)
        if first is not planned:
            raise UserError(
                f"'{first.name}' and '{planned.name}' are the same settings",
                where="--vary",
                todo="Omit one of them; --repeats N runs every combination with N seeds.",
            )


def _refuse_changed(run: Run, recipe_name: str, settings: Mapping[str, Any]) -> None:
    if run.settings is None:
        return
    before = flattened(run.settings)
    # As JSON, tuples equal lists.
    after = flattened(json.loads(json.dumps(settings)))
    changes = [
        f"{name} was {_shown(before, name)} and is now {_shown(after, name)}"
        for name in sorted(before.keys() | after.keys())
        if _shown(before, name) != _shown(after, name)
    ]
    if run.recipe and run.recipe != recipe_name:
        changes.insert(0, f"recipe was {run.recipe} and is now {recipe_name}")
    if changes:
        suffix = f" and {len(changes) - 4} more" if len(changes) > 4 else ""
        raise UserError(
            f"this run was created with other settings: {'; '.join(changes[:4])}{suffix}",
            where=str(run.directory),
            todo="Give another directory for the sweep, or delete this run to repeat it.",
        )


def _shown(flat: Mapping[str, Any], name: str) -> str:
    return json.dumps(flat[name]) if name in flat else "absent"


def _with_earlier_exits(plan: SweepPlan, directory: Path) -> SweepPlan:
    """Return the plan with the exit codes from an earlier call for the same sweep."""
    if not exists(directory / FILE):
        return plan
    for run in read_plan(directory).runs:
        plan = plan.with_exit_code(run.name, run.exit_code, run.note)
    return plan


def _stop_message(interrupted: Sequence[str], num_left: int) -> str:
    where = " and ".join(interrupted) or "between two runs"
    if not num_left:
        return f"Stopped in {where}, which was the last run and is finished."
    runs = "run is" if num_left == 1 else "runs are"
    return (
        f"Stopped in {where}; {num_left} {runs} left. The same command continues from here: "
        "finished runs are not repeated."
    )
