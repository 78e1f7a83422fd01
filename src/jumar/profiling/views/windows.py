"""Classifies ops as computing or communicating, and finds the time window of each step."""

import polars as pl

from jumar.profiling.profile import COMMUNICATION, Profile, once
from jumar.profiling.views.intervals import SPAN, in_columns, spans, union

COLLECTIVE_PREFIXES = ("hcom_", "nccl", "gloo:", "c10d::")
"""Prefixes of the names of collectives, in lower case."""

MEMORY_COPIES = ("CUDA_MEMCPY", "CUDA_MEMSET")
"""The cores of memory copies and memsets, which are not compute."""

WINDOWS = {
    "rank": pl.Int32(),
    "step": pl.Int64(),
    "begin_ns": pl.Int64(),
    "start_ns": pl.Int64(),
    "end_ns": pl.Int64(),
}
"""One row per step: `start_ns` is the start of its first op, `begin_ns` the previous step's end."""


def is_communication() -> pl.Expr:
    """Whether an op is a collective; at Level 0, only the name shows this."""
    has_prefix = pl.any_horizontal(
        pl.col("name").str.to_lowercase().str.starts_with(prefix) for prefix in COLLECTIVE_PREFIXES
    )
    return pl.col("core").eq_missing(COMMUNICATION) | (
        pl.col("core").is_null() & has_prefix.fill_null(False)
    )


def communicates(ops: pl.DataFrame) -> pl.Expr:
    """`is_communication`, skipping the check of names if every op has a core."""
    if ops["core"].null_count():
        return is_communication()
    return pl.col("core") == COMMUNICATION


def computing(ops: pl.DataFrame) -> pl.DataFrame:
    """The ops that compute: all but collectives and memory copies."""
    return ops.filter(computes(ops))


def computes(ops: pl.DataFrame) -> pl.Expr:
    """Whether an op computes: all but collectives and memory copies."""
    return ~communicates(ops) & ~pl.col("core").is_in(MEMORY_COPIES).fill_null(False)


def communicating(ops: pl.DataFrame) -> pl.DataFrame:
    """The ops that are collectives."""
    return ops.filter(communicates(ops))


_SPAN_COLUMNS = ("rank", "name", "core", "start_ns", "duration_ns")
"""The columns for intervals; filtering all fifty, for a million ops, would take seconds."""


def computing_spans(profile: Profile) -> pl.DataFrame:
    """The intervals in which ops compute, one per op."""
    return spans(computing(profile.ops.select(_SPAN_COLUMNS)))


@once
def computing_union(profile: Profile) -> pl.DataFrame:
    """The intervals in which anything computes."""
    return union(computing_spans(profile))


def step_windows(profile: Profile) -> pl.DataFrame:
    """Start and end of each step of each rank (`WINDOWS`), in order.

    If ops have a step, the window spans the step's ops, since the device runs behind the host; else
    it spans the step mark. Without either, all ops are step 0.
    """
    ops = (
        profile.ops.select("rank", "step", "core", "start_ns", "duration_ns")
        .with_columns(pl.col("rank").fill_null(0))
        .filter(pl.col("start_ns").is_not_null())
    )
    end = pl.col("start_ns") + pl.col("duration_ns").fill_null(0)
    bounds = (pl.col("start_ns").min(), end.max().alias("end_ns"))
    ops_in_steps = ops.filter(pl.col("step").is_not_null())
    marks = profile.steps.drop_nulls(["start_ns", "end_ns"]).with_columns(
        pl.col("rank").fill_null(0)
    )
    if ops_in_steps.height and profile.kind != "cpu":
        copies = pl.col("core").is_in(MEMORY_COPIES).fill_null(False)
        work_start = pl.col("start_ns").filter(~copies).min().alias("work_ns")
        windows = _without_copies_ahead(
            ops_in_steps.group_by("rank", "step").agg(*bounds, work_start)
        )
    elif marks.height:
        windows = marks.select("rank", "step", "start_ns", "end_ns")
    elif ops_in_steps.height:
        windows = ops_in_steps.group_by("rank", "step").agg(bounds)
    else:
        step = pl.lit(0, dtype=pl.Int64).alias("step")
        windows = ops.group_by("rank").agg(bounds).with_columns(step)
    return _in_order(windows, marks, ops.filter(pl.col("step").is_null()))


def _without_copies_ahead(windows: pl.DataFrame) -> pl.DataFrame:
    """Windows that do not start with a copy made during the previous step.

    Loaders copy the next batch on a separate stream while the device computes; a step that started
    there would shorten the previous one.

    Args:
        windows: Windows with `work_ns`, the start of the first op that is not a copy.
    """
    before = pl.col("end_ns").cum_max().shift(1).over("rank")
    ahead = pl.col("start_ns") < before
    start = pl.when(ahead).then(pl.min_horizontal("work_ns", before)).otherwise("start_ns")
    return windows.sort("rank", "start_ns", "step").with_columns(start.alias("start_ns"))


