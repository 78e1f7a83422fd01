"""Host-bound phases: which host calls explain the device's idle time."""

from typing import NamedTuple

import polars as pl

from jumar.ground.text import Language, Text
from jumar.profiling.columns import RANK, column, milliseconds, ms, percent
from jumar.profiling.profile import END, Profile
from jumar.profiling.views.host_calls import Cause, causes, free_time
from jumar.profiling.views.intervals import difference, intersection, length, union
from jumar.profiling.views.queued import queued_gaps
from jumar.profiling.views.view import VIEWS, Impossible, Options, View, require
from jumar.profiling.views.windows import (
    as_spans,
    communication_spans,
    computing_spans,
    copying_union,
    step_windows,
)

_REST = Text(en="none of these, or no call recorded", zh="其他，或没有记录到调用")
_QUEUED = Text(
    en="not the host: the next op waits on the device",
    zh="非 host 原因：下一个算子在设备上等待",
)
_COPIES = Text(en="memory copies", zh="内存拷贝")
_HOW = "record with activities CPU and NPU (or CUDA), and export the trace"


def host_bound(profile: Profile, options: Options) -> pl.DataFrame:
    """One row per cause: time on the host, and how much of the device's idle time it explains.

    Each moment of idle time is assigned to the first matching cause: data loading, blocking calls,
    launching ops, calls that overlap mostly idle time; the rest overlaps none of these. While the
    next op waits on the device, no host call is the cause.
    """
    if profile.kind == "cpu":
        raise Impossible("ops on a device separate from the host")
    require(profile.host, "host calls (trace)", "start_ns", how=_HOW)
    require(profile.ops, "ops with start times", "start_ns")
    windows = as_spans(step_windows(profile))
    if windows.is_empty():
        raise Impossible("ops with start times and durations")
    free = free_time(profile, windows)
    waiting = difference(communication_spans(profile), union(computing_spans(profile)))
    rows: list[dict[str, object]] = []
    all_causes = causes(profile)
    for rank in windows["rank"].unique().sort().to_list():
        is_rank = pl.col("rank") == rank
        tables = (windows, free, waiting, copying_union(profile), queued_gaps(profile))
        times = _Times(*(table.filter(is_rank) for table in tables))
        rows += _rows_of_rank(int(rank), all_causes, times, options.language)
    order = ("rank", "free_ms", "host_ms")
    return pl.DataFrame(rows).sort(order, descending=[False, True, True], maintain_order=True)


class _Times(NamedTuple):
    """The times when a rank is in steps, idle, only communicating, copying, or has ops queued."""

    windows: pl.DataFrame
    free: pl.DataFrame
    waiting: pl.DataFrame
    copying: pl.DataFrame
    queued: pl.DataFrame


def _rows_of_rank(
    rank: int, causes: list[Cause], times: _Times, language: Language
) -> list[dict[str, object]]:
    """The rows of one rank."""
    is_rank = pl.col("rank") == rank
    total = max(length(times.free), 1)
    queued = intersection(times.free, times.queued)
    free = remaining = difference(times.free, queued)
    rows: list[dict[str, object]] = []
    for cause in causes:
        host = cause.host.filter(is_rank)
        if host.is_empty():
            continue
        explained = length(intersection(cause.alone.filter(is_rank), free))
        remaining = difference(remaining, cause.alone.filter(is_rank))
        rows.append(
            {
                **_row(rank, cause.label.in_language(language), explained, total),
                "calls": cause.calls[rank],
                "host_ms": length(intersection(host, times.windows)) / 1e6,
                "uncovered_communication_ms": length(intersection(host, times.waiting)) / 1e6,
            }
        )
    copied = intersection(union(pl.concat([remaining, queued])), times.copying)
    if copied.height:
        remaining, queued = difference(remaining, copied), difference(queued, copied)
        rows.append(_row(rank, _COPIES.in_language(language), length(copied), total))
    if queued.height:
        rows.append(_row(rank, _QUEUED.in_language(language), length(queued), total))
    rows.append(_row(rank, _REST.in_language(language), length(remaining), total))
    return rows


