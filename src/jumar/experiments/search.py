"""Find the smallest set of op types that must stay in float32, by short training runs."""

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import fmean
from typing import Any

from jumar.experiments.placing.contract import Place
from jumar.experiments.run_reading import Run
from jumar.experiments.search_goal import (
    Goal,
    Limits,
    Scale,
    direction_of,
    final_value,
    spread,
)
from jumar.experiments.search_trials import Trial, Trials
from jumar.ground.errors import UserError
from jumar.ground.files import write_text
from jumar.ground.paths import check_no_file, is_file, is_folder, make_writable
from jumar.ground.text import counted
from jumar.precision.searching.candidates import mixlist_of
from jumar.precision.searching.effects import Effect, effect_from_json
from jumar.precision.searching.smallest import NoTrialsLeft, smallest_set
from jumar.training.run_directory import RunDirectory, read_json, write_json

FILE = "search.json"


@dataclass(frozen=True, kw_only=True)
class SearchRequest:
    """The options of a search.

    Attributes:
        goal: The tolerance.
        to: Path of the op list.
        directory: Directory for the training runs.
        length: Duration of a run, as text.
        first_seed: The recipe's seed.
        num_seeds: Number of seeds for float32 and the result.
        max_trainings: Maximum number of runs.
        refines: Whether to search for layers that can replace a kept op type.
        identity: Settings that identify the search; a directory with other ones is rejected.
    """

    goal: Goal
    to: Path
    directory: Path
    length: str
    first_seed: int
    num_seeds: int
    max_trainings: int
    refines: bool
    identity: Mapping[str, Any]


def layers_path(op_list: Path) -> Path:
    """Return the path of the op list to use together with layers in float32."""
    return op_list.with_name(f"{op_list.stem}-layers.json")


@dataclass(frozen=True, kw_only=True)
class Judged:
    """A run in low precision.

    Attributes:
        trial: The op types and layers in float32, and the seed.
        value: The final metric; None if the run did not finish.
        worse: Degradation of the metric against float32 with the same seed.
    """

    trial: Trial
    value: float | None
    worse: float


@dataclass(frozen=True, kw_only=True)
class Found:
    """The result of a search.

    Attributes:
        goal: The tolerance.
        limit: The largest accepted degradation of the metric.
        reference: float32's values, one per seed.
        effects: The effect of each op type, in the order of the ranking.
        kept: The op types that stay in float32.
        is_minimal: Whether omitting any one of them was tried and failed.
        is_confirmed: Whether the mean over all seeds is within the limit.
        worse: Mean degradation of the metric against float32; infinite if it was not trained.
        layered: The op types and layers that suffice, if layers were searched and some can replace
            an op type.
        judged: The runs in low precision, in order.
        num_trainings: Number of runs.
        to: The op list.
    """

    goal: Goal
    limit: float
    reference: Sequence[float]
    effects: Sequence[Effect]
    kept: tuple[str, ...]
    is_minimal: bool
    is_confirmed: bool
    worse: float
    layered: tuple[tuple[str, ...], tuple[str, ...]] | None
    judged: Sequence[Judged]
    num_trainings: int
    to: Path

    def worse_without(self, name: str) -> float | None:
        """Return the degradation of the metric without a kept op type; None if not tried."""
        rest = tuple(kept for kept in self.kept if kept != name)
        degradations = (
            item.worse for item in self.judged if item.trial.kept == rest and not item.trial.layers
        )
        return next(degradations, None)


