"""Precision, recall and F1 from counts."""

from typing import NamedTuple


class Rates(NamedTuple):
    """Ratios from 0 to 1; 0 if nothing was predicted or nothing is in the data."""

    precision: float
    recall: float
    f1: float

    @classmethod
    def of(cls, right: float, predicted: float, true: float) -> "Rates":
        """The rates of counts."""
        precision = right / predicted if predicted else 0.0
        recall = right / true if true else 0.0
        total = precision + recall
        return cls(precision, recall, 2 * precision * recall / total if total else 0.0)
