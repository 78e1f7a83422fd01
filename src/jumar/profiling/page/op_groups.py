"""Groups the ops of the page by type, core, shapes, dtypes and layer."""

from dataclasses import dataclass, field
from typing import Any, Final

import polars as pl

from jumar.profiling.columns import largest_first
from jumar.profiling.comparison.op_kinds import op_kind, type_or_name
from jumar.profiling.showing import short_types, shown

MAX_GROUPS: Final = 4000
"""Maximum number of groups on a page; the smallest ones are merged by type."""

_DETAIL_COLUMNS: Final = ("input_shapes", "input_types", "output_types", "module")
_GROUP_COLUMNS: Final = ("type", "core", *_DETAIL_COLUMNS)
_TEXT_COLUMNS: Final = ("type", "core", "dtypes", "shapes", "module", "kind")


@dataclass(frozen=True, kw_only=True)
class OpGroups:
    """The groups of ops, and the group of each op.

    Args:
        rows: The groups as columns type, core, dtypes, shapes, module, kind, count, total, min and
            max (ns).
        group_of_op: The group number of each op, in the order of the op table.
        merged_count: Number of groups that were merged by type because there were too many.
    """

    rows: dict[str, list[Any]]
    group_of_op: pl.Series = field(repr=False)
    merged_count: int


def group_ops(ops: pl.DataFrame) -> OpGroups:
    """Group ops by type, core, dtypes, shapes and module; only the largest groups stay separate.

    Args:
        ops: Ops with start and duration.
    """
    keyed_ops = ops.select(*_GROUP_COLUMNS, pl.col("duration_ns")).with_columns(
        pl.coalesce("type", ops["name"].str.replace(r"[_\d]+$", "")).alias("type")
    )
    groups = (
        keyed_ops.group_by(_GROUP_COLUMNS)
        .agg(pl.col("duration_ns").sum().alias("total"))
        .pipe(largest_first, "total", *_GROUP_COLUMNS)
        .with_row_index("position")
    )
    is_kept = pl.col("position") < MAX_GROUPS
    groups = groups.with_columns(
        pl.when(is_kept).then(name).alias(f"kept_{name}") for name in _DETAIL_COLUMNS
    )
    final_columns = ["type", "core", *(f"kept_{name}" for name in _DETAIL_COLUMNS)]
    final_groups = (
        groups.group_by(final_columns, maintain_order=True).agg(pl.len()).with_row_index("label")
    )
    groups = groups.join(final_groups.drop("len"), on=final_columns, how="left", nulls_equal=True)
    group_of_op = keyed_ops.join(
        groups.select(*_GROUP_COLUMNS, "label"),
        on=list(_GROUP_COLUMNS),
        how="left",
        nulls_equal=True,
        maintain_order="left",
    )["label"]
    sums = (
        pl.DataFrame({"label": group_of_op, "duration": keyed_ops["duration_ns"]})
        .group_by("label")
        .agg(
            pl.len().alias("count"),
            pl.col("duration").sum().alias("total"),
            pl.col("duration").min().alias("min"),
            pl.col("duration").max().alias("max"),
        )
        .sort("label")
    )
    rows: dict[str, list[Any]] = {name: [] for name in _TEXT_COLUMNS}
    for row in final_groups.iter_rows(named=True):
        for name, text in _texts(row).items():
            rows[name].append(text)
    rows |= {name: sums[name].to_list() for name in ("count", "total", "min", "max")}
    return OpGroups(
        rows=rows, group_of_op=group_of_op, merged_count=max(groups.height - MAX_GROUPS, 0)
    )


def _texts(row: dict[str, Any]) -> dict[str, str]:
    input_types, output_types = row["kept_input_types"], row["kept_output_types"]
    kind = op_kind(row["type"], row["core"], row["type"] or "", input_types, output_types)
    dtypes = short_types(f"{input_types or ''}|{output_types}" if output_types else input_types)
    return {
        "type": shown(type_or_name(row["type"], ""), 80),
        "core": shown(row["core"], 40),
        "dtypes": shown(dtypes, 80),
        "shapes": shown(row["kept_input_shapes"], 120),
        "module": shown(row["kept_module"], 120, keeps_end=True),
        "kind": "aicpu" if row["core"] == "AI_CPU" else kind,
    }
