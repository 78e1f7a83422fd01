"""Precision, recall and F1 from counts."""

from typing import NamedTuple


class Rates(NamedTuple):
    """Precision, recall and F1 from 0 to 1; 0 where the divisor is 0."""

    precision: float
    recall: float
    f1: float

    @classmethod
    def of(cls, right: float, predicted: float, true: float) -> "Rates":
        """Compute the rates from the numbers of correct, predicted and true items."""
        precision = right / predicted if predicted else 0.0
        recall = right / true if true else 0.0
        total = precision + recall
        return cls(precision, recall, 2 * precision * recall / total if total else 0.0)