def has_steps(profile: Profile) -> bool:
    """Whether the profile has steps; if not, `step_windows` treats all ops as one."""
    marked = profile.steps.drop_nulls(["start_ns", "end_ns"]).height > 0
    return marked or profile.ops["step"].null_count() < profile.ops.height


def _in_order(windows: pl.DataFrame, marks: pl.DataFrame, others: pl.DataFrame) -> pl.DataFrame:
    """Sorted windows that do not overlap: a step ends at the latest when the next one starts.

    The time before the first step of a rank is known only if the producer marked its start, and
    excludes ops of an earlier step.

    Args:
        windows: Start and end of each step.
        marks: The producer's step marks.
        others: The ops without a step.
    """
    first = marks.select("rank", "step", pl.col("start_ns").alias("mark_ns"))
    windows = windows.filter(pl.col("end_ns") > pl.col("start_ns")).sort("rank", "start_ns", "step")
    next_start = pl.col("start_ns").shift(-1).over("rank")
    windows = windows.with_columns(pl.min_horizontal("end_ns", next_start).alias("end_ns")).filter(
        pl.col("end_ns") > pl.col("start_ns")
    )
    before = pl.col("end_ns").shift(1).over("rank")
    earlier = (
        others.join(
            windows.group_by("rank").agg(pl.col("start_ns").min().alias("first_ns")), on="rank"
        )
        .filter(pl.col("start_ns") < pl.col("first_ns"))
        .group_by("rank")
        .agg((pl.col("start_ns") + pl.col("duration_ns").fill_null(0)).max().alias("earlier_ns"))
    )
    marked = (
        pl.when(pl.col("mark_ns").is_not_null())
        .then(pl.min_horizontal(pl.max_horizontal("mark_ns", "earlier_ns"), "start_ns"))
        .otherwise("start_ns")
    )
    return (
        windows.join(first.unique(["rank", "step"], keep="first"), on=["rank", "step"], how="left")
        .join(earlier, on="rank", how="left")
        .sort("rank", "start_ns")
        .with_columns(before.fill_null(marked).alias("begin_ns"))
        .pipe(in_columns, WINDOWS)
        .sort("rank", "start_ns")
    )


def steady(windows: pl.DataFrame) -> pl.DataFrame:
    """The windows without warm-up steps and without a truncated last step.

    Warm-up steps are the first steps, at most half of all, that take more than 1.5 times the median
    of the later half. The last step is truncated if it takes less than half that median. If there
    are fewer than three steps, all are kept.
    """
    kept: list[pl.DataFrame] = []
    for _, of_rank in windows.group_by("rank", maintain_order=True):
        step_times = (of_rank["end_ns"] - of_rank["begin_ns"]).to_list()
        later = sorted(step_times[len(step_times) // 2 :])
        limit = 1.5 * later[len(later) // 2]
        first = 0
        while len(step_times) >= 3 and first < len(step_times) // 2 and step_times[first] > limit:
            first += 1
        is_truncated = len(step_times) >= 3 and step_times[-1] < limit / 3
        kept.append(of_rank[first : len(step_times) - is_truncated])
    return pl.concat(kept) if kept else windows


def within(windows: pl.DataFrame, merged: pl.DataFrame) -> pl.Series:
    """The nanoseconds between start and end of each window that disjoint intervals cover."""
    size = pl.col("end_ns") - pl.col("start_ns")
    filled = merged.with_columns(size.cum_sum().over("rank").alias("so_far")).sort("start_ns")
    until = [
        windows.select("rank", pl.col(edge).alias("at_ns"))
        .with_row_index("row")
        .sort("at_ns")
        .join_asof(filled, left_on="at_ns", right_on="start_ns", by="rank", check_sortedness=False)
        # The part of an interval after the edge does not count.
        .select("row", pl.col("so_far") - (pl.col("end_ns") - pl.col("at_ns")).clip(lower_bound=0))
        .sort("row")["so_far"]
        .fill_null(0)
        for edge in ("start_ns", "end_ns")
    ]
    return until[1] - until[0]


def as_spans(windows: pl.DataFrame) -> pl.DataFrame:
    """The windows, with the time before their first op, as intervals."""
    return in_columns(windows.select("rank", pl.col("begin_ns").alias("start_ns"), "end_ns"), SPAN)


@once
def communication_spans(profile: Profile) -> pl.DataFrame:
    """The intervals of collectives, from the collectives' table if the ops include none."""
    communication = spans(communicating(profile.ops.select(_SPAN_COLUMNS)))
    if communication.is_empty() and profile.collectives.height:
        communication = spans(profile.collectives, duration="elapse_ns")
    return union(communication)


@once
def copying_union(profile: Profile) -> pl.DataFrame:
    """The intervals in which memory is copied or set."""
    copies = pl.col("core").is_in(MEMORY_COPIES).fill_null(False)
    return union(spans(profile.ops.select(_SPAN_COLUMNS).filter(copies)))


@once
def busy_union(profile: Profile) -> pl.DataFrame:
    """The intervals in which anything computes or communicates."""
    computing, communication = computing_union(profile), communication_spans(profile)
    if communication.is_empty():
        return computing
    return union(pl.concat([computing, communication]))
