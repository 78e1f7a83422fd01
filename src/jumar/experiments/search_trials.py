"""The training runs of a search, each in its own process; finished ones are not repeated."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any

from jumar.experiments.placing.contract import (
    OUTPUT,
    Ended,
    ExperimentStopped,
    Job,
    Place,
    run_jobs,
)
from jumar.experiments.run_reading import Run, read_run
from jumar.experiments.sweep_plan import exit_text
from jumar.ground.errors import UserError
from jumar.ground.files import write_text
from jumar.ground.paths import is_file, make_folder, read_text, unreadable
from jumar.precision.searching.candidates import Candidate, mixlist_of
from jumar.precision.searching.smallest import NoTrialsLeft
from jumar.training.run_directory import RunDirectory, read_json, write_json


@dataclass(frozen=True, kw_only=True)
class Trial:
    """What a training run of a search computes in float32, and its seed.

    Attributes:
        kept: The op types that stay in float32; None if all of them do.
        seed: The seed of the run, in place of the recipe's.
        layers: The layers that stay in float32 as well, with all their ops.
    """

    kept: tuple[str, ...] | None
    seed: int
    layers: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The name of its run directory."""
        if self.kept is None:
            return f"float32-seed-{self.seed}"
        names = [*sorted(self.kept), *([""] if self.layers else []), *sorted(self.layers)]
        digest = sha256("\n".join(names).encode()).hexdigest()[:8]
        return f"keep-{len(self.kept)}-{digest}-seed-{self.seed}"


@dataclass(kw_only=True)
class Trials:
    """Trains the trials of a search, up to a limit.

    Attributes:
        directory: Directory for runs and op lists.
        candidates: All op types that may be computed in low precision.
        recorded: Returns the content of `recipe.json` for the path of an op list (None for
            float32), a seed and the layers that stay in float32.
        command: Returns the command that trains a run directory on a device.
        max_trainings: Maximum number of runs.
        place: The place where they run.
        finished: The runs so far, in order.
    """

    directory: Path
    candidates: Sequence[Candidate]
    recorded: Callable[[Path | None, int, Sequence[str]], Mapping[str, Any]]
    command: Callable[[Path, str], Sequence[str]]
    max_trainings: int
    place: Place
    finished: dict[Trial, Run] = field(default_factory=dict[Trial, Run])

    def train(self, trials: Sequence[Trial]) -> list[Run]:
        """Train those that are not finished yet, and return all runs.

        Raises:
            NoTrialsLeft: They exceed the limit.
            ExperimentStopped: A run was stopped; it can be resumed.
            UserError: A run was aborted, or its directory has other settings.
        """
        new_trials = [trial for trial in trials if trial not in self.finished]
        if len(self.finished) + len(new_trials) > self.max_trainings:
            raise NoTrialsLeft
        for trial in new_trials:
            self._prepare(trial)
        pending = [trial for trial in new_trials if not self._has_ended(trial)]
        ends: dict[str, Ended] = {}

        def keep(end: Ended) -> None:
            ends[end.job.name] = end

        with self.place:
            stop_signal = run_jobs(self.place, [self._job(trial) for trial in pending], end=keep)
        if stop_signal:
            raise ExperimentStopped(stop_signal)
        for trial in pending:
            self._check(trial, ends[trial.name])
        self.finished.update({trial: read_run(self._path(trial)) for trial in new_trials})
        return [self.finished[trial] for trial in trials]

    def _path(self, trial: Trial) -> Path:
        return self.directory / trial.name

    def _job(self, trial: Trial) -> Job:
        path = self._path(trial)
        return Job(directory=path, command=partial(self.command, path), output=path / OUTPUT)

    def _prepare(self, trial: Trial) -> None:
        """Write the op list and the recipe.

        Raises:
            UserError: The run exists with other settings.
        """
        path = self._path(trial)
        op_list = None
        if trial.kept is not None:
            op_list = path / "ops_info.json"
            content = mixlist_of(self.candidates, trial.kept)
            make_folder(path)
            write_text(op_list, json.dumps(content, indent=2) + "\n")
        recipe = self.recorded(op_list, trial.seed, trial.layers)
        run = RunDirectory(path)
        if run.exists and read_json(run.recipe) != json.loads(json.dumps(recipe)):
            raise UserError(
                "this run has other settings",
                where=str(path),
                todo="Choose another folder with --runs, or delete this one to search again.",
            )
        make_folder(path)
        write_json(run.recipe, recipe)

    def _has_ended(self, trial: Trial) -> bool:
        """Return whether training again would have the same outcome."""
        run = read_run(self._path(trial))
        return run.state == "finished" or (
            run.state == "failed" and run.results.failure_step is not None
        )

    def _check(self, trial: Trial, ended: Ended) -> None:
        """Check that a run was not aborted.

        Raises:
            UserError: It was aborted.
        """
        if self._has_ended(trial):
            return
        output = self._path(trial) / OUTPUT
        output_end = _last_lines(output) if is_file(output) else ""
        reason = ended.note or exit_text(ended.code) or f"exit code {ended.code}"
        raise UserError(
            f"a run was aborted: {reason}",
            where=str(self._path(trial)),
            todo=f"Its last output:\n{output_end}" if output_end else "",
        )


def _last_lines(path: Path) -> str:
    try:
        lines = read_text(path).strip().splitlines()[-5:]
    except UserError as error:
        return str(unreadable(path, error))
    return "\n".join(f"    {line}" for line in lines)
