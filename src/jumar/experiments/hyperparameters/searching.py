"""A search for hyperparameters: runs with settings from a sampler.

The settings of a trial depend on the seed, its number and the results of earlier trials, so a
search with one run at a time is reproducible, even after an interruption. With parallel runs the
settings also depend on the order in which they end.
"""

import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from jumar.experiments.grid import train_options
from jumar.experiments.hyperparameters.judging import (
    Score,
    check_metric,
    cost_of,
    evaluations_of,
    score_of,
)
from jumar.experiments.hyperparameters.methods import NO_PRUNER, check_method
from jumar.experiments.hyperparameters.ranges import Resolve, own_values, parse_ranges
from jumar.experiments.hyperparameters.request import (
    SearchRequest,
    plan_of,
    refuse_foreign,
    refuse_set_and_searched,
)
from jumar.experiments.hyperparameters.study import Study
from jumar.experiments.placing.contract import Ended, Job, Place
from jumar.experiments.reporting import save_sweep_report
from jumar.experiments.run_reading import Run, read_run
from jumar.experiments.sweep import RunRequest, job_of
from jumar.experiments.sweep_plan import (
    FILE,
    PlannedRun,
    SweepPlan,
    exit_text,
    read_plan,
    save_plan,
)
from jumar.experiments.table_forms import to_text
from jumar.ground.errors import UserError
from jumar.ground.json_text import flattened
from jumar.ground.paths import is_file
from jumar.ground.text import counted
from jumar.training.run_directory import RunDirectory

_POLL_INTERVAL_S = 0.5


@dataclass(frozen=True, kw_only=True)
class Searched:
    """The result of a search.

    Attributes:
        best: The assignments of the best trial; None if none has finished.
        stopped_by: Number of the signal that stopped it; 0 if it completed.
    """

    best: tuple[str, ...] | None
    stopped_by: int


def search(
    request: SearchRequest,
    *,
    open_place: Callable[[], Place],
    command: Callable[[RunRequest, str], Sequence[str]],
    resolve: Resolve,
    say: Callable[[str], None] = print,
) -> Searched:
    """Search for the best settings, resuming from the directory.

    Args:
        request: The options of the search.
        open_place: Opens the place that computes the runs.
        command: Returns the command of a run for a device.
        resolve: Returns the recipe's settings after assignments.
        say: Prints progress lines, and at the end the table, the best settings and the paths.

    Raises:
        UserError: The request is not valid, which is found before any run starts, or the directory
            has other content.
    """
    if request.trials < 1:
        raise UserError(f"cannot be {request.trials}", where="--trials", todo="Allowed: 1 or more.")
    check_method(request.sampler, request.pruner)
    check_metric(request.metric)
    base = resolve(request.common)
    ranges = parse_ranges(
        request.ranges, lambda assignments: resolve([*request.common, *assignments])
    )
    refuse_set_and_searched(request, ranges)
    plan = plan_of(request)
    refuse_foreign(request.directory, plan)
    with RunDirectory(request.directory).locked():
        place = open_place()
        if is_file(request.directory / FILE):
            plan = read_plan(request.directory)
        study = Study(
            request.directory,
            ranges,
            sampler=request.sampler,
            pruner=request.pruner,
            seed=int(base.get("seed", 0)),
        )
        recipe_values = own_values(ranges, base)
        if recipe_values is not None:
            study.offer(recipe_values)
        if request.pruner != NO_PRUNER and flattened(base).get("training.evaluate_every") == "":
            say(
                "the recipe only evaluates at the end, so no run is stopped early; to evaluate "
                "more often: --set training.evaluate_every=1ep"
            )
        session = _Session(request, plan, study, place, command, resolve, say)
        with place:
            session.run_trials()
        return session.summarize()


