"""The result of a cross-validation: means over the folds of a sweep."""

import statistics
from collections.abc import Sequence
from dataclasses import replace

from jumar.experiments.table import Row, Table

FOLD = "data.fold"
"""The field that a sweep over folds varies."""


def with_means_over_folds(table: Table) -> Table:
    """Add means and standard deviations over the folds as the first explanations of a table.

    There is one for each combination of the other varied fields. A table without folds is returned
    unchanged.
    """
    if FOLD not in table.fields:
        return table
    fold_index = table.fields.index(FOLD)
    groups: dict[tuple[str, ...], list[Row]] = {}
    for row in table.rows:
        other_values = tuple(value for index, value in enumerate(row.values) if index != fold_index)
        groups.setdefault(other_values, []).append(row)
    names = [field for field in table.fields if field != FOLD]
    sentences: list[str] = []
    for other_values, rows in groups.items():
        means_text = _means(table, rows)
        setting = ", ".join(
            f"{name}={value}" for name, value in zip(names, other_values, strict=True)
        )
        where = f"Over the folds of {setting}" if setting else "Over the folds"
        if means_text:
            sentences.append(f"{where}: {means_text}.")
    if sentences:
        sentences.append(
            "Each fold is evaluated on different samples, so rows of different folds cannot be "
            "compared; the means are the result."
        )
    return replace(table, explanations=(*sentences, *table.explanations))


def _means(table: Table, rows: Sequence[Row]) -> str:
    scores = [row.headline.value for row in rows]
    losses = [row.loss.value for row in rows]
    texts = (
        _mean(table.headline_name, scores, table.headline_unit) if table.headline_name else "",
        _mean(table.loss_name, losses, ""),
    )
    return "; ".join(text for text in texts if text)


def _mean(name: str, values: Sequence[float | None], unit: str) -> str:
    numbers = [value for value in values if value is not None]
    if not numbers:
        return ""
    text = f"{name} {statistics.mean(numbers):.4g}{f' {unit}' if unit else ''}"
    if len(numbers) > 1:
        text += f" ± {statistics.stdev(numbers):.2g} (standard deviation over {len(numbers)} folds)"
    return text
