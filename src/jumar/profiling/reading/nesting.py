"""Calls within calls: what each did itself, and which one was running at a moment."""

from typing import Final

import numpy as np
import polars as pl

_MOMENT: Final = -1
"""A duration that no call has: such a row lies in calls, and none lies in it."""

_BLOCK: Final = 65_536


def self_times(calls: pl.DataFrame) -> pl.Series:
    """The duration of each call less that of the calls directly within it.

    Args:
        calls: `thread`, `start_ns`, `duration_ns`; in any order.
    """
    durations = calls["duration_ns"].fill_null(0).to_numpy().astype(np.int64)
    within = np.zeros(calls.height, dtype=np.int64)
    parents = _parents(calls)
    inner = parents >= 0
    np.add.at(within, parents[inner], durations[inner])
    return pl.Series("self_ns", np.maximum(durations - within, 0))


def innermost(calls: pl.DataFrame, moments: pl.DataFrame) -> pl.Series:
    """The row of the call that was running innermost at each moment; null where none was.

    Args:
        calls: `thread`, `start_ns`, `duration_ns`.
        moments: `thread`, `start_ns`.
    """
    both = pl.concat(
        [
            calls.select("thread", "start_ns", "duration_ns"),
            moments.select("thread", "start_ns", pl.lit(_MOMENT, pl.Int64).alias("duration_ns")),
        ]
    )
    found = pl.Series("row", _parents(both)[calls.height :])
    return found.set(found < 0, None)


def _parents(calls: pl.DataFrame) -> np.ndarray:
    """The row of the call around each call, or -1.

    A sweep over calls in the order in which they begin, outer ones first. Only a block of rows at
    a time becomes Python numbers: of ten million calls they would be gigabytes.
    """
    threads = calls["thread"].fill_null("").rank("dense").to_numpy().astype(np.int32)
    starts = calls["start_ns"].fill_null(0).to_numpy().astype(np.int64)
    durations = calls["duration_ns"].fill_null(0).to_numpy().astype(np.int64)
    ends = starts + durations
    order = np.lexsort((-durations, starts, threads))
    result = np.full(len(order), -1, dtype=np.int64)
    stack: list[tuple[int, int]] = []
    thread = -1
    for block in range(0, len(order), _BLOCK):
        rows = order[block : block + _BLOCK]
        parents: list[int] = []
        for row, of, start, end in zip(
            rows.tolist(),
            threads[rows].tolist(),
            starts[rows].tolist(),
            ends[rows].tolist(),
            strict=True,
        ):
            if of != thread:
                thread = of
                stack.clear()
            while stack and stack[-1][0] <= start:
                stack.pop()
            parents.append(stack[-1][1] if stack else -1)
            if end >= start:
                stack.append((end, row))
        result[rows] = parents
    return result


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
