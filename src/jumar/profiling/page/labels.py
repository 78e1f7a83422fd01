"""Ops grouped by everything that the page shows of them."""

from dataclasses import dataclass, field
from typing import Any, Final

import polars as pl

from jumar.profiling.comparison.op_kinds import op_kind, type_or_name
from jumar.profiling.showing import short_types, shown

MOST: Final = 4000
"""Groups on a page; smaller ones are merged by type."""

_KEY: Final = (
    "type",
    "core",
    "input_shapes",
    "input_types",
    "output_types",
    "module",
)
_TEXTS: Final = ("type", "core", "dtypes", "shapes", "module", "kind")


@dataclass(frozen=True, kw_only=True)
class Labels:
    """The groups of ops, and the group of each op.

    Args:
        rows: Columns type, core, dtypes, shapes, module, kind, count, total, min, max (ns).
        of_op: For each row of the op table its group.
        put_together: How many groups were merged by type because there were too many.
    """

    rows: dict[str, list[Any]]
    of_op: pl.Series = field(repr=False)
    put_together: int


def labels(ops: pl.DataFrame) -> Labels:
    """Group ops by type, core, dtypes, shapes and module; the largest groups stay separate.

    Args:
        ops: Ops with start and duration.
    """
    key = ops.select(*_KEY, pl.col("duration_ns")).with_columns(
        pl.coalesce("type", ops["name"].str.replace(r"[_\d]+$", "")).alias("type")
    )
    groups = (
        key.group_by(_KEY)
        .agg(pl.col("duration_ns").sum().alias("total"))
        .sort("total", *_KEY, descending=[True, *[False] * len(_KEY)])
        .with_row_index("place")
    )
    rest = pl.col("place") >= MOST
    blank = [
        pl.when(rest).then(None).otherwise(pl.col(name)).alias(f"kept_{name}")
        for name in _KEY
        if name not in ("type", "core")
    ]
    kept = [
        "type",
        "core",
        *(f"kept_{name}" for name in _KEY if name not in ("type", "core")),
    ]
    groups = groups.with_columns(blank)
    final = groups.group_by(kept, maintain_order=True).agg(pl.len()).with_row_index("label")
    groups = groups.join(final.drop("len"), on=kept, how="left", nulls_equal=True)
    of_op = key.join(
        groups.select(*_KEY, "label"),
        on=list(_KEY),
        how="left",
        nulls_equal=True,
        maintain_order="left",
    )["label"]
    sums = (
        pl.DataFrame({"label": of_op, "duration": key["duration_ns"]})
        .group_by("label")
        .agg(
            pl.len().alias("count"),
            pl.col("duration").sum().alias("total"),
            pl.col("duration").min().alias("min"),
            pl.col("duration").max().alias("max"),
        )
        .sort("label")
    )
    rows: dict[str, list[Any]] = {name: [] for name in _TEXTS}
    for row in final.iter_rows(named=True):
        for name, text in _texts(row).items():
            rows[name].append(text)
    rows |= {name: sums[name].to_list() for name in ("count", "total", "min", "max")}
    return Labels(rows=rows, of_op=of_op, put_together=max(groups.height - MOST, 0))


def _texts(row: dict[str, Any]) -> dict[str, str]:
    taken, given = row["kept_input_types"], row["kept_output_types"]
    kind = op_kind(row["type"], row["core"], row["type"] or "", taken, given)
    dtypes = short_types(f"{taken or ''}|{given}" if given else taken)
    return {
        "type": shown(type_or_name(row["type"], ""), 80),
        "core": shown(row["core"], 40),
        "dtypes": shown(dtypes, 80),
        "shapes": shown(row["kept_input_shapes"], 120),
        "module": shown(row["kept_module"], 120),
        "kind": "aicpu" if row["core"] == "AI_CPU" else kind,
    }
