"""How much worse a training may become: `loss=0.1%`, `top1=0.3`, `psnr=0.02`."""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import stdev

from jumar.experiments.run_reading import Run
from jumar.ground.errors import UserError, unknown_name

LOSS = "loss"
"""The loss of the evaluation if it has one; else the mean training loss since the last log line."""
DEVIATIONS = 2
_FORM = re.compile(r"([A-Za-z]\w*)=(\d+(?:\.\d+)?(?:[eE][-+]?\d+)?)(%?)")


@dataclass(frozen=True, kw_only=True)
class Goal:
    """A tolerance.

    Attributes:
        metric: A score of the evaluation, or `loss`.
        amount: How much worse it may be.
        is_percent: Whether that is a percentage of float32's value.
    """

    metric: str
    amount: float
    is_percent: bool

    def __str__(self) -> str:
        return f"{self.metric}={self.amount:g}{'%' if self.is_percent else ''}"

    def limits(self, reference: Sequence[float]) -> "Limits":
        """How much worse a value may be.

        Args:
            reference: The values of float32, one per seed.
        """
        asked = self.amount
        if self.is_percent:
            asked *= abs(sum(reference) / len(reference)) / 100
        return Limits(asked=asked, chance=max(asked, DEVIATIONS * spread(reference)))


@dataclass(frozen=True, kw_only=True)
class Limits:
    """How much worse values may be than float32's with the same seed.

    Attributes:
        asked: The user's tolerance.
        chance: The largest difference that may be chance in a single training: two standard
            deviations of float32's seeds, or `asked` if that is more.
    """

    asked: float
    chance: float

    def limit(self, differences: Sequence[float]) -> float:
        """How much worse the mean of several seeds may be.

        The same seed gives both trainings the same weights, batches and dropout, so their
        difference may vary far less than the seeds do; then it is not chance.

        Args:
            differences: How much worse each seed is.
        """
        finite = [each for each in differences if math.isfinite(each)]
        return max(self.asked, min(self.chance, DEVIATIONS * spread(finite)))

    def passes(self, differences: Sequence[float]) -> bool:
        """Whether the mean is within the limit."""
        return sum(differences) / len(differences) <= self.limit(differences)


@dataclass(frozen=True, kw_only=True)
class Scale:
    """The direction of a metric.

    Attributes:
        name: The metric.
        better: 1 if higher is better, -1 if lower; 0 if unknown, where any change is worse.
    """

    name: str
    better: int

    def worse(self, value: float | None, reference: float) -> float:
        """How much worse a value is than float32's; infinite for None."""
        if value is None or not math.isfinite(value):
            return math.inf
        change = value - reference
        return abs(change) if self.better == 0 else -self.better * change


def parse_goal(text: str) -> Goal:
    """Parse a tolerance of the form `NAME=VALUE` or `NAME=VALUE%`.

    Raises:
        UserError: It is not of this form.
    """
    match = _FORM.fullmatch(text.strip())
    if match is None:
        raise UserError(
            f"'{text}' is not a tolerance",
            where="--tolerance",
            todo="Give a score and how much worse it may be: loss=0.1%, top1=0.3 or psnr=0.02.",
        )
    return Goal(metric=match[1], amount=float(match[2]), is_percent=bool(match[3]))


def scale_of(goal: Goal, run: Run) -> Scale:
    """The direction of the goal's metric.

    Raises:
        UserError: The run has no such score.
    """
    name, headline = goal.metric, run.results.headline
    scores = (LOSS, *run.results.metrics)
    if name not in scores:
        raise unknown_name("score", name, scores, where="--tolerance")
    if headline is not None and headline.name == name:
        return Scale(name=name, better=1 if headline.higher_is_better else -1)
    return Scale(name=name, better=-1 if name.endswith(LOSS) else 0)


def value_of(goal: Goal, run: Run) -> float | None:
    """The goal's metric at the end of a run; None if it did not finish or is not a number."""
    return final_value(goal.metric, run)


def final_value(metric: str, run: Run) -> float | None:
    """A score at the end of a run; None if it did not finish or is not a number."""
    if run.state != "finished":
        return None
    if metric == LOSS:
        return run.results.metrics.get(LOSS, run.results.train_loss)
    return run.results.metrics.get(metric)


def spread(reference: Sequence[float]) -> float:
    """Standard deviation over seeds; 0 for a single one."""
    return stdev(reference) if len(reference) > 1 else 0.0
