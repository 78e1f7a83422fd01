"""What the host does while the device is idle: blocking calls, data loading, launching ops."""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import polars as pl

from jumar.ground.text import Text
from jumar.profiling.profile import END, Profile, once
from jumar.profiling.views.intervals import SPAN, difference, length_before, spans, union
from jumar.profiling.views.windows import (
    MEMORY_COPIES,
    as_spans,
    communication_spans,
    computing_spans,
    steady,
    step_windows,
)

BLOCKING = (
    ("aten::item", r"^aten::(item|_local_scalar_dense)$"),
    ("aten::is_nonzero", r"^aten::is_nonzero$"),
    ("aten::nonzero", r"^aten::(nonzero|nonzero_numpy|argwhere)$"),
    ("aten::masked_select", r"^aten::masked_select$"),
    ("aten::unique", r"^aten::_?unique\w*$"),
    ("aten::equal", r"^aten::equal$"),
)
"""Ops for whose result the host waits, and patterns of their names."""

SYNCHRONISATION = (
    r"(?i)aclrtSynchronize|(cuda|cu|hip)(Ctx|Stream|Device|Event)Synchronize|aten::(cpu|numpy)$"
)
"""Calls that wait for a stream or the device, or copy from it synchronously (`.cpu()`)."""

_WAITING_COPIES = r"^((cuda|hip|aclrt)Memcpy(2D)?|hipMemcpyWithStream|(cu|hip)Memcpy(DtoH|HtoD).*)$"
"""Synchronous copies, which also wait for everything launched before them."""

LOADING = r"(?i)dataloader|__next__|get_?next|^data[ _.:-]?(load|wait|next|batch)|^data$"
"""Calls that fetch the next batch."""

_GARBAGE_COLLECTION = r"(?i)^gc$|garbage"
_LAUNCHING_LAYERS = ("op", "cann", "runtime", "dequeue")
STEP_MARK = r"^ProfilerStep#"
"""The profiler's step marks, which cover whole steps and explain nothing."""

_MIN_IDLE_SHARE = 0.5
"""A call explains idle time if at least this share of the call is idle time."""

_MAX_COVERING = 4


class Cause(NamedTuple):
    """A cause of the device's idle time.

    `calls` is the number of calls of each rank, without nested calls; `steady_calls`
    and `longest_ns` count only the steady steps. `host` has the intervals of the calls, `alone` the
    part of them that belongs to no earlier cause.
    """

    label: Text
    kind: str
    calls: Mapping[int, int]
    steady_calls: Mapping[int, int]
    longest_ns: Mapping[int, int]
    host: pl.DataFrame
    alone: pl.DataFrame


@once
def causes(profile: Profile) -> list[Cause]:
    """The causes of idle time, most specific first."""
    host = profile.host.filter(pl.col("duration_ns") > 0)
    if host.is_empty():
        return []
    host_calls = host.filter(pl.col("layer").is_in(["op", "cann", "runtime", "mark"]))
    windows = step_windows(profile)
    steps = steady(windows)
    kinds = [
        ("data", _name_matches(LOADING), Text(en="waiting for data", zh="等待数据")),
        *(
            ("blocking", _name_matches(pattern), Text(en=name, zh=name))
            for name, pattern in BLOCKING
        ),
        (
            "copy",
            _is_pageable_copy(profile),
            Text(en="copies of pageable memory", zh="可分页内存拷贝"),
        ),
        (
            "copy",
            (pl.col("layer") != "op") & _name_matches(_WAITING_COPIES) & ~_name_matches("Async"),
            Text(en="synchronous copies", zh="同步拷贝"),
        ),
        (
            "blocking",
            _name_matches(SYNCHRONISATION),
            Text(en="stream synchronisation", zh="流同步"),
        ),
        (
            "collector",
            _name_matches(_GARBAGE_COLLECTION),
            Text(en="garbage collection", zh="垃圾回收"),
        ),
    ]
    found = [(kind, label, host_calls.filter(is_cause)) for kind, is_cause, label in kinds]
    # Calls as long as half a step are not launches: they run a whole graph, or the training loop.
    step_times = windows.select(pl.col("end_ns") - pl.col("begin_ns")).to_series()
    half_step = float(str(step_times.median() or 0)) / 2
    is_short = (pl.col("duration_ns") < half_step) | pl.lit(half_step == 0)
    launches = host.filter(pl.col("layer").is_in(_LAUNCHING_LAYERS) & is_short)
    launches = launches.filter(~_computes_on_host(profile, launches))
    found.append(("launching", Text(en="launching ops", zh="下发算子"), launches))
    result: list[Cause] = []
    before = pl.DataFrame(schema=SPAN)
    for kind, label, rows in found:
        if rows.height:
            result.append(_cause(label, kind, rows, steps, before))
            before = union(pl.concat([before, result[-1].host]))
    if profile.kind != "cpu":
        inside = as_spans(windows)
        idle = difference(free_time(profile, inside), before)
        longest = 0.9 * float(str(step_times.max() or 0))
        result += _covering(host, idle, before, longest, steps)
    return result


_MIN_HOST_OP_NS = 200_000
"""Ops of at least this duration that launch nothing compute on the host, as in resizing images."""


