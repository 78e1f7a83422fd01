"""Precision, recall and F1 of single labels, as in `tf_metrics.py` of Ascend's Bert-base.

They score tokens, not entities: an entity of four characters counts four times, and if three are
right, it counts as three right predictions. `entities.py` scores entities.
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
    """Return the rates of a confusion matrix.

    Args:
        confusion: Counts [true, predicted].
        positives: The labels to score; correct predictions of other labels do not count.
        average: `micro` pools the counts of the labels, `macro` is the mean of their rates,
            `weighted` weights the mean by the frequency of each label in the data.
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
