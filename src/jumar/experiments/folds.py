"""The result of a cross-validation: means over the folds of a sweep."""

import statistics
from collections.abc import Sequence
from dataclasses import replace

from jumar.experiments.table import Row, Table

FOLD = "data.fold"
"""The field that a sweep varies over folds."""


def with_means_over_folds(table: Table) -> Table:
    """The table with means and standard deviations over the folds as its first explanations.

    There is one for each setting of the other varied fields; without folds the table stays as it
    is.
    """
    if FOLD not in table.fields:
        return table
    place = table.fields.index(FOLD)
    groups: dict[tuple[str, ...], list[Row]] = {}
    for row in table.rows:
        others = tuple(value for at, value in enumerate(row.values) if at != place)
        groups.setdefault(others, []).append(row)
    names = [field for field in table.fields if field != FOLD]
    sentences: list[str] = []
    for others, rows in groups.items():
        known = _means(table, rows)
        setting = ", ".join(f"{name}={value}" for name, value in zip(names, others, strict=True))
        where = f"Over the folds of {setting}" if setting else "Over the folds"
        if known:
            sentences.append(f"{where}: {known}.")
    if sentences:
        sentences.append(
            "Each fold scores other samples: a difference between rows of different folds says "
            "nothing about settings, the means are the result."
        )
    return replace(table, explanations=(*sentences, *table.explanations))


def _means(table: Table, rows: Sequence[Row]) -> str:
    scores = [row.headline.value for row in rows]
    losses = [row.loss.value for row in rows]
    parts = (
        _mean(table.headline_name, scores, table.headline_unit) if table.headline_name else "",
        _mean(table.loss_name, losses, ""),
    )
    return "; ".join(part for part in parts if part)


def _mean(name: str, values: Sequence[float | None], unit: str) -> str:
    known = [value for value in values if value is not None]
    if not known:
        return ""
    text = f"{name} {statistics.mean(known):.4g}{f' {unit}' if unit else ''}"
    if len(known) > 1:
        text += f" ± {statistics.stdev(known):.2g} (standard deviation over {len(known)} folds)"
    return text
