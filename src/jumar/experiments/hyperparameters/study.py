"""The trials of a search, kept in the search's directory by Optuna's journal."""

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
    """Draws trials, judges them while they run, and records how they ended.

    A trial's value is a cost: a score to be maximised is stored negated, since the direction is
    known only when the first run has ended.

    Args:
        directory: The search's directory, locked by the caller.
        ranges: The search space.
        sampler: Name of the sampler.
        pruner: Name of the pruner.
        seed: Seed of all draws.

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
        self._distributions = {each.field: _distribution(each) for each in ranges}
        path = directory / FILE
        # The directory is locked by us, so an existing lock is that of a killed search.
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
                todo="Give another directory with --to; the runs in this one stay readable.",
            ) from None

    def offer(self, values: Mapping[str, Any]) -> None:
        """Use these values for the first trial."""
        if not self._study.get_trials(deepcopy=False):
            self._study.enqueue_trial(dict(values))

    @property
    def num_drawn(self) -> int:
        """Number of trials drawn so far."""
        return sum(each.state != TrialState.WAITING for each in self.trials())

    def trials(self) -> Sequence[FrozenTrial]:
        """All trials in order."""
        return self._study.get_trials(deepcopy=False)

    def unfinished(self) -> list[int]:
        """Numbers of the trials that an earlier call did not finish."""
        return [each.number for each in self.trials() if each.state == TrialState.RUNNING]

    def draw(self) -> int:
        """Draw the next trial and return its number."""
        self._study.sampler = create_sampler(self._sampler, self._seed, self.num_drawn)
        return self._study.ask(self._distributions).number

    def assignments(self, number: int) -> tuple[str, ...]:
        """A trial's values as `section.field=value`, in the order of the ranges."""
        values = self.trials()[number].params
        return tuple(
            f"{each.field}="
            + (
                values[each.field]
                if isinstance(each, Choices)
                else each.text_of(values[each.field])
            )
            for each in self._ranges
        )

    def num_reported(self, number: int) -> int:
        """How many evaluations of a trial have been reported."""
        return len(self.trials()[number].intermediate_values)

    def report(self, number: int, place: int, cost: float) -> bool:
        """Report an evaluation of a running trial.

        Args:
            number: The trial.
            place: 1 for its first evaluation, 2 for the second.
            cost: The score; lower is better.

        Returns:
            Whether the trial is hopeless.
        """
        trial = Trial(self._study, self.trials()[number]._trial_id)
        trial.report(cost, place)
        return trial.should_prune()

    def typical(self, number: int, place: int) -> float | None:
        """The median of the other trials at the same evaluation."""
        others = [
            cost
            for each in self.trials()
            if each.number != number and (cost := each.intermediate_values.get(place)) is not None
        ]
        return statistics.median(others) if others else None

    def finish(self, number: int, cost: float) -> None:
        """End a trial with its score."""
        self._study.tell(number, cost)

    def prune(self, number: int) -> None:
        """End a trial as worse than its last evaluation, or than any other if it has none."""
        self._study.tell(number, state=TrialState.PRUNED)

    def fail(self, number: int) -> None:
        """End a trial that gives no information about its settings."""
        self._study.tell(number, state=TrialState.FAIL)

    def best(self) -> tuple[int, float] | None:
        """Number and cost of the best finished trial; the earliest of several."""
        finished = [
            (each.value, each.number)
            for each in self.trials()
            if each.state == TrialState.COMPLETE and each.value is not None
        ]
        if not finished:
            return None
        cost, number = min(finished)
        return number, cost

    def count(self, state: str) -> int:
        """How many trials are `complete`, `pruned` or `fail`."""
        return sum(each.state == TrialState[state.upper()] for each in self.trials())


def _distribution(each: Range) -> BaseDistribution:
    if isinstance(each, Choices):
        return CategoricalDistribution(each.values)
    if each.is_whole:
        return IntDistribution(int(each.low), int(each.high), log=each.is_log)
    return FloatDistribution(each.low, each.high, log=each.is_log)
