"""Groups ops into kinds, which are equal in everything recorded except their times.

A million ops have a few hundred kinds, so types, shapes and dtypes are evaluated once per kind.
"""

from typing import NamedTuple

import polars as pl

from jumar.profiling.profile import Profile, once

KEY = (
    "type",
    "core",
    "input_shapes",
    "input_types",
    "input_formats",
    "output_shapes",
    "output_types",
)
"""Ops that are equal in these columns do the same work."""

_KIND_COLUMNS = (*KEY, "output_formats")
_PIPES = ("mac", "vec", "scalar", "mte1", "mte2", "mte3", "fixpipe")
"""Pipes of the AI Core with a `_ratio` column in PipeUtilization."""

PARTS = 1_000_000
"""Ratios are summed in millionths, as integers."""


class Kinds(NamedTuple):
    """The kinds of ops in a profile.

    `of_op` is the kind of each op, in the order of the op table. `table` has one row per kind: the
    number `kind`, the columns that define it, `same`, which is equal for kinds with the same `KEY`,
    `count`, `total_ns`, `known_flops` and `known_bytes`.
    """

    of_op: pl.Series
    table: pl.DataFrame


def pipes_of(ops: pl.DataFrame) -> list[str]:
    """The counter columns with the share of an op's time in which a pipe was busy."""
    endings = {f"{pipe}_ratio" for pipe in _PIPES}
    return [
        name for name in ops.columns if name.removeprefix("aic_").removeprefix("aiv_") in endings
    ]


@once
def kinds(profile: Profile) -> Kinds:
    """The kinds of a profile's ops, computed once."""
    ops = profile.ops
    of_op = ops.select(pl.struct(_KIND_COLUMNS).hash(seed=0).alias("kind"))["kind"]
    # Texts are looked up once per kind: with almost as many kinds as ops, grouping by all columns
    # would take more memory than the profile.
    groups = (
        pl.DataFrame([of_op, ops["duration_ns"]])
        .lazy()
        .with_row_index("row")
        .group_by("kind", maintain_order=True)
        .agg(
            pl.col("row").first(),
            pl.len().alias("count"),
            pl.col("duration_ns").sum().alias("total_ns"),
        )
        .collect()
    )
    recorded_work = (pl.col("flops").alias("known_flops"), pl.col("bytes").alias("known_bytes"))
    texts = ops.select(*_KIND_COLUMNS, *recorded_work)[groups["row"]]
    same = texts.select(pl.struct(KEY).hash(seed=0).alias("same"))
    return Kinds(of_op, pl.concat([groups.drop("row"), texts, same], how="horizontal"))


def counters(profile: Profile, same_values: pl.Series) -> pl.DataFrame:
    """The summed counters of ops with the same `KEY`.

    Args:
        profile: The profile.
        same_values: The values of `same` to include.

    Returns:
        A row for each `same`, with the sum of each pipe's ratios in units of 1 / `PARTS`, and as
        `..._count` the number of ops with that ratio.
    """
    pipes = pipes_of(profile.ops)
    profile_kinds = kinds(profile)
    selected_kinds = (
        profile_kinds.table.lazy()
        .select("kind", "same")
        .filter(pl.col("same").is_in(same_values.implode()))
    )
    return (
        profile.ops.lazy()
        .select(*pipes, profile_kinds.of_op)
        .join(selected_kinds, on="kind")
        .group_by("same")
        .agg(
            # Sums of floats would depend on the order in which threads add them.
            *((pl.col(name) * PARTS).cast(pl.Int64, strict=False).sum() for name in pipes),
            *(pl.col(name).count().alias(f"{name}_count") for name in pipes),
        )
        .collect()
    )
