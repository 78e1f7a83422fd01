"""Precision, recall and F1 of single labels, as in `tf_metrics.py` of Ascend's Bert-base.

They score tokens, not entities: an entity of four characters counts four times, and one of which
three are right counts as three right ones. `entities.py` scores entities.
"""

from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from jumar.tasks.scoring.rates import Rates

Average = Literal["micro", "macro", "weighted"]


def label_rates(
    confusion: NDArray[np.float64], positives: Sequence[int], average: Average = "micro"
) -> Rates:
    """The rates of a confusion matrix.

    Args:
        confusion: [true, predicted], counts.
        positives: The labels that count; a right answer of any other label does not.
        average: `micro` for all of them together, `macro` for the mean of their rates, `weighted`
            for the mean by how often each is in the data.
    """
    labels = list(positives)
    right = confusion.diagonal()[labels]
    predicted, true = confusion.sum(axis=0)[labels], confusion.sum(axis=1)[labels]
    if average == "micro":
        return Rates.of(right.sum(), predicted.sum(), true.sum())
    rates = np.array([Rates.of(*counts) for counts in zip(right, predicted, true, strict=True)])
    weights = np.ones(len(labels)) if average == "macro" else true
    if not weights.sum():
        return Rates(0.0, 0.0, 0.0)
    return Rates(*np.average(rates, axis=0, weights=weights).tolist())
