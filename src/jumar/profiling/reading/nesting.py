"""Calls within calls: what each did itself, and which one was running at a moment."""

import numpy as np
import polars as pl


def self_times(calls: pl.DataFrame) -> pl.Series:
    """The duration of each call less that of the calls directly within it.

    Args:
        calls: `thread`, `start_ns`, `duration_ns`; in any order.
    """
    threads, starts, ends, order = _sorted(calls)
    own = ends - starts
    stack: list[int] = []
    ends_list, threads_list, durations = ends.tolist(), threads.tolist(), own.tolist()
    starts_list = starts.tolist()
    result = own.tolist()
    thread = None
    for row in order:
        if threads_list[row] != thread:
            thread = threads_list[row]
            stack.clear()
        while stack and ends_list[stack[-1]] <= starts_list[row]:
            stack.pop()
        if stack:
            result[stack[-1]] -= durations[row]
        stack.append(row)
    return pl.Series("self_ns", np.maximum(np.array(result, dtype=np.int64), 0))


def innermost(calls: pl.DataFrame, moments: pl.DataFrame) -> pl.Series:
    """The row of the call that was running innermost at each moment; null where none was.

    Args:
        calls: `thread`, `start_ns`, `duration_ns`.
        moments: `thread`, `start_ns`.
    """
    both = pl.concat(
        [
            calls.select("thread", "start_ns", "duration_ns").with_row_index("row"),
            moments.select(
                "thread", "start_ns", pl.lit(-1, pl.Int64).alias("duration_ns")
            ).with_row_index("row"),
        ]
    )
    threads, starts, ends, order = _sorted(both)
    threads_list, starts_list, ends_list = threads.tolist(), starts.tolist(), ends.tolist()
    rows = both["row"].to_list()
    found: list[int | None] = [None] * moments.height
    stack: list[int] = []
    thread = None
    for place in order:
        if threads_list[place] != thread:
            thread = threads_list[place]
            stack.clear()
        while stack and ends_list[stack[-1]] <= starts_list[place]:
            stack.pop()
        if place < calls.height:
            stack.append(place)
        elif stack:
            found[rows[place]] = rows[stack[-1]]
    return pl.Series("row", found, dtype=pl.UInt32)


def _sorted(calls: pl.DataFrame) -> tuple[np.ndarray, np.ndarray, np.ndarray, list[int]]:
    """Threads as numbers, starts, ends, and the order in which calls begin, outer ones first."""
    threads = calls["thread"].fill_null("").rank("dense").to_numpy().astype(np.int64)
    starts = calls["start_ns"].fill_null(0).to_numpy().astype(np.int64)
    durations = calls["duration_ns"].fill_null(0).to_numpy().astype(np.int64)
    order = np.lexsort((-durations, starts, threads))
    return threads, starts, starts + durations, order.tolist()


def with_waits(ops: pl.DataFrame) -> pl.DataFrame:
    """The ops with `wait_ns`: from the latest end before on the same stream to their start."""
    end = pl.col("start_ns") + pl.col("duration_ns")
    return ops.sort("start_ns", maintain_order=True).with_columns(
        (pl.col("start_ns") - end.cum_max().shift(1).over("device", "stream"))
        .clip(lower_bound=0)
        .alias("wait_ns")
    )


def step_at(moment: pl.Series, steps: pl.DataFrame) -> pl.Series:
    """The step in which each moment lies; null outside of all."""
    if not steps.height:
        return pl.Series("step", [None] * len(moment), dtype=pl.Int64)
    ordered = steps.select("step", "start_ns", "end_ns").sort("start_ns")
    place = ordered["start_ns"].search_sorted(moment.fill_null(-1), side="right").cast(pl.Int64) - 1
    found = ordered[place.clip(0, ordered.height - 1)]
    inside = (place >= 0) & (moment.fill_null(-1) < found["end_ns"])
    return found["step"].zip_with(inside, pl.Series("step", [None] * len(moment), dtype=pl.Int64))