def _computes_on_host(profile: Profile, calls: pl.DataFrame) -> pl.Series:
    """Whether each call computes on the host: a long op that launched nothing."""
    launched = profile.ops.select(pl.col("rank").fill_null(0), "launch_ns").drop_nulls()
    if launched.is_empty():
        return pl.Series("computes", np.zeros(calls.height, dtype=bool))
    ranks = calls["rank"].fill_null(0).to_numpy()
    starts = calls["start_ns"].to_numpy()
    durations = calls["duration_ns"].to_numpy()
    launch_counts = np.zeros(calls.height, dtype=np.int64)
    for rank, rank_launches in launched.group_by("rank"):
        launch_times = np.sort(rank_launches["launch_ns"].to_numpy())
        of_rank = np.flatnonzero(ranks == rank[0])
        ends = starts[of_rank] + durations[of_rank]
        launch_counts[of_rank] = np.searchsorted(launch_times, ends, "right") - np.searchsorted(
            launch_times, starts[of_rank]
        )
    is_op = (calls["layer"] == "op").to_numpy()
    return pl.Series("computes", is_op & (durations >= _MIN_HOST_OP_NS) & (launch_counts == 0))


def _name_matches(pattern: str) -> pl.Expr:
    return pl.col("name").str.contains(pattern)


def _is_pageable_copy(profile: Profile) -> pl.Expr:
    """Whether a call copies pageable memory, and so blocks until the driver has staged the data."""
    copies = profile.ops.filter(
        pl.col("core").is_in(MEMORY_COPIES)
        & pl.col("kernel").str.contains("(?i)pageable")
        & pl.col("correlation").is_not_null()
    ).select(pl.struct(pl.col("rank").fill_null(0), "correlation").alias("call"))
    call = pl.struct(pl.col("rank").fill_null(0), "correlation")
    return (pl.col("layer") == "runtime") & call.is_in(copies["call"].implode())


def _covering(
    host: pl.DataFrame,
    idle: pl.DataFrame,
    before: pl.DataFrame,
    longest: float,
    steps: pl.DataFrame,
) -> list[Cause]:
    """Calls, Python frames and annotations that overlap otherwise unexplained idle time.

    Only calls that consist mostly of such time count, except calls as long as a step, since the
    training loop and the step's annotation cover everything. Of nested calls, the innermost counts.
    """
    is_mark = pl.col("name").str.contains(STEP_MARK)
    calls = host.filter((pl.col("duration_ns") < longest) & ~is_mark).with_columns(
        pl.col("rank").fill_null(0)
    )
    result: list[Cause] = []
    while len(result) < _MAX_COVERING and calls.height and idle.height:
        calls = _with_idle(calls, idle).filter(
            pl.col("idle_ns") >= _MIN_IDLE_SHARE * pl.col("duration_ns")
        )
        names = calls.group_by("name").agg(pl.col("idle_ns", "duration_ns").sum())
        longest_idle = names.filter(pl.col("idle_ns") >= 0.95 * pl.col("idle_ns").max())
        if not longest_idle["idle_ns"].sum():
            break
        name = str(longest_idle.sort("duration_ns", "name")["name"][0])
        rows = calls.filter(pl.col("name") == name)
        result.append(_cause(Text(en=name, zh=name), "covering", rows, steps, before))
        cause_spans = result[-1].host
        before, idle = union(pl.concat([before, cause_spans])), difference(idle, cause_spans)
        calls = calls.filter(pl.col("name") != name)
    return result


def _with_idle(calls: pl.DataFrame, idle: pl.DataFrame) -> pl.DataFrame:
    """The calls with `idle_ns`, their overlap with idle time."""
    frames: list[pl.DataFrame] = []
    for (rank,), rank_calls in calls.group_by("rank", maintain_order=True):
        of_rank = idle.filter(pl.col("rank") == rank).sort("start_ns")
        bounds = of_rank["start_ns"].to_numpy(), of_rank["end_ns"].to_numpy()
        starts = rank_calls["start_ns"].to_numpy()
        ends = starts + rank_calls["duration_ns"].to_numpy()
        idle_ns = length_before(*bounds, ends) - length_before(*bounds, starts)
        frames.append(rank_calls.with_columns(pl.Series("idle_ns", idle_ns)))
    return pl.concat(frames)


def _cause(
    label: Text, kind: str, calls: pl.DataFrame, steps: pl.DataFrame, before: pl.DataFrame
) -> Cause:
    """A cause, from its calls, the steady steps, and the time of earlier causes."""
    by_thread = ("rank", "thread")
    bounds = steps.group_by("rank").agg(pl.col("begin_ns").min(), pl.col("end_ns").max())
    # `aten::item` calls `aten::_local_scalar_dense`, which counts as one call.
    is_outer = pl.col("until_ns") > pl.col("until_ns").cum_max().shift(1).over(by_thread)
    is_steady = (pl.col("until_ns") > pl.col("begin_ns")) & (pl.col("start_ns") < pl.col("end_ns"))
    counts = (
        calls.lazy()
        .select(
            pl.col("rank").fill_null(0),
            pl.col("thread").fill_null(""),
            *("start_ns", "duration_ns"),
            END.alias("until_ns"),
        )
        .sort(*by_thread, "start_ns", "until_ns", descending=[False, False, False, True])
        .filter(is_outer.fill_null(True))
        .join(bounds.lazy(), on="rank", how="left")
        .with_columns(is_steady.fill_null(True).alias("is_steady"))
        .group_by("rank")
        .agg(
            pl.len(),
            pl.col("is_steady").sum(),
            pl.col("duration_ns").filter("is_steady").max().fill_null(0),
        )
        .collect()
    )
    call_counts, steady_counts, longest = (
        {int(rank): int(value) for rank, value in counts.select("rank", name).iter_rows()}
        for name in ("len", "is_steady", "duration_ns")
    )
    host = union(spans(calls))
    return Cause(label, kind, call_counts, steady_counts, longest, host, difference(host, before))


def free_time(profile: Profile, windows: pl.DataFrame) -> pl.DataFrame:
    """The intervals in the windows in which the device neither computes nor communicates."""
    busy = pl.concat([union(computing_spans(profile)), communication_spans(profile)])
    return difference(windows, busy)
