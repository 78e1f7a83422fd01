"""What the host does while the device is idle: blocking calls, data loading, launching."""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import polars as pl

from jumar.ground.text import Text
from jumar.profiling.profile import Profile
from jumar.profiling.views.intervals import (
    SPAN,
    difference,
    spans,
    union,
)
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
"""Ops whose result the host waits for, and the names that mean them."""

SYNCHRONISATION = (
    r"(?i)aclrtSynchronize|(cuda|cu|hip)(Ctx|Stream|Device|Event)Synchronize|aten::(cpu|numpy)$"
)
"""Calls that wait for a stream or the device, or copy from it at once (`.cpu()`)."""

_WAITING_COPIES = r"^((cuda|hip|aclrt)Memcpy(2D)?|hipMemcpyWithStream|(cu|hip)Memcpy(DtoH|HtoD).*)$"
"""Copies that return when they are done, behind all that was launched before them."""

LOADING = r"(?i)dataloader|__next__|get_?next|^data[ _.:-]?(load|wait|next|batch)|^data$"
"""Calls that fetch the next batch."""

_COLLECTING = r"(?i)^gc$|garbage"
_CALLS = ("op", "cann", "runtime", "dequeue")
STEP_MARK = r"^ProfilerStep#"
"""The profiler's own mark of a step, which covers all of it and explains nothing."""

_IDLE = 0.5
"""A call explains idle time that fills at least this share of it."""

_MOST_COVERING = 4


class Cause(NamedTuple):
    """One reason for a device without work.

    `calls` is how many calls each rank made, without those inside another one; `steady_calls` and
    `longest_ns` are about its steady steps. `host` is when they ran, `alone` the part of it that no
    earlier cause has.
    """

    label: Text
    kind: str
    calls: Mapping[int, int]
    steady_calls: Mapping[int, int]
    longest_ns: Mapping[int, int]
    host: pl.DataFrame
    alone: pl.DataFrame


def causes(profile: Profile) -> list[Cause]:
    """What the host spent time in, most specific first; `alone` excludes the earlier causes."""
    if "causes" not in profile.memo:
        profile.memo["causes"] = _causes(profile)
    return profile.memo["causes"]


def _causes(profile: Profile) -> list[Cause]:
    host = profile.host.filter(pl.col("duration_ns") > 0)
    if host.is_empty():
        return []
    known = host.filter(pl.col("layer").is_in(["op", "cann", "runtime", "mark"]))
    windows = step_windows(profile)
    steps = steady(windows)
    asked = [("data", _named(LOADING), Text(en="waiting for data", zh="等待数据"))]
    asked += [("blocking", _named(pattern), Text(en=name, zh=name)) for name, pattern in BLOCKING]
    asked += [
        (
            "copy",
            _copies_pageable(profile),
            Text(en="copies of pageable memory", zh="可分页内存拷贝"),
        ),
        (
            "copy",
            (pl.col("layer") != "op") & _named(_WAITING_COPIES) & ~_named("Async"),
            Text(en="copies that it waits for", zh="同步拷贝"),
        ),
        ("blocking", _named(SYNCHRONISATION), Text(en="stream synchronisation", zh="流同步")),
        ("collector", _named(_COLLECTING), Text(en="garbage collection", zh="垃圾回收")),
    ]
    result: list[Cause] = []
    before = pl.DataFrame(schema=SPAN)
    for kind, is_cause, label in asked:
        rows = known.filter(is_cause)
        if rows.is_empty():
            continue
        result.append(_cause(label, kind, rows, steps, before))
        before = union(pl.concat([before, result[-1].host]))
    # A call that lasts for half a step is not a launch: it runs a whole graph, or the training.
    lasted = windows.select(pl.col("end_ns") - pl.col("begin_ns")).to_series()
    long = float(str(lasted.median() or 0)) / 2
    short = (pl.col("duration_ns") < long) | pl.lit(long == 0)
    rest = host.filter(pl.col("layer").is_in(_CALLS) & short)
    rest = rest.filter(~_computes_itself(profile, rest))
    if rest.height:
        label = Text(en="launching ops", zh="下发算子")
        result.append(_cause(label, "launching", rest, steps, before))
        before = union(pl.concat([before, result[-1].host]))
    if profile.kind != "cpu":
        inside = as_spans(windows, start="begin_ns")
        left = difference(free_time(profile, inside), before)
        longest = 0.9 * float(str(lasted.max() or 0))
        result += _covering(host, left, before, longest, steps)
    return result


_WORKS_NS = 200_000
"""An op that launches nothing in so long computes on the host, such as a picture's resizing."""


def _computes_itself(profile: Profile, calls: pl.DataFrame) -> pl.Series:
    """Which calls are host ops: long ones that launched nothing."""
    own = pl.Series("own", np.zeros(calls.height, dtype=bool))
    launched = profile.ops.select(pl.col("rank").fill_null(0), "launch_ns").drop_nulls()
    if launched.is_empty():
        return own
    ranks = calls["rank"].fill_null(0).to_numpy()
    starts = calls["start_ns"].to_numpy()
    lasted = calls["duration_ns"].to_numpy()
    inside = np.zeros(calls.height, dtype=np.int64)
    for rank, moments in launched.group_by("rank"):
        at = np.sort(moments["launch_ns"].to_numpy())
        here = np.flatnonzero(ranks == rank[0])
        ends = starts[here] + lasted[here]
        inside[here] = np.searchsorted(at, ends, "right") - np.searchsorted(at, starts[here])
    is_op = (calls["layer"] == "op").to_numpy()
    return pl.Series("own", is_op & (lasted >= _WORKS_NS) & (inside == 0))


