"""Nested calls: each one's enclosing call, and the innermost call running at a given time."""

from typing import Final

import numpy as np
import polars as pl

from jumar.profiling.profile import END

MOMENT: Final = -1
"""The duration of rows that only mark a time: they have parents but no children."""

_ROWS_PER_BLOCK: Final = 65_536


def innermost(calls: pl.DataFrame, moments: pl.DataFrame) -> pl.Series:
    """The row of the innermost call running at each of some times; null if none.

    Args:
        calls: `thread`, `start_ns`, `duration_ns` of calls.
        moments: `thread` and `start_ns` of the times.
    """
    rows = pl.concat(
        [
            calls.select("thread", "start_ns", "duration_ns"),
            moments.select("thread", "start_ns", pl.lit(MOMENT, pl.Int64).alias("duration_ns")),
        ]
    )
    threads = rows["thread"].fill_null("").rank("dense")
    all_parents = Sweep().parents(threads, rows["start_ns"], rows["duration_ns"])
    parents = pl.Series("row", all_parents[calls.height :])
    return parents.set(parents < 0, None)


class Sweep:
    """Finds the parents of calls that are passed in consecutive time spans.

    Calls are identified by their index among all calls passed so far.
    """

    def __init__(self) -> None:
        self._open: dict[int, list[tuple[int, int]]] = {}
        self._count = 0

    def parents(self, threads: pl.Series, starts: pl.Series, durations: pl.Series) -> np.ndarray:
        """The index of the call that directly encloses each call; -1 if none.

        Visits calls by start time, outer ones first. Only a block of rows at a time is converted to
        Python integers, which would take gigabytes for ten million calls.

        Args:
            threads: The thread of each call, as a number.
            starts: The start of each call; not before any call of an earlier span.
            durations: The duration of each call.
        """
        thread_of = threads.to_numpy().astype(np.int64)
        start_of = starts.fill_null(0).to_numpy().astype(np.int64)
        duration_of = durations.fill_null(0).to_numpy().astype(np.int64)
        end_of = start_of + duration_of
        order = np.lexsort((-duration_of, start_of, thread_of))
        result = np.full(len(order), -1, dtype=np.int64)
        thread, stack = -1, list[tuple[int, int]]()
        for block in range(0, len(order), _ROWS_PER_BLOCK):
            rows = order[block : block + _ROWS_PER_BLOCK]
            parents: list[int] = []
            for row, row_thread, start, end in zip(
                (rows + self._count).tolist(),
                thread_of[rows].tolist(),
                start_of[rows].tolist(),
                end_of[rows].tolist(),
                strict=True,
            ):
                if row_thread != thread:
                    thread, stack = row_thread, self._open.setdefault(row_thread, [])
                while stack and stack[-1][0] <= start:
                    stack.pop()
                parents.append(stack[-1][1] if stack else -1)
                if end >= start:
                    stack.append((end, row))
            result[rows] = parents
        self._count += len(order)
        return result

    def still_open(self, moment: int) -> np.ndarray:
        """The sorted indices of calls that have not ended at a moment; the others are forgotten."""
        for thread, stack in list(self._open.items()):
            self._open[thread] = [call for call in stack if call[0] > moment]
            if not self._open[thread]:
                del self._open[thread]
        return np.sort(
            np.array([row for stack in self._open.values() for _, row in stack], dtype=np.int64)
        )


def with_waits(ops: pl.DataFrame) -> pl.DataFrame:
    """The ops with `wait_ns`, the time since the last op on the same stream ended."""
    return ops.sort("start_ns", maintain_order=True).with_columns(
        (pl.col("start_ns") - END.cum_max().shift(1).over("device", "stream"))
        .clip(lower_bound=0)
        .alias("wait_ns")
    )


def launched_before_recording(ops: pl.DataFrame) -> pl.Series:
    """Whether each op was launched before the recording began, and so belongs to an earlier step.

    Streams execute in order, and the device runs behind the host. So an op without a recorded
    launch was already in the queue if it starts before the first op of its stream that has one.
    On a stream without any launch, it was if it starts before the first launch on the device.
    Without any launch on the device, this is unknown and the result is false.

    Args:
        ops: `device`, `stream`, `start_ns`, `launch_ns`.
    """
    launch = pl.col("launch_ns")
    launched_start = pl.when(launch.is_not_null()).then(pl.col("start_ns"))
    first = pl.coalesce(launched_start.min().over("device", "stream"), launch.min().over("device"))
    earlier = launch.is_null() & (pl.col("start_ns") < first)
    return ops.select(earlier.fill_null(False).alias("earlier"))["earlier"]


def step_at(moments: pl.Series, steps: pl.DataFrame) -> pl.Series:
    """The step that contains each of some times; null outside all steps."""
    if not steps.height:
        return pl.Series("step", [None] * len(moments), dtype=pl.Int64)
    ordered = steps.select("step", "start_ns", "end_ns").sort("start_ns")
    index = (
        ordered["start_ns"].search_sorted(moments.fill_null(-1), side="right").cast(pl.Int64) - 1
    )
    candidates = ordered[index.clip(0, ordered.height - 1)]
    inside = (index >= 0) & (moments.fill_null(-1) < candidates["end_ns"])
    return candidates["step"].zip_with(
        inside, pl.Series("step", [None] * len(moments), dtype=pl.Int64)
    )
