"""The gap between each op and the chip's peak rates, in milliseconds."""

import polars as pl

from jumar.ground.text import Text
from jumar.profiling.columns import COUNT, DTYPES, SHAPES, TOTAL, TYPE, column, largest_first, ms
from jumar.profiling.profile import COMMUNICATION, Profile
from jumar.profiling.views.chips import Chip, chip_of
from jumar.profiling.views.kinds import KEY, PARTS, counters, kinds, pipes_of
from jumar.profiling.views.op_costs import Cost, cost
from jumar.profiling.views.view import LEVEL_1, VIEWS, Impossible, Options, View, require
from jumar.profiling.views.windows import MEMORY_COPIES

REACHABLE = 0.7
"""Share of the chip's peak that a good kernel reaches, and up to which savings are counted."""

MAX_COMBINATIONS = 20_000
"""Maximum number of combinations to estimate, by total time; the others get no estimate."""


def require_chip(profile: Profile, options: Options) -> Chip:
    """Return the chip; raise `Impossible` if neither the profile nor the user names it."""
    chip = chip_of(profile, options.chip)
    if chip is None:
        name = profile.chip or "the accelerator"
        raise Impossible(f"peak rates of {name}", "pass them with --chip FILE")
    return chip


def limits(profile: Profile, chip: Chip) -> pl.DataFrame:
    """One row per combination of `KEY`: count, time, minimum time of an op, and its bottleneck.

    `least_ns` is the longest of compute, memory and launch times at the chip's peak rates. Only the
    `MAX_COMBINATIONS` longest combinations are included.
    """
    require(profile.ops, "shapes of the inputs", "input_shapes", how=LEVEL_1)
    return profile.cached(f"limits {chip!r}", lambda: _limits(profile, chip))


def _limits(profile: Profile, chip: Chip) -> pl.DataFrame:
    groups = _longest(kinds(profile).table)
    recorded = groups.select("type", *KEY[2:], "known_flops", "known_bytes")
    rows = [_limit(cost(*row[:6]), row[6], row[7], chip) for row in recorded.iter_rows()]
    return groups.hstack(pl.DataFrame(rows, schema=_LIMITS, orient="row"))


_LIMITS = {
    "least_ns": pl.Int64(),
    "bound": pl.String(),
    "flops": pl.Float64(),
    "bytes": pl.Float64(),
}


def _limit(
    needed: Cost, known_flops: int | None, known_bytes: int | None, chip: Chip
) -> tuple[int | None, str | None, float | None, float | None]:
    """The values of `_LIMITS` for an op, from its shapes and from the work that is recorded."""
    work = float(known_flops) if known_flops else needed.flops
    size = float(known_bytes) if known_bytes else needed.bytes
    # An op of the matrix unit with unknown work may be at its peak already.
    if size is None or (work is None and needed.cube):
        return None, None, work, size
    peak = chip.cube_peak(needed.dtype) if needed.cube else chip.vector_tflops * 1e12
    longest, bound = max(
        ((work or 0.0) / peak * 1e9, "cube" if needed.cube else "vector"),
        (size / chip.hbm_gb_s, "memory"),
        (chip.launch_us * 1e3, "launch"),
        key=lambda limit: limit[0],
    )
    return round(longest), bound, work, size


def _longest(table: pl.DataFrame) -> pl.DataFrame:
    """The kinds relevant to a roofline, grouped by `KEY`, the longest first."""
    others = (COMMUNICATION, "AI_CPU", *MEMORY_COPIES)
    rows = table.lazy().select("same", "core", "count", "total_ns").with_row_index("row")
    sums = (
        rows.filter(~pl.col("core").is_in(others).fill_null(False))
        .group_by("same")
        .agg(pl.col("row").first(), pl.col("count").sum(), pl.col("total_ns").sum())
        .filter(pl.col("total_ns") > 0)
        .collect()
    )
    # Sort only kinds that may be among the longest; text columns break ties.
    shortest = sums["total_ns"].top_k(MAX_COMBINATIONS).min()
    sums = sums.filter(pl.col("total_ns") >= shortest)
    texts = table.select(*KEY, "known_flops", "known_bytes")[sums["row"]]
    return (
        pl.concat([sums.drop("row"), texts], how="horizontal")
        .pipe(largest_first, "total_ns", *KEY)
        .head(MAX_COMBINATIONS)
    )


def _busiest_of(profile: Profile, same: pl.Series) -> pl.DataFrame:
    """`busiest_pipe`, by the counters, for each value of `same`."""
    pipes = pipes_of(profile.ops)
    means = counters(profile, same).select("same", *(_mean(name) for name in pipes))
    return means.select("same", _busiest(pipes).alias("busiest_pipe"))


def _mean(pipe: str) -> pl.Expr:
    count = pl.col(f"{pipe}_count")
    return pl.when(count > 0).then(pl.col(pipe) / count / PARTS).alias(pipe)


def _busiest(pipes: list[str]) -> pl.Expr:
    """The busiest pipe by the counters, with its share of the op's time."""
    if not pipes:
        return pl.lit(None, dtype=pl.String)
    highest = pl.max_horizontal(pipes)
    name = pl.coalesce(
        pl.when((pl.col(pipe) == highest) & (highest > 0)).then(pl.lit(pipe.removesuffix("_ratio")))
        for pipe in pipes
    )
    return name + " " + (highest * 100).round(0).cast(pl.Int64).cast(pl.String) + "%"


def roofline(profile: Profile, options: Options) -> pl.DataFrame:
    """Ops by the estimated time saved if each ran at the chip's peak rates."""
    groups = limits(profile, require_chip(profile, options))
    least = pl.col("least_ns") * pl.col("count")
    room = pl.max_horizontal(pl.col("total_ns") - least, 0)
    seconds = pl.col("total_ns") / 1e9
    groups = groups.filter(pl.col("least_ns").is_not_null())
    return (
        groups.join(_busiest_of(profile, groups["same"]), on="same", how="left")
        .with_columns(room.alias("head_room_ns"))
        .pipe(largest_first, "head_room_ns", *KEY)
        .with_columns(
            least.alias("least_ns"),
            (pl.col("flops") * pl.col("count") / seconds / 1e12).round(3).alias("tflops"),
            (pl.col("bytes") * pl.col("count") / seconds / 1e9).round(1).alias("gb_s"),
        )
    )


VIEWS.add(
    View(
        name="roofline",
        title=Text(
            en="Headroom of each op to the chip's peak (estimate)",
            zh="各算子相对芯片峰值的优化空间（估算）",
        ),
        question=Text(
            en="Which ops are far from the chip's peak? (attention is counted without a mask)",
            zh="哪些算子离芯片的理论性能还很远？（注意力按无掩码计算）",
        ),
        columns=(
            TYPE,
            COUNT,
            TOTAL,
            ms("least", "理论最短耗时", "theoretical minimum"),
            ms("head_room", "优化空间", "headroom"),
            column("bound", "瓶颈", "bound by"),
            column("tflops", "实测算力", "reached", unit="TFLOPS"),
            column("gb_s", "实测带宽", "reached", unit="GB/s"),
            column("busiest_pipe", "最忙流水"),
            DTYPES,
            SHAPES,
        ),
        compute=roofline,
        order=140,
        uses_rates=True,
    )
)
