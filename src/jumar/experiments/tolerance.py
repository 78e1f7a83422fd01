"""The tolerance within which two results count as equal, from the spread of equivalent runs."""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

_T_QUANTILES = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228)
"""Student's t, two-sided 95 %, for 1 to 10 degrees of freedom.

The standard deviation of two or three seeds is itself uncertain. With the factor of about 2 for
many degrees of freedom, one in three comparisons of equal modes would be reported as a difference.
"""

_NORMAL_95 = 1.96


@dataclass(frozen=True, kw_only=True)
class Tolerance:
    """The largest difference that counts as equal."""

    value: float

    def relation(self, other: float, baseline: float) -> str:
        """Return whether a value is `equal` to, `below` or `above` the baseline."""
        difference = other - baseline
        # The difference of two decimal numbers may be off by the last bit.
        rounding = 1e-9 * max(abs(other), abs(baseline))
        if abs(difference) <= self.value + rounding:
            return "equal"
        return "below" if difference < 0 else "above"


def t_quantile(degrees_of_freedom: int) -> float:
    """Return Student's t for a two-sided 95 % interval.

    Above 10 degrees of freedom it is the value for 10, which is at most 14 % too large.
    """
    return _T_QUANTILES[min(degrees_of_freedom, len(_T_QUANTILES)) - 1]


def between_seeds(baseline: Sequence[float], num_others: int) -> Tolerance:
    """Return half the 95 % interval of the difference of two means over seeds.

    Args:
        baseline: The value of each seed of the baseline, at least two.
        num_others: Number of seeds of the compared combination, assumed to have the same spread.
    """
    deviation = statistics.stdev(baseline)
    factor = t_quantile(len(baseline) - 1)
    return Tolerance(value=factor * deviation * math.sqrt(1 / len(baseline) + 1 / num_others))


def between_accuracies(baseline: float, other: float, num_samples: int) -> Tolerance:
    """Return half the 95 % interval of the difference of two accuracies.

    It follows from their binomial standard errors.

    Args:
        baseline: Accuracy of the baseline in percent.
        other: The compared accuracy in percent.
        num_samples: Number of evaluation samples of each.
    """
    errors = (_standard_error(value, num_samples) for value in (baseline, other))
    return Tolerance(value=_NORMAL_95 * math.hypot(*errors))


def between_losses(baseline: float, accuracies: tuple[float, float], num_samples: int) -> Tolerance:
    """Return the tolerance of a mean loss, from the relative error of the number of errors.

    Most of a classifier's mean loss is due to misclassified samples. If they all have the same loss
    and the others none, the mean loss is proportional to the number of errors and has the same
    relative standard error.

    Args:
        baseline: Mean loss of the baseline.
        accuracies: Accuracies of the baseline and the compared combination, in percent.
        num_samples: Number of evaluation samples of each.
    """
    errors = (
        _standard_error(accuracy, num_samples) / (100.0 - _adjusted(accuracy, num_samples))
        for accuracy in accuracies
    )
    return Tolerance(value=_NORMAL_95 * abs(baseline) * math.hypot(*errors))


def _standard_error(accuracy: float, num_samples: int) -> float:
    share = _adjusted(accuracy, num_samples) / 100
    return 100 * math.sqrt(share * (1 - share) / num_samples)


def _adjusted(accuracy: float, num_samples: int) -> float:
    """Return the accuracy after adding two correct and two wrong samples (Agresti, Coull 1998).

    Without them, 100 % on ten samples would have a standard error of 0.
    """
    return 100 * (accuracy / 100 * num_samples + 2) / (num_samples + 4)
