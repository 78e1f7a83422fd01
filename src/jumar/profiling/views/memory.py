"""Device memory: peak, allocations at the peak, and reserved but unused memory."""

import polars as pl

from jumar.ground.text import Text
from jumar.profiling.columns import MODULE, NAME, RANK, SHARE, column, largest_first
from jumar.profiling.profile import Profile
from jumar.profiling.views.view import VIEWS, Impossible, Options, View

_HOW = "record with profile_memory=True (jumar profile --memory)"
MIB = 1 << 20


def memory_peak(profile: Profile, _: Options) -> pl.DataFrame:
    """One row per component and device: peak allocated, peak reserved, and largest difference.

    On a CPU no memory is reserved, and allocations before the recording are not counted.
    """
    record = profile.statistics.get("memory_record")
    needed = {"component", "total_allocated_bytes", "total_reserved_bytes"}
    if record is None or not needed <= set(record.columns):
        raise Impossible("memory over time (memory_record.csv)", _HOW)
    by = [name for name in ("rank", "component", "device_type") if name in record.columns]
    allocated, reserved = pl.col("total_allocated_bytes"), pl.col("total_reserved_bytes")

    def mib(size: pl.Expr) -> pl.Expr:
        return (size / MIB).round(2)

    return (
        record.group_by(by)
        .agg(
            mib(allocated.max()).alias("peak_allocated_mib"),
            mib(reserved.max()).alias("peak_reserved_mib"),
            mib((reserved - allocated).max()).alias("largest_gap_mib"),
            mib((reserved - allocated).sort_by(allocated, reserved).last()).alias(
                "gap_at_peak_mib"
            ),
            pl.len().alias("samples"),
        )
        .sort(
            "peak_reserved_mib",
            "peak_allocated_mib",
            *by,
            descending=[True, True, *[False] * len(by)],
            nulls_last=True,
        )
    )


def memory_at_peak(profile: Profile, _: Options) -> pl.DataFrame:
    """Memory allocated at the peak, by the op that allocated it.

    Only allocations during the capture are known; earlier ones, such as parameters, are only in the
    total of `memory`. An allocation without a release lasts until the end.
    """
    table = profile.statistics.get("operator_memory")
    needed = {"name", "size_bytes", "allocation_time_ns", "release_time_ns"}
    if table is None or not needed <= set(table.columns):
        raise Impossible("allocations (operator_memory.csv)", _HOW)
    if "rank" not in table.columns:
        table = table.with_columns(pl.lit(0, dtype=pl.Int32).alias("rank"))
    rows = table.filter(
        (pl.col("size_bytes") > 0) & pl.col("allocation_time_ns").is_not_null()
    ).with_columns(pl.col("rank").fill_null(0))
    # Only jumar's own recordings have the layer.
    by = [name for name in ("name", "module") if name in rows.columns]
    rows_of_ranks: list[pl.DataFrame] = []
    for (rank,), rank_rows in rows.group_by("rank", maintain_order=True):
        peak = _peak(rank_rows)
        alive = rank_rows.filter(
            (pl.col("allocation_time_ns") <= peak)
            & (pl.col("release_time_ns").is_null() | (pl.col("release_time_ns") > peak))
        )
        by_name = alive.group_by(by).agg(pl.len().alias("allocations"), pl.col("size_bytes").sum())
        rows_of_ranks.append(
            by_name.select(
                pl.lit(rank, dtype=pl.Int32).alias("rank"),
                *by,
                "allocations",
                (pl.col("size_bytes") / MIB).round(3).alias("held_mib"),
                (pl.col("size_bytes") * 100 / pl.col("size_bytes").sum()).round(2).alias("share_%"),
            ).pipe(largest_first, "held_mib", *by)
        )
    if not rows_of_ranks:
        raise Impossible("allocations (operator_memory.csv)", _HOW)
    return pl.concat(rows_of_ranks)


def _peak(rows: pl.DataFrame) -> int:
    """The time at which the most memory is allocated."""
    starts = rows.select(pl.col("allocation_time_ns").alias("at"), pl.col("size_bytes"))
    ends = rows.filter(pl.col("release_time_ns").is_not_null()).select(
        pl.col("release_time_ns").alias("at"), -pl.col("size_bytes")
    )
    series = pl.concat([starts, ends]).group_by("at").agg(pl.col("size_bytes").sum()).sort("at")
    series = series.with_columns(pl.col("size_bytes").cum_sum())
    highest = series["size_bytes"].arg_max()
    return int(series["at"][highest or 0])


VIEWS.add(
    View(
        name="memory",
        title=Text(en="Device memory: peak and unused reserve", zh="设备内存：峰值与差额"),
        question=Text(
            en="How much memory is used at the peak, and how much is reserved but unused?",
            zh="内存峰值是多少，预留而未用的有多少？",
        ),
        columns=(
            RANK,
            column("component", "组件"),
            column("device_type", "设备类型", "device"),
            column("peak_allocated_mib", "已分配峰值", unit="MiB"),
            column("peak_reserved_mib", "预留峰值", unit="MiB"),
            column("largest_gap_mib", "最大差额", unit="MiB"),
            column("gap_at_peak_mib", "峰值时差额", unit="MiB"),
            column("samples", "采样数"),
        ),
        compute=memory_peak,
        order=180,
        ranking=False,
    ),
    View(
        name="memory-by-op",
        title=Text(en="Memory at the peak, by allocating op", zh="峰值时刻的内存，按申请者统计"),
        question=Text(
            en="Which ops' memory is in use at the peak?", zh="内存达到峰值时由哪些算子占用？"
        ),
        columns=(
            RANK,
            NAME,
            MODULE,
            column("allocations", "申请次数"),
            column("held_mib", "占用", unit="MiB"),
            SHARE,
        ),
        compute=memory_at_peak,
        order=181,
    ),
)