def _row(rank: int, cause: str, free: int, total: int) -> dict[str, object]:
    """A row with the idle time of a cause, and without calls."""
    return {
        "rank": rank,
        "cause": cause,
        "calls": 0,
        "host_ms": 0.0,
        "free_ms": free / 1e6,
        "share_of_free_%": round(free * 100 / total, 2),
        "uncovered_communication_ms": 0.0,
    }


def launches(profile: Profile, _: Options) -> pl.DataFrame:
    """One row per rank: how far the host runs ahead of the device, and the gaps between ops.

    The queue depth at the start of an op is the number of ops launched but not yet started; if it
    is near 0, the device waits for the host.
    """
    ops = require(
        profile.ops, "the launch time of each op (flows of the trace)", "launch_ns", how=_HOW
    )
    ops = require(
        ops.drop_nulls(["launch_ns", "start_ns"]), "start times of launched ops", how=_HOW
    )
    rows: list[pl.DataFrame] = []
    for (rank,), rank_ops in ops.group_by(pl.col("rank").fill_null(0), maintain_order=True):
        rank_ops = rank_ops.sort("start_ns", maintain_order=True)
        launched = rank_ops["launch_ns"].sort().search_sorted(rank_ops["start_ns"], side="right")
        depth = launched.cast(pl.Int64) - pl.int_range(rank_ops.height, eager=True) - 1
        rank_ops = rank_ops.with_columns(
            depth.alias("depth"),
            (pl.col("start_ns") - pl.col("launch_ns")).alias("delay_ns"),
            (pl.col("start_ns") - END.cum_max().shift(1)).alias("gap_ns"),
        )
        gap = pl.col("gap_ns").clip(lower_bound=0)
        rows.append(
            rank_ops.select(
                pl.lit(rank, dtype=pl.Int32).alias("rank"),
                pl.len().alias("ops"),
                milliseconds(pl.col("delay_ns").median()).alias("delay_p50_ms"),
                milliseconds(pl.col("delay_ns").quantile(0.95)).alias("delay_p95_ms"),
                pl.col("depth").median().alias("queue_p50"),
                pl.col("depth").max().alias("queue_max"),
                ((pl.col("depth") <= 0).mean() * 100).round(1).alias("queue_empty_%"),
                milliseconds(gap.median()).alias("gap_p50_ms"),
                milliseconds(gap.sum()).alias("gaps_ms"),
            )
        )
    return pl.concat(rows)


VIEWS.add(
    View(
        name="host",
        title=Text(en="What explains the device's idle time", zh="设备空闲时间的原因"),
        question=Text(
            en="What does the host do while the device is idle?", zh="设备空闲时 host 在做什么？"
        ),
        columns=(
            RANK,
            column("cause", "原因"),
            column("calls", "调用次数"),
            ms("host", "host 耗时", "on the host"),
            ms("free", "设备空闲", "device idle"),
            percent("share_of_free", "占空闲时间"),
            ms("uncovered_communication", "未掩盖通信"),
        ),
        compute=host_bound,
        order=120,
    ),
    View(
        name="launches",
        title=Text(en="How far the host runs ahead of the device", zh="host 下发的提前量"),
        question=Text(
            en="Does the host launch ops fast enough to keep the device busy?",
            zh="host 下发算子的速度能否喂满设备？",
        ),
        columns=(
            RANK,
            column("ops", "算子数"),
            ms("delay_p50", "下发到执行的中位延迟", "launch to start, median"),
            ms("delay_p95", "下发到执行的 95 分位延迟", "launch to start, 95th percentile"),
            column("queue_p50", "队列深度中位数", "queue depth, median"),
            column("queue_max", "队列最大深度", "queue depth, largest"),
            percent("queue_empty", "队列为空占比"),
            ms("gap_p50", "算子间隙中位数", "gap between ops, median"),
            ms("gaps", "间隙总时长", "all gaps"),
        ),
        compute=launches,
        order=121,
        ranking=False,
    ),
)
