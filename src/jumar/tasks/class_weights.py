"""Class weights in a classification loss: each sample's loss is multiplied by a class weight."""

import csv
import math
from collections.abc import Callable, Mapping, Sequence
from io import StringIO
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from jumar.data.samples import Notice
from jumar.ground.errors import UserError, unknown_name
from jumar.ground.json_text import parse_json
from jumar.ground.paths import expanded, is_file, missing, read_text
from jumar.ground.text import counted

BALANCED = "balanced"
FIELD = "loss.class_weights"
MEANING = (
    "Class weights: balanced (inverse to the frequency in the training set), NAME=WEIGHT,... with "
    "1 for all others, or a CSV or JSON file with names and weights; empty: equal weights."
)
_SHOWN = 8


def class_weights(
    assignments: Sequence[str],
    names: Sequence[str],
    count: Callable[[], NDArray[np.int64]],
    notice: Notice,
    *,
    sampling: str = "natural",
) -> Tensor | None:
    """Return the weight of each class, float32 [classes]; None for equal weights.

    Balanced weights are N / (K * n) for a class with n of the N samples, where K is the number of
    classes with samples, as in scikit-learn; their mean over the training set is 1.

    Args:
        assignments: The value of `loss.class_weights`.
        names: The classes in label order.
        count: Counts the training samples of each class, [classes].
        notice: Prints a line for the user.
        sampling: How samples are drawn; balanced sampling already compensates for rare classes.

    Raises:
        UserError: A class is unknown, a weight is negative or not a number, or all are 0.
    """
    if not assignments:
        return None
    if tuple(assignments) == (BALANCED,):
        if sampling == BALANCED:
            notice(
                "class weights and balanced sampling both compensate for rare classes, which "
                "overcompensates; use only one of the two"
            )
        counts = count()
        has_samples = counts > 0
        values = np.ones(len(names))
        values[has_samples] = counts.sum() / (has_samples.sum() * counts[has_samples])
        absent_names = [name for name, number in zip(names, counts, strict=True) if not number]
        if absent_names:
            notice(f"weight 1 for lack of training samples: {', '.join(absent_names[:_SHOWN])}")
    else:
        weight_by_name = _parsed(assignments)
        for name in weight_by_name:
            if name not in names:
                raise unknown_name("class", name, names, where=FIELD)
        values = np.array([weight_by_name.get(name, 1.0) for name in names])
        if not values.any():
            raise UserError("all classes have weight 0", where=FIELD)
    pairs = sorted(zip(values.tolist(), names, strict=True))
    texts = [f"{name}={value:.4g}" for value, name in pairs]
    if len(texts) > _SHOWN:
        texts = [*texts[: _SHOWN // 2], "...", *texts[-_SHOWN // 2 :]]
    notice(f"class weights: {', '.join(texts)}")
    return torch.tensor(values, dtype=torch.float32)


def class_names(names: Sequence[str], num_classes: int) -> list[str]:
    """Return the names used to assign weights: the data's, or numbers if it has none."""
    return list(names) or [str(number) for number in range(num_classes)]


def cross_entropy_sum(
    logits: Tensor, labels: Tensor, weights: Tensor | None, *, label_smoothing: float = 0.0
) -> Tensor:
    """Return the softmax cross-entropy of the samples, each weighted by its class, summed.

    Equals `class_weight` of Keras and `weights` of tf.losses. Torch's `weight` differs with label
    smoothing, because it weights the smoothed target class by class.

    Args:
        logits: [samples, classes].
        labels: int64 [samples].
        weights: Float32 [classes], or None.
        label_smoothing: Share of the probability spread over all classes.
    """
    if weights is None:
        return functional.cross_entropy(
            logits, labels, label_smoothing=label_smoothing, reduction="sum"
        )
    losses = functional.cross_entropy(
        logits.float(), labels, label_smoothing=label_smoothing, reduction="none"
    )
    return (losses * weights[labels]).sum()


def loss_weights(labels: Tensor, weights: Tensor | None) -> Mapping[str, Tensor]:
    """Return the total weight of the samples for `Objective.weights`, if classes have weights."""
    return {} if weights is None else {"loss": weights[labels].sum()}


def _parsed(assignments: Sequence[str]) -> dict[str, float]:
    """Return the weights by class name, from the setting itself or the file it names."""
    if len(assignments) == 1 and "=" not in assignments[0]:
        path = expanded(assignments[0])
        if not is_file(path):
            raise missing(path, where=FIELD)
        return {name: _weight(name, value, str(path)) for name, value in _rows(path)}
    weight_by_name: dict[str, float] = {}
    for item in assignments:
        name, separator, text = item.rpartition("=")
        if not separator or not name:
            raise UserError(
                f"'{item}' is not of the form NAME=WEIGHT",
                where=FIELD,
                todo=f"For instance: --set {FIELD}=cat=2,dog=0.5",
            )
        weight_by_name[name] = _weight(name, text, FIELD)
    return weight_by_name


def _rows(path: Path) -> list[tuple[str, Any]]:
    text = read_text(path)
    if path.suffix == ".json":
        try:
            parsed = parse_json(text)
        except ValueError as error:
            raise UserError(f"cannot be read as JSON: {error}", where=str(path)) from None
        if not isinstance(parsed, dict):
            raise UserError("is not a JSON object with names and weights", where=str(path))
        return list(cast("dict[str, Any]", parsed).items())
    rows = [row for row in csv.reader(StringIO(text)) if row]
    for number, row in enumerate(rows, start=1):
        if len(row) != 2:
            raise UserError(
                f"row {number} has {counted(len(row), 'column')} instead of a name and a weight",
                where=str(path),
            )
    return [(name.strip(), weight) for name, weight in rows]


def _weight(name: str, value: Any, where: str) -> float:
    try:
        weight = math.nan if isinstance(value, bool) else float(value)
    except (TypeError, ValueError):
        weight = math.nan
    if not 0 <= weight < math.inf:
        raise UserError(
            f"the weight of '{name}' is '{value}', but must be a number of at least 0", where=where
        )
    return weight
