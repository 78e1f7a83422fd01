"""A finding about kernels limited by the scalar unit of Ascend cores, from their counters."""

from collections.abc import Iterator
from typing import Final

import polars as pl

from jumar.ground.text import Text
from jumar.profiling.advice.finding import (
    FINDINGS,
    Case,
    Claim,
    Finding,
    carved,
    ms,
    types_by_time,
    untranslated,
)
from jumar.profiling.columns import largest_first
from jumar.profiling.profile import AI_CORES, END
from jumar.profiling.showing import shown
from jumar.profiling.views.kinds import pipes_of

_BUSY: Final = 0.8
"""A pipe that is busy for at least this share of the time limits an op, as in Ascend's tools."""
_MIN_DURATION_NS: Final = 10_000
"""In shorter ops, the scalar unit is busy mainly with start-up, whatever the code."""
_MAX_SHOWN: Final = 3
_COLUMNS: Final = ("rank", "type", "core", "start_ns", "duration_ns", "input_shapes")


def scalar_bound(case: Case) -> Iterator[Claim]:
    """Claim ops whose scalar unit is busy nearly all the time, and longer than any other pipe.

    The possible saving is the time by which the scalar unit is busy longer than the next pipe,
    which would then be the limit.
    """
    pipes = pipes_of(case.profile.ops)
    scalars = [name for name in pipes if name.endswith("scalar_ratio")]
    others = [name for name in pipes if name not in scalars]
    if not scalars or not others:
        return
    # A ratio above 1 comes from a broken counter.
    is_scalar_bound = (
        (pl.col("duration_ns") >= _MIN_DURATION_NS)
        & pl.col("core").is_in(AI_CORES)
        & pl.col("scalar").is_between(_BUSY, 1)
        & pl.col("next").is_between(0, pl.col("scalar"), closed="left")
    )
    busiest = (pl.max_horizontal(scalars), pl.max_horizontal(others))
    columns = (busiest[0].alias("scalar"), busiest[1].alias("next"))
    ops = case.in_scope(
        case.profile.ops.lazy().select(*_COLUMNS, *columns).filter(is_scalar_bound).collect()
    )
    if ops.is_empty():
        return
    total_ns = int(ops["duration_ns"].sum())
    yield Claim(
        values={"lasts": ms(total_ns / case.steps), "types": _types(ops)},
        spans=carved(ops.with_columns(END.alias("end_ns")), pl.col("scalar") - pl.col("next")),
        evidence=tuple(_lines(case, ops)),
    )


def _types(ops: pl.DataFrame) -> str:
    """The op types with the longest total time, as text."""
    types = types_by_time(ops)
    names = ", ".join(shown(str(kind or "-"), 40) for kind in types[:_MAX_SHOWN])
    return f"{names}, ..." if len(types) > _MAX_SHOWN else names


def _lines(case: Case, ops: pl.DataFrame) -> Iterator[Text]:
    """Lines on the largest groups of ops, with the load of both pipes."""
    total_ns = pl.col("duration_ns").sum()
    shares = [
        # Weighted by time, in integers: sums of floats would depend on the order of threads.
        (
            (pl.col(name) * pl.col("duration_ns")).round().cast(pl.Int64).sum() * 100 / total_ns
        ).alias(name)
        for name in ("scalar", "next")
    ]
    groups = (
        ops.group_by("type", "input_shapes")
        .agg(pl.len().alias("count"), total_ns, *shares)
        .pipe(largest_first, "duration_ns", "type", "input_shapes")
    )
    for row in groups.head(_MAX_SHOWN).iter_rows(named=True):
        what = f"{row['count'] / case.steps:g} x {row['type'] or '-'} {row['input_shapes'] or '-'}"
        length = ms(row["duration_ns"] / case.steps)
        yield Text(
            en=f"{what}: {length} per step, scalar unit busy {row['scalar']:.0f} %, next pipe "
            f"{row['next']:.0f} %",
            zh=f"{what}：每迭代 {length}，标量单元忙碌 {row['scalar']:.0f} %，"
            f"其次的流水 {row['next']:.0f} %",
        )
    if groups.height > _MAX_SHOWN:
        yield untranslated("...")


FINDINGS.add(
    Finding(
        name="scalar-bound",
        what=Text(
            en="The scalar unit limits {types}: {lasts} per step",
            zh="标量单元成为瓶颈的算子 {types}：每迭代 {lasts}",
        ),
        change=Text(
            en="Let the op process fewer and larger blocks: contiguous inputs, inner axes that are "
            "multiples of 32 bytes, more rows per call. In your own kernels, move index arithmetic "
            "and branches out of the loop and use larger tiles; for CANN's, try another layout, "
            "algorithm or release.",
            zh="让算子处理更少、更大的数据块：输入连续、内轴为 32 字节的倍数、一次调用处理更多行。"
            "自己编写的 kernel 应把下标计算和分支移出循环，并加大分块；CANN 自带的 kernel "
            "可尝试其他数据格式、算法或版本。",
        ),
        search=scalar_bound,
        order=75,
        view="roofline",
        of_ops=True,
    )
)
