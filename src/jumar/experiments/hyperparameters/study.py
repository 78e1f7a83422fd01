"""The trials of a search, stored in Optuna's journal in the search's directory."""

import statistics
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import optuna
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)
from optuna.exceptions import ExperimentalWarning
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend
from optuna.trial import FrozenTrial, Trial, TrialState

from jumar.experiments.hyperparameters.methods import (
    create_pruner,
    create_sampler,
    quiet_optuna,
)
from jumar.experiments.hyperparameters.ranges import Choices, Range
from jumar.ground.errors import UserError

FILE = "study.journal"
_NAME = "jumar"


class Study:
    """Proposes trials, compares them while they run, and records their outcomes.

    A trial's value is a cost: a score to be maximised is stored negated, since the direction is
    only known after the first run.

    Args:
        directory: The search's directory, locked by the caller.
        ranges: The search space.
        sampler: Name of the sampler.
        pruner: Name of the pruner.
        seed: Seed of the sampler.

    Raises:
        UserError: The journal is damaged.
    """

    def __init__(
        self,
        directory: Path,
        ranges: Sequence[Range],
        *,
        sampler: str,
        pruner: str,
        seed: int,
    ) -> None:
        quiet_optuna()
        self._sampler, self._seed = sampler, seed
        self._ranges = ranges
        self._distributions = {item.field: _distribution(item) for item in ranges}
        path = directory / FILE
        # The directory is locked by us, so an existing lock of the journal is from a killed search.
        for lock in directory.glob(f"{FILE}.lock*"):
            lock.unlink(missing_ok=True)
        warnings.simplefilter("ignore", ExperimentalWarning)
        try:
            self._study = optuna.create_study(
                storage=JournalStorage(JournalFileBackend(str(path))),
                study_name=_NAME,
                direction="minimize",
                pruner=create_pruner(pruner),
                load_if_exists=True,
            )
            self._study.get_trials(deepcopy=False)
        except (ValueError, KeyError, TypeError, AssertionError) as error:
            raise UserError(
                f"is damaged: {type(error).__name__} {error}",
                where=str(path),
                todo="Choose another directory with --to; the runs in this one remain readable.",
            ) from None

    def offer(self, values: Mapping[str, Any]) -> None:
        """Use these values for the first trial."""
        if not self._study.get_trials(deepcopy=False):
            self._study.enqueue_trial(dict(values))

    @property
    def num_drawn(self) -> int:
        """Number of trials proposed so far."""
        return sum(trial.state != TrialState.WAITING for trial in self.trials())

    def trials(self) -> Sequence[FrozenTrial]:
        """Return all trials in order."""
        return self._study.get_trials(deepcopy=False)

    def unfinished(self) -> list[int]:
        """Return the numbers of the trials that an earlier call did not finish."""
        return [trial.number for trial in self.trials() if trial.state == TrialState.RUNNING]

    def draw(self) -> int:
        """Propose the next trial and return its number."""
        self._study.sampler = create_sampler(self._sampler, self._seed, self.num_drawn)
        return self._study.ask(self._distributions).number

    def assignments(self, number: int) -> tuple[str, ...]:
        """Return a trial's values as `section.field=value`, in the order of the ranges."""
        values = self.trials()[number].params
        return tuple(
            f"{item.field}="
            + (
                values[item.field]
                if isinstance(item, Choices)
                else item.text_of(values[item.field])
            )
            for item in self._ranges
        )

    def num_reported(self, number: int) -> int:
        """Return how many evaluations of a trial have been reported."""
        return len(self.trials()[number].intermediate_values)

    def report(self, number: int, position: int, cost: float) -> bool:
        """Report an evaluation of a running trial.

        Args:
            number: The trial.
            position: 1 for its first evaluation, 2 for the second.
            cost: The score; lower is better.

        Returns:
            Whether the trial is unpromising.
        """
        trial = Trial(self._study, self.trials()[number]._trial_id)
        trial.report(cost, position)
        return trial.should_prune()

    def median_of_others(self, number: int, position: int) -> float | None:
        """Return the median of the other trials at the same evaluation; None if there are none."""
        others = [
            cost
            for trial in self.trials()
            if trial.number != number
            and (cost := trial.intermediate_values.get(position)) is not None
        ]
        return statistics.median(others) if others else None

    def finish(self, number: int, cost: float) -> None:
        """End a trial with its score."""
        self._study.tell(number, cost)

    def prune(self, number: int) -> None:
        """End a trial early; without an evaluation, it ranks below all others."""
        self._study.tell(number, state=TrialState.PRUNED)

    def fail(self, number: int) -> None:
        """End a trial whose outcome is no information about its settings."""
        self._study.tell(number, state=TrialState.FAIL)

    def best(self) -> tuple[int, float] | None:
        """Return the number and cost of the best finished trial; the first of equal ones."""
        finished = [
            (trial.number, trial.value)
            for trial in self.trials()
            if trial.state == TrialState.COMPLETE and trial.value is not None
        ]
        return min(finished, key=lambda trial: trial[1], default=None)

    def count(self, state: str) -> int:
        """Return the number of trials that are `complete`, `pruned` or `fail`."""
        return sum(trial.state == TrialState[state.upper()] for trial in self.trials())


def _distribution(item: Range) -> BaseDistribution:
    if isinstance(item, Choices):
        return CategoricalDistribution(item.values)
    if item.is_whole:
        return IntDistribution(int(item.low), int(item.high), log=item.is_log)
    return FloatDistribution(item.low, item.high, log=item.is_log)
