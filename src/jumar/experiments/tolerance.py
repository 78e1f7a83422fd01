"""When two results count as equal: the spread of runs that differ in nothing relevant."""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

_T_QUANTILES = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228)
"""Student's t, two-sided 95 %, for 1 to 10 degrees of freedom.

The standard deviation of two or three seeds is itself very uncertain; with the factor of 2 for many
degrees of freedom, one in three comparisons of equal modes would be reported as a difference.
"""

_NORMAL_95 = 1.96


@dataclass(frozen=True, kw_only=True)
class Tolerance:
    """The largest difference that still counts as equal."""

    value: float

    def relation(self, other: float, baseline: float) -> str:
        """`equal`, `below` or `above`: the other value relative to the baseline."""
        difference = other - baseline
        # The difference of two printed decimals may be off by the last bit.
        slack = 1e-9 * max(abs(other), abs(baseline))
        if abs(difference) <= self.value + slack:
            return "equal"
        return "below" if difference < 0 else "above"


def t_quantile(degrees_of_freedom: int) -> float:
    """Student's t for a two-sided 95 % interval; above 10 degrees of freedom the value for 10,
    which is at most 14 % too wide.
    """
    return _T_QUANTILES[min(degrees_of_freedom, len(_T_QUANTILES)) - 1]


def between_seeds(baseline: Sequence[float], num_others: int) -> Tolerance:
    """The 95 % interval of the difference of two means over seeds.

    Args:
        baseline: The value of each seed of the baseline, at least two.
        num_others: Seeds of the compared combination, assumed to spread like the baseline's.
    """
    deviation = statistics.stdev(baseline)
    factor = t_quantile(len(baseline) - 1)
    return Tolerance(value=factor * deviation * math.sqrt(1 / len(baseline) + 1 / num_others))


def between_accuracies(baseline: float, other: float, num_samples: int) -> Tolerance:
    """The 95 % interval of the difference of two accuracies from their binomial standard errors.

    Args:
        baseline: Accuracy in percent.
        other: Accuracy in percent.
        num_samples: Evaluation samples behind each of the two values.
    """
    errors = (_standard_error(value, num_samples) for value in (baseline, other))
    return Tolerance(value=_NORMAL_95 * math.hypot(*errors))


def between_losses(baseline: float, accuracies: tuple[float, float], num_samples: int) -> Tolerance:
    """The tolerance of a mean loss, derived from the relative error of the error count.

    A classifier's mean loss comes mostly from the samples it gets wrong. If each of those costs the
    same and the others nothing, the loss is proportional to the error count and has its relative
    standard error.

    Args:
        baseline: Mean loss of the baseline.
        accuracies: Accuracies of the baseline and the compared combination, in percent.
        num_samples: Evaluation samples behind each of the two values.
    """
    errors = (
        _standard_error(accuracy, num_samples) / (100.0 - _moderated(accuracy, num_samples))
        for accuracy in accuracies
    )
    return Tolerance(value=_NORMAL_95 * abs(baseline) * math.hypot(*errors))


def _standard_error(accuracy: float, num_samples: int) -> float:
    share = _moderated(accuracy, num_samples) / 100
    return 100 * math.sqrt(share * (1 - share) / num_samples)


def _moderated(accuracy: float, num_samples: int) -> float:
    """The accuracy with two correct and two wrong samples added (Agresti and Coull, 1998): without
    them, 100 % on ten samples would have no error at all.
    """
    return 100 * (accuracy / 100 * num_samples + 2) / (num_samples + 4)