class _Session:
    """One call of a search."""

    def __init__(
        self,
        request: SearchRequest,
        plan: SweepPlan,
        study: Study,
        place: Place,
        command: Callable[[RunRequest, str], Sequence[str]],
        resolve: Resolve,
        say: Callable[[str], None],
    ) -> None:
        self._request, self._plan, self._study = request, plan, study
        self._place, self._command, self._resolve, self._say = place, command, resolve, say
        self._score: Score | None = None
        self._pruned: dict[int, str] = {}
        self._metrics_sizes: dict[int, int] = {}
        for planned in plan.runs:
            self._learn_score(read_run(request.directory / planned.name))
        self._unfinished = study.unfinished()

    def run_trials(self) -> None:
        """Run trials until there are enough, or a signal stops the search."""
        save_plan(self._plan, self._request.directory)
        while True:
            while self._place.has_room and not self._place.stopped_by:
                number = self._next()
                if number is None:
                    break
                self._start(number)
            if not self._place.running:
                return
            for ended in self._place.wait(_POLL_INTERVAL_S):
                self._ended(ended)
            for job in self._place.running:
                self._check_progress(job)

    def summarize(self) -> Searched:
        """Print the table, the outcome of the trials, and the command that repeats the best one."""
        request, study = self._request, self._study
        if self._plan.runs:
            table, files = save_sweep_report(request.directory)
            self._say(f"\n{to_text(table)}")
            for file in files:
                self._say(str(file))
        if self._place.stopped_by:
            num_left = max(0, request.trials - study.num_drawn) + len(study.unfinished())
            self._say(
                f"Stopped with {counted(num_left, 'trial')} left. The same command continues: the "
                "interrupted run is resumed, finished ones are not repeated."
            )
        self._say(
            f"{counted(study.num_drawn, 'trial')}: {study.count('complete')} finished, "
            f"{study.count('pruned')} stopped early, {study.count('fail')} failed"
        )
        best = self._say_best()
        return Searched(best=best, stopped_by=self._place.stopped_by)

    def _say_best(self) -> tuple[str, ...] | None:
        best, score = self._study.best(), self._score
        if best is None or score is None:
            self._say("no trial has a score yet")
            return None
        number, cost = best
        varied = self._study.assignments(number)
        command = [
            *("jumar", "train", self._request.recipe),
            *train_options(self._request.imports, (*self._request.common, *varied)),
        ]
        self._say(f"best: {_name(number)}, {score.text(score.sign * cost)}")
        self._say(shlex.join(command))
        self._say(
            f"It is the best of {self._study.count('complete')} with one seed each, so partly "
            "luck; for more seeds, replace `train` by `sweep` and add --repeats 3."
        )
        return varied

    def _next(self) -> int | None:
        if self._unfinished:
            return self._unfinished.pop(0)
        return self._study.draw() if self._study.num_drawn < self._request.trials else None

    def _start(self, number: int) -> None:
        """Start a trial, unless its settings are not valid or have already been tried."""
        name, varied = _name(number), self._study.assignments(number)
        assignments = (*self._request.common, *varied)
        folder = self._request.directory / name
        settings_text = ", ".join(varied)
        try:
            self._resolve(assignments)
        except UserError as error:
            self._study.fail(number)
            self._say(f"{name}: {settings_text}: failed, these settings are not valid: {error}")
            return
        if self._is_repeated(number, varied):
            return
        if name not in [planned.name for planned in self._plan.runs]:
            planned = PlannedRun(name=name, varied=varied, assignments=assignments)
            self._plan = replace(self._plan, runs=(*self._plan.runs, planned))
            save_plan(self._plan, self._request.directory)
        suffix = ", resumed" if is_file(folder / "recipe.json") else ""
        self._say(f"{name} of {self._request.trials}: {settings_text}{suffix}")
        job = job_of(self._request.recipe, assignments, folder, self._place, self._command)
        if read_run(folder).state == "finished":
            self._ended(Ended(job=job, code=0))
        else:
            self._place.start(job)

    def _is_repeated(self, number: int, varied: tuple[str, ...]) -> bool:
        """Use an earlier trial's score if it had the same settings, and return whether it did."""
        for earlier in self._study.trials()[:number]:
            if earlier.value is None or self._study.assignments(earlier.number) != varied:
                continue
            self._study.finish(number, earlier.value)
            self._say(f"{_name(number)}: same settings as {_name(earlier.number)}, not repeated")
            return True
        return False

    def _ended(self, ended: Ended) -> None:
        """Report the outcome of a trial to the study."""
        number, run = _number(ended.job.name), read_run(ended.job.directory)
        is_cut_short = run.state in ("interrupted", "unfinished", "not run")
        if self._place.stopped_by and is_cut_short and number not in self._pruned:
            return  # resumed by the next call
        self._learn_score(run)
        self._report(number, run)
        note = self._record_outcome(number, run, ended)
        self._plan = self._plan.with_exit_code(ended.job.name, ended.code, note)
        save_plan(self._plan, self._request.directory)
        save_sweep_report(self._request.directory)

    def _record_outcome(self, number: int, run: Run, ended: Ended) -> str:
        """Record and print the outcome, and return the reason if there are no results."""
        name = _name(number)
        if number in self._pruned:
            self._study.prune(number)
            self._say(f"{name}: {self._pruned[number]}")
            return self._pruned[number]
        cost = None if self._score is None else cost_of(self._score, run)
        if cost is not None and self._score is not None:
            self._study.finish(number, cost)
            self._say(f"{name}: {self._score.text(self._score.sign * cost)}")
            return ""
        if run.state == "failed" and run.results.failure_step is not None:
            # Pruned, so that the sampler learns to avoid these settings.
            self._study.prune(number)
            self._say(f"{name}: {run.reason}, ranked below all others")
            return ""
        reason = ended.note or exit_text(ended.code) or run.reason or "it has no score"
        self._study.fail(number)
        self._say(f"{name}: failed and is not repeated: {reason}")
        return reason

    def _check_progress(self, job: Job) -> None:
        """Report the evaluations of a running trial, and stop it if it is unpromising."""
        number = _number(job.name)
        metrics = job.directory / "metrics.jsonl"
        size = metrics.stat().st_size if is_file(metrics) else 0
        if number in self._pruned or self._metrics_sizes.get(number) == size:
            return
        self._metrics_sizes[number] = size
        self._report(number, read_run(job.directory))
        if number in self._pruned:
            self._place.stop(job)

    def _report(self, number: int, run: Run) -> None:
        """Report the evaluations in order, up to the first at which the trial is unpromising.

        The last evaluation of a finished trial is not reported, since nothing is saved by pruning.
        """
        score = self._score
        if score is None or self._request.pruner == NO_PRUNER or number in self._pruned:
            return
        evaluations = evaluations_of(score, run)
        if run.state == "finished":
            evaluations = evaluations[:-1]
        for position in range(self._study.num_reported(number) + 1, len(evaluations) + 1):
            evaluation, value = evaluations[position - 1]
            if self._study.report(number, position, score.sign * value):
                median = self._study.median_of_others(number, position)
                comparison = ""
                if median is not None:
                    comparison = f", median of the others {score.sign * median:.4g}"
                self._pruned[number] = (
                    f"pruned at step {evaluation.step}: {score.text(value)}{comparison}"
                )
                return

    def _learn_score(self, run: Run) -> None:
        if self._score is None:
            self._score = score_of(self._request.metric, run)


def _name(number: int) -> str:
    return f"trial-{number:04d}"


def _number(name: str) -> int:
    return int(name.rpartition("-")[2])
