"""The tolerance of a search: `loss=0.1%`, `top1=0.3`, `psnr=0.02`."""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, stdev

from jumar.experiments.run_reading import Run
from jumar.ground.errors import UserError, unknown_name

LOSS = "loss"
"""The evaluation loss if there is one, otherwise the mean training loss since the last log line."""
DEVIATIONS = 2
_FORM = re.compile(r"([A-Za-z]\w*)=(\d+(?:\.\d+)?(?:[eE][-+]?\d+)?)(%?)")


@dataclass(frozen=True, kw_only=True)
class Goal:
    """The largest accepted degradation of a metric.

    Attributes:
        metric: A score of the evaluation, or `loss`.
        amount: The largest degradation.
        is_percent: Whether it is a percentage of float32's value.
    """

    metric: str
    amount: float
    is_percent: bool

    def __str__(self) -> str:
        return f"{self.metric}={self.amount:g}{'%' if self.is_percent else ''}"

    def limits(self, reference: Sequence[float]) -> "Limits":
        """Return the limits for runs in low precision.

        Args:
            reference: The values of float32, one per seed.
        """
        requested = self.amount
        if self.is_percent:
            requested *= abs(fmean(reference)) / 100
        return Limits(requested=requested, chance=max(requested, DEVIATIONS * spread(reference)))


@dataclass(frozen=True, kw_only=True)
class Limits:
    """The largest accepted degradations against float32 with the same seed.

    Attributes:
        requested: The user's tolerance.
        chance: The largest degradation that may be chance in a single run: two standard
            deviations of float32's seeds, or `requested` if that is more.
    """

    requested: float
    chance: float

    def limit(self, differences: Sequence[float]) -> float:
        """Return the largest accepted mean degradation of several seeds.

        With the same seed both runs have the same initial weights, batches and dropout, so
        their difference may vary far less than the seeds; then it is not chance.

        Args:
            differences: The degradation of each seed.
        """
        finite = list(filter(math.isfinite, differences))
        return max(self.requested, min(self.chance, DEVIATIONS * spread(finite)))

    def passes(self, differences: Sequence[float]) -> bool:
        """Return whether the mean is within the limit."""
        return sum(differences) / len(differences) <= self.limit(differences)


@dataclass(frozen=True, kw_only=True)
class Scale:
    """The direction of a metric.

    Attributes:
        better: 1 if higher is better, -1 if lower; 0 if unknown, so that any change is worse.
    """

    better: int

    def worse(self, value: float | None, reference: float) -> float:
        """Return the degradation of a value against float32's; infinite if it is not finite."""
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
            todo="Give a score and its largest degradation: loss=0.1%, top1=0.3 or psnr=0.02.",
        )
    return Goal(metric=match[1], amount=float(match[2]), is_percent=bool(match[3]))


def direction_of(name: str, run: Run, *, where: str) -> int:
    """Return 1 if a higher score is better, -1 if a lower one; 0 if that is unknown.

    Args:
        name: The name of the score.
        run: A run with scores.
        where: The option with the name.

    Raises:
        UserError: The run has no such score.
    """
    headline, scores = run.results.headline, (LOSS, *run.results.metrics)
    if name not in scores:
        raise unknown_name("score", name, scores, where=where)
    if headline is not None and headline.name == name:
        return 1 if headline.higher_is_better else -1
    return -1 if name.endswith(LOSS) else 0


def final_value(metric: str, run: Run) -> float | None:
    """Return the final score of a run; None if it did not finish or is not a number."""
    if run.state != "finished":
        return None
    if metric == LOSS:
        return run.results.metrics.get(LOSS, run.results.train_loss)
    return run.results.metrics.get(metric)


def spread(reference: Sequence[float]) -> float:
    """Return the standard deviation over seeds; 0 for a single one."""
    return stdev(reference) if len(reference) > 1 else 0.0
