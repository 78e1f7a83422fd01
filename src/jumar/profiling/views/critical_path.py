"""The chain of device ops and host calls that determines the shortest possible step."""

import numpy as np
import polars as pl

from jumar.ground.text import Text
from jumar.profiling.columns import RANK, SHARE, column, largest_first, ms
from jumar.profiling.profile import END, Profile
from jumar.profiling.views.gap_calls import filling_calls
from jumar.profiling.views.view import VIEWS, Impossible, Options, View
from jumar.profiling.views.windows import communicates, steady, step_windows

_MIN_WAIT_NS = 5_000
"""Shorter gaps between ops on a device do not count as waiting."""


def paths(profile: Profile, rank: int, windows: pl.DataFrame) -> pl.DataFrame:
    """The critical path through each step; its segments fill the step without gaps.

    The predecessor of an op is the op that ended last before its start, on any stream of the rank,
    since profiles do not record events between streams. Longer gaps belong to the host, shorter
    ones to the device.

    Args:
        profile: A profile with start times, and host calls if recorded.
        rank: The rank.
        windows: `begin_ns` and `end_ns` of steps, which must not overlap.

    Returns:
        `place`, `what`, `start_ns` and `end_ns` of all segments, by time.
    """
    ops = _timed_ops(profile, rank)
    step_starts, step_ends = (windows[name].to_numpy() for name in ("begin_ns", "end_ns"))
    starts = ops["start_ns"].to_numpy()
    # An extra element, so that the -1 of a step's end can be looked up like an op.
    op_ends = np.append(ops["end_ns"].to_numpy(), 0)
    chain, step = _chains(starts, op_ends, step_starts, step_ends)
    is_op = chain >= 0
    low = np.where(
        is_op, np.maximum(np.append(starts, 0)[chain], step_starts[step]), step_ends[step]
    )
    high = np.where(is_op, op_ends[chain], step_ends[step])
    op_segments = _op_segments(ops, chain[is_op], low[is_op], high[is_op])
    before = np.append(high[1:], 0)
    before = np.where(np.append(step[1:] == step[:-1], False), before, step_starts[step])
    gap_rows = np.flatnonzero(low > before)
    gap_rows = gap_rows[np.argsort(before[gap_rows])]
    gaps = _gap_segments(profile, rank, before[gap_rows], low[gap_rows])
    return pl.concat([op_segments, gaps]).sort("start_ns")


def _timed_ops(profile: Profile, rank: int) -> pl.DataFrame:
    """The ops of a rank with a duration, by end time."""
    return (
        profile.ops.select("rank", "name", "type", "core", "start_ns", "duration_ns")
        # Ops of duration 0 are not on the path, and would cause an endless loop.
        .filter(
            (pl.col("rank").fill_null(0) == rank)
            & pl.col("start_ns").is_not_null()
            & (pl.col("duration_ns") > 0)
        )
        .with_columns(END.alias("end_ns"))
        .sort("end_ns", "start_ns", maintain_order=True)
    )


def _chains(
    starts: np.ndarray, op_ends: np.ndarray, step_starts: np.ndarray, step_ends: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """For each step, -1 and the ops on its path, from its end backwards; and the step of each."""
    ended = op_ends[:-1]
    predecessor = (np.searchsorted(ended, starts, side="right") - 1).tolist()
    last_op = (np.searchsorted(ended, step_ends, side="right") - 1).tolist()
    end_times = ended.tolist()
    chain: list[int] = []
    lengths: list[int] = []
    for op, step_start in zip(last_op, step_starts.tolist(), strict=True):
        start_length = len(chain)
        chain.append(-1)
        while op >= 0 and end_times[op] > step_start:
            chain.append(op)
            op = predecessor[op]
        lengths.append(len(chain) - start_length)
    return np.asarray(chain, np.int64), np.repeat(np.arange(len(lengths)), lengths)


def _op_segments(
    ops: pl.DataFrame, chain: np.ndarray, low: np.ndarray, high: np.ndarray
) -> pl.DataFrame:
    """The segments in which an op ran."""
    place = pl.when(communicates(ops)).then(pl.lit("communication")).otherwise(pl.lit("device"))
    names = ops.select(
        place.alias("place"), pl.coalesce("type", "name").fill_null("?").alias("what")
    )
    return names[chain].with_columns(
        pl.Series("start_ns", low, pl.Int64), pl.Series("end_ns", high, pl.Int64)
    )


def _gap_segments(
    profile: Profile, rank: int, starts: np.ndarray, ends: np.ndarray
) -> pl.DataFrame:
    """The segments in which no op ran, with the host call that covers most of each."""
    calls = (
        profile.host.filter(
            (pl.col("rank").fill_null(0) == rank)
            & pl.col("layer").is_in(["op", "cann", "runtime", "mark"])
            & ~pl.col("name").str.starts_with("ProfilerStep")
            & pl.col("start_ns").is_not_null()
            & (pl.col("duration_ns") > 0)
        )
        .select("name", "start_ns", END.alias("end_ns"))
        .sort("start_ns", "end_ns", descending=[False, True], maintain_order=True)
    )
    waits = ends - starts > _MIN_WAIT_NS
    filled = np.full(len(starts), -1, np.int64)
    filled[waits] = filling_calls(
        starts[waits], ends[waits], calls["start_ns"].to_numpy(), calls["end_ns"].to_numpy()
    )
    called = pl.Series("call", filled).replace(-1, None)
    gaps = pl.DataFrame({"start_ns": starts, "end_ns": ends, "waits": waits})
    waiting = pl.when("waits")
    return gaps.with_columns(calls["name"].gather(called).alias("call")).select(
        waiting.then(pl.lit("host")).otherwise(pl.lit("device")).alias("place"),
        waiting.then(pl.col("call").fill_null("no call recorded"))
        .otherwise(pl.lit("between ops"))
        .alias("what"),
        "start_ns",
        "end_ns",
    )


def critical_path(profile: Profile, _: Options) -> pl.DataFrame:
    """The critical path through the steady steps of the slowest rank, by op or call."""
    windows = steady(step_windows(profile))
    if windows.is_empty() or profile.ops["start_ns"].null_count() == profile.ops.height:
        raise Impossible("ops with start times")
    step_time = (pl.col("end_ns") - pl.col("begin_ns")).mean()
    rank = int(windows.group_by("rank").agg(step_time).sort("end_ns", "rank")["rank"][-1])
    table = paths(profile, rank, windows.filter(pl.col("rank") == rank))
    size = pl.col("end_ns") - pl.col("start_ns")
    total = max(int((table["end_ns"] - table["start_ns"]).sum()), 1)
    return (
        table.group_by("place", "what")
        .agg(pl.len().alias("pieces"), size.sum().alias("path_ns"))
        .pipe(largest_first, "path_ns", "what", "place")
        .with_columns(
            pl.lit(rank, dtype=pl.Int32).alias("rank"),
            (pl.col("path_ns") * 100 / total).round(2).alias("share_%"),
        )
    )


VIEWS.add(
    View(
        name="critical",
        title=Text(en="The critical path of device and host", zh="设备与 host 的关键路径"),
        question=Text(
            en="Which chain of ops and host calls determines the step time?",
            zh="迭代时长由哪条算子与调用链决定？",
        ),
        columns=(
            RANK,
            column("place", "位置"),
            column("what", "内容"),
            column("pieces", "段数"),
            ms("path", "路径耗时", "on the path"),
            SHARE,
        ),
        compute=critical_path,
        order=150,
    )
)
