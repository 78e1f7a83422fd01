"""The target of a precision setting: `top1=95`, `psnr=33.6`, `loss=0.3`."""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, stdev
from typing import Literal

from jumar.experiments.tolerance import between_accuracies, t_quantile
from jumar.ground.errors import UserError

Verdict = Literal["keeps", "misses", "unclear", "not available"]

_FORM = re.compile(r"([A-Za-z]\w*)=([-+]?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?)")


@dataclass(frozen=True, kw_only=True)
class Target:
    """A score and the value that it must reach.

    Attributes:
        metric: A score of the evaluation, or `loss`.
        value: The value.
    """

    metric: str
    value: float

    def __str__(self) -> str:
        return f"{self.metric}={self.value:g}"


@dataclass(frozen=True, kw_only=True)
class Judged:
    """The values of one setting compared with a target.

    Attributes:
        verdict: `keeps` or `misses` if the whole 95 % interval of the mean is on one side of the
            target, `unclear` if it contains the target, `not available` without a value.
        mean: The mean over seeds.
        half_width: Half the width of the interval; infinite if the spread is unknown.
        margin: Difference between the mean and the target; negative if the mean is worse.
    """

    verdict: Verdict
    mean: float | None = None
    half_width: float = math.inf
    margin: float = -math.inf


def parse_target(text: str) -> Target:
    """Parse a target of the form `NAME=VALUE`.

    Raises:
        UserError: It is not of this form.
    """
    match = _FORM.fullmatch(text.strip())
    if match is None:
        raise UserError(
            f"'{text}' is not a target",
            where="--target",
            todo="Give a score and the value to reach: top1=95, psnr=33.6 or loss=0.3.",
        )
    return Target(metric=match[1], value=float(match[2]))


def judge(
    values: Sequence[float],
    target: float,
    *,
    higher_is_better: bool,
    eval_samples: int | None = None,
) -> Judged:
    """Compare the values of some seeds with a target.

    Args:
        values: The values, one per seed.
        target: The value to reach.
        higher_is_better: The direction of the score.
        eval_samples: For an accuracy in percent, the number of evaluation samples, from which the
            error of a single value is computed.
    """
    if not values:
        return Judged(verdict="not available")
    mean = fmean(values)
    half_width = _half_width(values, eval_samples)
    margin = mean - target if higher_is_better else target - mean
    verdict: Verdict = "unclear"
    if margin >= half_width:
        verdict = "keeps"
    elif margin < -half_width:
        verdict = "misses"
    return Judged(verdict=verdict, mean=mean, half_width=half_width, margin=margin)


def _half_width(values: Sequence[float], eval_samples: int | None) -> float:
    """Return half the width of the 95 % interval of a mean over seeds."""
    if len(values) > 1:
        half = t_quantile(len(values) - 1) * stdev(values) / math.sqrt(len(values))
        # Even if all seeds agree, the accuracy is limited to one sample.
        return max(half, 100 / eval_samples if eval_samples else 0.0)
    if eval_samples:
        return between_accuracies(values[0], values[0], eval_samples).value / math.sqrt(2)
    return math.inf