def _named(pattern: str) -> pl.Expr:
    return pl.col("name").str.contains(pattern)


def _copies_pageable(profile: Profile) -> pl.Expr:
    """Whether a call copies pageable memory, which the driver stages while the call blocks."""
    copies = profile.ops.filter(
        pl.col("core").is_in(MEMORY_COPIES)
        & pl.col("kernel").str.contains("(?i)pageable")
        & pl.col("correlation").is_not_null()
    ).select(pl.struct(pl.col("rank").fill_null(0), "correlation").alias("call"))
    call = pl.struct(pl.col("rank").fill_null(0), "correlation")
    return (pl.col("layer") == "runtime") & call.is_in(copies["call"].implode())


def _covering(
    host: pl.DataFrame,
    left: pl.DataFrame,
    before: pl.DataFrame,
    longest: float,
    steps: pl.DataFrame,
) -> list[Cause]:
    """Calls, Python frames and annotations that overlap otherwise unexplained idle time.

    Only calls that are mostly such time count, and none as long as a step: the training loop and
    the step's own annotation lie over everything. Of nested calls the innermost is taken.
    """
    is_mark = pl.col("name").str.contains(STEP_MARK)
    calls = host.filter((pl.col("duration_ns") < longest) & ~is_mark).with_columns(
        pl.col("rank").fill_null(0)
    )
    result: list[Cause] = []
    while len(result) < _MOST_COVERING and calls.height and left.height:
        calls = _with_idle(calls, left).filter(pl.col("idle_ns") >= _IDLE * pl.col("duration_ns"))
        names = calls.group_by("name").agg(pl.col("idle_ns", "duration_ns").sum())
        most = names.filter(pl.col("idle_ns") >= 0.95 * pl.col("idle_ns").max())
        if not most["idle_ns"].sum():
            break
        name = str(most.sort("duration_ns", "name")["name"][0])
        rows = calls.filter(pl.col("name") == name)
        result.append(_cause(Text(en=name, zh=name), "covering", rows, steps, before))
        own = result[-1].host
        before, left = union(pl.concat([before, own])), difference(left, own)
        calls = calls.filter(pl.col("name") != name)
    return result


def _with_idle(calls: pl.DataFrame, idle: pl.DataFrame) -> pl.DataFrame:
    """The calls with `idle_ns`, their overlap with idle time."""
    frames: list[pl.DataFrame] = []
    for (rank,), own in calls.group_by("rank", maintain_order=True):
        of_rank = idle.filter(pl.col("rank") == rank).sort("start_ns")
        starts = own["start_ns"].to_numpy()
        inside = _until(of_rank, starts + own["duration_ns"].to_numpy()) - _until(of_rank, starts)
        frames.append(own.with_columns(pl.Series("idle_ns", inside)))
    return pl.concat(frames)


def _until(idle: pl.DataFrame, moments: np.ndarray) -> np.ndarray:
    """How much of some sorted intervals is before each moment."""
    starts, ends = idle["start_ns"].to_numpy(), idle["end_ns"].to_numpy()
    if not len(starts):
        return np.zeros(len(moments), dtype=np.int64)
    sums = np.concatenate([[0], np.cumsum(ends - starts)])
    place = np.searchsorted(starts, moments, side="right")
    beyond = np.where(place > 0, ends[np.maximum(place - 1, 0)] - moments, 0)
    return sums[place] - np.clip(beyond, 0, None)


def _cause(
    label: Text, kind: str, calls: pl.DataFrame, steps: pl.DataFrame, before: pl.DataFrame
) -> Cause:
    """A cause from its calls, the steady steps, and the time of the causes before it."""
    by_thread = ("rank", "thread")
    bounds = steps.group_by("rank").agg(pl.col("begin_ns").min(), pl.col("end_ns").max())
    until = pl.col("start_ns") + pl.col("duration_ns")
    # `aten::item` calls `aten::_local_scalar_dense`: that is one call.
    is_outer = pl.col("until_ns") > pl.col("until_ns").cum_max().shift(1).over(by_thread)
    is_steady = (pl.col("until_ns") > pl.col("begin_ns")) & (pl.col("start_ns") < pl.col("end_ns"))
    counts = (
        calls.lazy()
        .select(
            pl.col("rank").fill_null(0),
            pl.col("thread").fill_null(""),
            *("start_ns", "duration_ns"),
            until.alias("until_ns"),
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
    made, steady_ones, longest = (
        {int(rank): int(value) for rank, value in counts.select("rank", name).iter_rows()}
        for name in ("len", "is_steady", "duration_ns")
    )
    host = union(spans(calls))
    return Cause(label, kind, made, steady_ones, longest, host, difference(host, before))


def free_time(profile: Profile, windows: pl.DataFrame) -> pl.DataFrame:
    """When the device neither computes nor communicates, within the given intervals."""
    busy = pl.concat([union(computing_spans(profile)), communication_spans(profile)])
    return difference(windows, busy)
