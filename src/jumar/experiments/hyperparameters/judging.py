"""The score of a trial from its run: its direction, its final value and intermediate ones."""

from dataclasses import dataclass

from jumar.experiments.run_reading import Evaluation, Run
from jumar.experiments.search_goal import LOSS, direction_of, final_value
from jumar.ground.errors import UserError

_DIRECTIONS = {"max": -1, "min": 1}


@dataclass(frozen=True, kw_only=True)
class Score:
    """A score by which trials are compared.

    Attributes:
        name: A score of the evaluation, or `loss`.
        sign: -1 if higher is better, 1 if lower.
        unit: Its unit, if known.
    """

    name: str
    sign: int
    unit: str = ""

    def text(self, value: float) -> str:
        """Return a value with name and unit."""
        return f"{self.name} {value:.4g}{f' {self.unit}' if self.unit else ''}"


def check_metric(metric: str) -> None:
    """Check that a metric has the form `NAME`, `NAME:max` or `NAME:min`.

    Raises:
        UserError: It is not of this form.
    """
    name, colon, direction = metric.partition(":")
    if metric and (not name or (colon and direction not in _DIRECTIONS)):
        raise UserError(
            f"'{metric}' is not a score",
            where="--metric",
            todo="For instance: --metric top1:max, --metric loss or --metric mse:min.",
        )


def score_of(metric: str, run: Run) -> Score | None:
    """Return the score that a search optimises, which depends on the results of a run.

    Args:
        metric: The value of --metric; empty for the recipe's main metric.
        run: A run that has ended.

    Returns:
        The score; None if the run has no results.

    Raises:
        UserError: The run has no such score, or its direction is unknown.
    """
    headline = run.results.headline
    if run.state != "finished":
        return None
    name, _, direction = metric.partition(":")
    name = name or (headline.name if headline is not None else LOSS)
    known = direction_of(name, run, where="--metric")
    if not direction and not known:
        raise UserError(
            f"it is unknown whether a higher '{name}' is better",
            where="--metric",
            todo=f"Name the direction: --metric {name}:max or --metric {name}:min.",
        )
    unit = headline.unit if headline is not None and headline.name == name else ""
    return Score(name=name, sign=_DIRECTIONS.get(direction, -known), unit=unit)


def evaluations_of(score: Score, run: Run) -> list[tuple[Evaluation, float]]:
    """Return the evaluations of a run with their scores; if there are averaged weights, only those.

    The results of a run also use the score of the averaged weights.
    """
    kinds = {evaluation.weights for evaluation in run.evaluations}
    kind = "ema" if "ema" in kinds else min(kinds, default="")
    return [
        (evaluation, value)
        for evaluation in run.evaluations
        if evaluation.weights == kind and (value := evaluation.metrics.get(score.name)) is not None
    ]


def cost_of(score: Score, run: Run) -> float | None:
    """Return the final score as a cost, of which less is better; None if there is none."""
    value = final_value(score.name, run)
    return None if value is None else score.sign * value
