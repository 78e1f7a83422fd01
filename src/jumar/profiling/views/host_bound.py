"""Host-bound phases: which calls explain the time in which the device is free."""

import polars as pl

from jumar.profiling.profile import Profile
from jumar.profiling.views.host_calls import Cause, causes, free_time
from jumar.profiling.views.intervals import difference, intersection, length, union
from jumar.profiling.views.view import Impossible, Options, milliseconds, require
from jumar.profiling.views.windows import (
    as_spans,
    communication_spans,
    computing_spans,
    step_windows,
)

_HOW = "record with activities CPU and NPU (or CUDA), and export the trace"


def host_bound(profile: Profile, _: Options) -> pl.DataFrame:
    """A row a cause: time on the host, and how much of the device's free time it explains.

    Each moment of free time goes to the first cause that fits: data loading, a call that blocks,
    launching ops; what is left has no call on the host beside it.
    """
    if profile.kind == "cpu":
        raise Impossible("ops of a device beside those of the host")
    require(profile.host, "calls on the host (trace)", "start_ns", how=_HOW)
    require(profile.ops, "ops with start times", "start_ns")
    windows = as_spans(step_windows(profile), start="begin_ns")
    if windows.is_empty():
        raise Impossible("ops with start times and durations")
    free = free_time(profile, windows)
    waiting = difference(communication_spans(profile), union(computing_spans(profile)))
    rows: list[dict[str, object]] = []
    found = causes(profile)
    ranks = windows["rank"].unique().sort().to_list()
    for rank in ranks:
        rows += _of_rank(int(rank), found, windows, free, waiting)
    return pl.DataFrame(rows).sort("rank", "free_ms", "host_ms", descending=[False, True, True])


def _of_rank(
    rank: int, found: list[Cause], windows: pl.DataFrame, free: pl.DataFrame, waiting: pl.DataFrame
) -> list[dict[str, object]]:
    """The rows of one rank, of what was cut for all of them."""
    only = pl.col("rank") == rank
    windows, free, waiting = windows.filter(only), free.filter(only), waiting.filter(only)
    total = max(length(free), 1)
    left = free
    rows: list[dict[str, object]] = []
    for cause in found:
        host = cause.host.filter(only)
        if host.is_empty():
            continue
        explained = length(intersection(cause.alone.filter(only), free))
        left = difference(left, cause.alone.filter(only))
        rows.append(
            {
                "rank": rank,
                "cause": cause.label,
                "calls": cause.calls[rank],
                "host_ms": length(intersection(host, windows)) / 1e6,
                "free_ms": explained / 1e6,
                "share_of_free_%": round(explained * 100 / total, 2),
                "uncovered_communication_ms": length(intersection(host, waiting)) / 1e6,
            }
        )
    rows.append(
        {
            "rank": rank,
            "cause": "no call recorded",
            "calls": 0,
            "host_ms": 0.0,
            "free_ms": length(left) / 1e6,
            "share_of_free_%": round(length(left) * 100 / total, 2),
            "uncovered_communication_ms": 0.0,
        }
    )
    return rows


def launches(profile: Profile, _: Options) -> pl.DataFrame:
    """A row a rank: how far the host launches ahead of the device, and gaps between ops.

    The queue depth at the start of an op is the number of ops launched but not started; near 0 the
    device waits for the host.
    """
    ops = require(
        profile.ops, "when each op was launched (flows of the trace)", "launch_ns", how=_HOW
    )
    ops = require(
        ops.drop_nulls(["launch_ns", "start_ns"]), "start times of launched ops", how=_HOW
    )
    found: list[pl.DataFrame] = []
    for (rank,), own in ops.group_by(pl.col("rank").fill_null(0), maintain_order=True):
        own = own.sort("start_ns")
        launched = own["launch_ns"].sort().search_sorted(own["start_ns"], side="right")
        depth = launched.cast(pl.Int64) - pl.int_range(own.height, eager=True) - 1
        own = own.with_columns(
            depth.alias("depth"),
            (pl.col("start_ns") - pl.col("launch_ns")).alias("delay_ns"),
            (
                pl.col("start_ns") - (pl.col("start_ns") + pl.col("duration_ns")).cum_max().shift(1)
            ).alias("gap_ns"),
        )
        gap = pl.col("gap_ns").clip(lower_bound=0)
        found.append(
            own.select(
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
    return pl.concat(found)