class Search:
    """A search in a directory; finished runs are not repeated.

    Args:
        request: The options of the search.
        measure: Ranks the op types.
        recorded: See `Trials`.
        command: See `Trials`.
        open_place: Opens the place that carries out the runs.
        say: Prints a line.
    """

    def __init__(
        self,
        request: SearchRequest,
        *,
        measure: Callable[[], Sequence[Effect]],
        recorded: Callable[[Path | None, int, Sequence[str]], Mapping[str, Any]],
        command: Callable[[Path, str], Sequence[str]],
        open_place: Callable[[], Place],
        say: Callable[[str], None],
    ) -> None:
        self._request, self._measure, self._say = request, measure, say
        self._recorded, self._command, self._open_place = recorded, command, open_place
        self._judged: dict[Trial, Judged] = {}
        self._has_passed = False
        self._seeds = range(request.first_seed, request.first_seed + request.num_seeds)

    def run(self) -> Found:
        """Search, and write the op list.

        Raises:
            UserError: The directory has other content, or a run was aborted.
            ExperimentStopped: A run was stopped.
        """
        request = self._request
        self._check_directory()
        if is_folder(request.to):
            raise UserError("is a folder", where=str(request.to), todo="Give a file with --to.")
        make_writable(request.to.absolute().parent)
        with RunDirectory(request.directory).locked():
            rows = self._ranking()
            self._trials = Trials(
                directory=request.directory,
                candidates=[row.candidate for row in rows],
                recorded=self._recorded,
                command=self._command,
                max_trainings=request.max_trainings,
                place=self._open_place(),
            )
            self._train_reference()
            names = [row.candidate.name for row in rows]
            sure = [row.candidate.name for row in rows if row.is_out_of_range]
            smallest = smallest_set(names, sure, self._passes)
            kept, worse = self._confirmed(names, smallest.kept)
            self._write_list(request.to, kept)
            layered = self._layered(rows, kept) if request.refines else None
            if layered is not None:
                self._write_list(layers_path(request.to), layered[0])
        return Found(
            goal=request.goal,
            limit=self._limits.limit(self._differences(kept)),
            reference=self._reference,
            effects=rows,
            kept=kept,
            is_minimal=smallest.is_minimal and kept == smallest.kept,
            is_confirmed=worse < math.inf and self._limits.passes(self._differences(kept)),
            worse=worse,
            layered=layered,
            judged=tuple(self._judged.values()),
            num_trainings=len(self._trials.finished),
            to=request.to,
        )

    def _write_list(self, path: Path, kept: Sequence[str]) -> None:
        write_text(path, json.dumps(mixlist_of(self._trials.candidates, kept), indent=2) + "\n")

    def _check_directory(self) -> None:
        """Check that the directory is empty or belongs to this search.

        Raises:
            UserError: It has other content, or there are too few runs for a result.
        """
        request = self._request
        if request.num_seeds < 1:
            raise UserError(
                f"cannot be {request.num_seeds}", where="--seeds", todo="Allowed: 1 or more."
            )
        min_trainings = request.num_seeds * 2 + 1
        if request.max_trainings < min_trainings:
            raise UserError(
                f"too few runs ({request.max_trainings}) for "
                f"{counted(request.num_seeds, 'seed')} in float32 and in low precision",
                where="--trainings",
                todo=f"Allow {min_trainings} or more, or fewer --seeds.",
            )
        directory = request.directory
        check_no_file(directory, "--runs")
        file = directory / FILE
        if not is_file(file):
            # A search that was killed early leaves a lock behind, which is a hidden file.
            if is_folder(directory) and any(path.name[0] != "." for path in directory.iterdir()):
                raise UserError(
                    "it contains files that are not from a search",
                    where=str(directory),
                    todo="Choose another folder with --runs.",
                )
            return
        stored_identity = read_json(file).get("identity")
        if stored_identity != json.loads(json.dumps(request.identity)):
            raise UserError(
                "it contains a search with another recipe or other settings",
                where=str(directory),
                todo="Choose another folder with --runs, or repeat the command of that search.",
            )

    def _ranking(self) -> Sequence[Effect]:
        """Return the ranked op types, measured once and then stored in the directory."""
        file = self._request.directory / FILE
        if is_file(file):
            return [effect_from_json(row) for row in read_json(file)["effects"]]
        self._say("ranking op types by passes of one step")
        rows = self._measure()
        if not rows:
            raise UserError(
                "no op of a step would be computed in low precision", where="precision.mode"
            )
        content = {"identity": self._request.identity, "effects": [asdict(row) for row in rows]}
        write_json(file, content)
        return rows

    def _train_reference(self) -> None:
        goal = self._request.goal
        self._say(
            f"at most {counted(self._request.max_trainings, 'run')} of "
            f"{self._request.length}, each with its output in {self._request.directory}"
        )
        runs = self._train([Trial(kept=None, seed=seed) for seed in self._seeds])
        self._scale: Scale = Scale(better=direction_of(goal.metric, runs[0], where="--tolerance"))
        values = [final_value(goal.metric, run) for run in runs]
        for run, value in zip(runs, values, strict=True):
            if value is None:
                raise UserError(
                    f"the run in float32 has no {goal.metric}: {run.reason or run.state}",
                    where=str(run.directory),
                    todo="Choose a recipe that trains in float32.",
                )
        self._reference = [value for value in values if value is not None]
        self._limits: Limits = goal.limits(self._reference)
        values_text = ", ".join(f"{value:.6g}" for value in self._reference)
        self._say(f"float32: {goal.metric} {values_text}")
        if self._limits.chance > self._limits.requested:
            self._say(
                f"its seeds differ by {spread(self._reference):.3g} (standard deviation): "
                f"{self._limits.requested:.3g} to {self._limits.chance:.3g} worse may be chance, "
                "so all seeds decide"
            )

    def _train(self, trials: Sequence[Trial]) -> list[Run]:
        new_trials = [trial for trial in trials if trial not in self._trials.finished]
        runs = self._trials.train(trials)
        for trial in new_trials:
            run = self._trials.finished[trial]
            if trial.kept is not None:
                self._judged[trial] = self._judgement(trial, run)
                self._say(self._line(self._judged[trial], run))
        return runs

    def _judgement(self, trial: Trial, run: Run) -> Judged:
        value = final_value(self._request.goal.metric, run)
        reference = self._reference[self._seeds.index(trial.seed)]
        return Judged(trial=trial, value=value, worse=self._scale.worse(value, reference))

    def _line(self, judged: Judged, run: Run) -> str:
        trial, metric = judged.trial, self._request.goal.metric
        kept_text = ", ".join((*(trial.kept or ()), *trial.layers)) or "nothing"
        number = len(self._seeds) + len(self._judged)
        start = f"run {number}, seed {trial.seed}, {kept_text} in float32: "
        if judged.value is None:
            return f"{start}{run.reason or f'no {metric}'}"
        return f"{start}{metric} {judged.value:.6g}, {judged.worse:.3g} worse"

    def _passes(self, kept: Sequence[str], layers: Sequence[str] = ()) -> bool:
        """Return whether a set passes with the first seed; reserves runs to confirm it."""
        trial = Trial(kept=tuple(kept), seed=self._seeds[0], layers=tuple(layers))
        # If this set fails, the result is the smallest one that passed, already trained with one
        # seed, or otherwise all op types, not trained yet.
        num_reserved = len(self._seeds) - self._has_passed
        is_new = trial not in self._trials.finished
        if is_new and len(self._trials.finished) + 1 + num_reserved > self._request.max_trainings:
            raise NoTrialsLeft
        self._train([trial])
        worse = self._judged[trial].worse
        passes = worse <= self._limits.requested
        if self._limits.requested < worse <= self._limits.chance:
            trials = [replace(trial, seed=seed) for seed in self._seeds]
            num_new = sum(trial not in self._trials.finished for trial in trials)
            if len(self._trials.finished) + num_new + num_reserved > self._request.max_trainings:
                raise NoTrialsLeft
            self._train(trials)
            passes = self._limits.passes([self._judged[trial].worse for trial in trials])
        self._has_passed |= passes
        return passes

    def _confirmed(
        self, names: Sequence[str], kept: tuple[str, ...]
    ) -> tuple[tuple[str, ...], float]:
        """Train with the other seeds too; while the mean fails, keep one more op type."""
        while True:
            trials = [Trial(kept=kept, seed=seed) for seed in self._seeds]
            try:
                self._train(trials)
            except NoTrialsLeft:
                return kept, self._mean(trials)
            worse = self._mean(trials)
            if self._limits.passes(self._differences(kept)) or len(kept) == len(names):
                return kept, worse
            extra = next(name for name in names if name not in kept)
            self._say(f"over all seeds {worse:.3g} worse: also keeping {extra} in float32")
            kept = tuple(name for name in names if name in (*kept, extra))

    def _layered(
        self, rows: Sequence[Effect], kept: tuple[str, ...]
    ) -> tuple[tuple[str, ...], tuple[str, ...]] | None:
        """Replace kept op types by layers, one type at a time."""
        layers: tuple[str, ...] = ()
        types = kept
        for row in rows:
            name, layer_names = row.candidate.name, [layer.layer for layer in row.layers]
            if name not in kept or len(layer_names) < 2 or "" in layer_names:
                continue
            rest = tuple(kept_type for kept_type in types if kept_type != name)

            def passes(
                chosen: Sequence[str],
                rest: tuple[str, ...] = rest,
                before: tuple[str, ...] = layers,
            ) -> bool:
                return self._passes(rest, (*before, *chosen))

            smallest = smallest_set(layer_names, (), passes)
            if len(smallest.kept) < len(layer_names):
                types, layers = rest, (*layers, *smallest.kept)
        if not layers:
            return None
        trials = [Trial(kept=types, seed=seed, layers=layers) for seed in self._seeds]
        try:
            self._train(trials)
        except NoTrialsLeft:
            return None
        differences = [self._judged[trial].worse for trial in trials]
        return (types, layers) if self._limits.passes(differences) else None

    def _differences(self, kept: tuple[str, ...]) -> list[float]:
        """Return the degradation of the metric of each trained seed."""
        trials = [Trial(kept=kept, seed=seed) for seed in self._seeds]
        return [self._judged[trial].worse for trial in trials if trial in self._judged]

    def _mean(self, trials: Sequence[Trial]) -> float:
        """Return the mean degradation of the metric; infinite if a run is missing."""
        if not all(trial in self._judged for trial in trials):
            return math.inf
        return fmean(self._judged[trial].worse for trial in trials)
