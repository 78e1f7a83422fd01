"""Calls within calls: own times, and which call was running at a moment."""

from typing import Final

import numpy as np
import polars as pl

MOMENT: Final = -1
"""A duration that no call has: such a row can be inside calls, and none inside it."""

_BLOCK: Final = 65_536


def innermost(calls: pl.DataFrame, moments: pl.DataFrame) -> pl.Series:
    """The row of the innermost call running at each moment; null if none.

    Args:
        calls: `thread`, `start_ns`, `duration_ns`.
        moments: `thread`, `start_ns`.
    """
    both = pl.concat(
        [
            calls.select("thread", "start_ns", "duration_ns"),
            moments.select("thread", "start_ns", pl.lit(MOMENT, pl.Int64).alias("duration_ns")),
        ]
    )
    parents = pl.Series("row", _parents(both)[calls.height :])
    return parents.set(parents < 0, None)


def _parents(calls: pl.DataFrame) -> np.ndarray:
    """The row of the call around each call, or -1."""
    threads = calls["thread"].fill_null("").rank("dense")
    return Sweep().parents(threads, calls["start_ns"], calls["duration_ns"])


class Sweep:
    """Nesting of calls that arrive in consecutive time spans.

    Calls are identified by their index among all that were given.
    """

    def __init__(self) -> None:
        self._open: dict[int, list[tuple[int, int]]] = {}
        self._given = 0

    def parents(self, threads: pl.Series, starts: pl.Series, durations: pl.Series) -> np.ndarray:
        """The index of the call around each call, or -1.

        A sweep over calls in the order in which they begin, outer ones first. Only a block of rows
        at a time becomes Python numbers: of ten million calls they would be gigabytes.

        Args:
            threads: One number per thread.
            starts: When the calls begin: none before one that was given in an earlier span.
            durations: How long they last.
        """
        thread_of = threads.to_numpy().astype(np.int64)
        start_of = starts.fill_null(0).to_numpy().astype(np.int64)
        duration_of = durations.fill_null(0).to_numpy().astype(np.int64)
        end_of = start_of + duration_of
        order = np.lexsort((-duration_of, start_of, thread_of))
        result = np.full(len(order), -1, dtype=np.int64)
        thread, stack = -1, list[tuple[int, int]]()
        for block in range(0, len(order), _BLOCK):
            rows = order[block : block + _BLOCK]
            parents: list[int] = []
            for row, of, start, end in zip(
                (rows + self._given).tolist(),
                thread_of[rows].tolist(),
                start_of[rows].tolist(),
                end_of[rows].tolist(),
                strict=True,
            ):
                if of != thread:
                    thread, stack = of, self._open.setdefault(of, [])
                while stack and stack[-1][0] <= start:
                    stack.pop()
                parents.append(stack[-1][1] if stack else -1)
                if end >= start:
                    stack.append((end, row))
            result[rows] = parents
        self._given += len(order)
        return result

    def running(self, moment: int) -> np.ndarray:
        """The indices of the calls that may enclose calls from a moment on, in order.

        The others are forgotten: a call that ended is around nothing that begins later.
        """
        for of, stack in list(self._open.items()):
            self._open[of] = [call for call in stack if call[0] > moment]
            if not self._open[of]:
                del self._open[of]
        return np.sort(
            np.array([row for stack in self._open.values() for _, row in stack], dtype=np.int64)
        )


def with_waits(ops: pl.DataFrame) -> pl.DataFrame:
    """The ops with `wait_ns`: from the latest end before on the same stream to their start."""
    end = pl.col("start_ns") + pl.col("duration_ns")
    return ops.sort("start_ns", maintain_order=True).with_columns(
        (pl.col("start_ns") - end.cum_max().shift(1).over("device", "stream"))
        .clip(lower_bound=0)
        .alias("wait_ns")
    )


def launched_earlier(ops: pl.DataFrame) -> pl.Series:
    """Which ops were launched before the recording began, and so belong to a step before.

    A stream works in order, and the device runs behind the host: what no recorded call launched, on
    a stream whose first launched op is yet to start, was waiting there. On a stream without any
    launch, only what starts before the first launch for its device was; without one of these
    nothing is known.

    Args:
        ops: `device`, `stream`, `start_ns`, `launch_ns`.
    """
    launch = pl.col("launch_ns")
    known = pl.when(launch.is_not_null()).then(pl.col("start_ns"))
    first = pl.coalesce(known.min().over("device", "stream"), launch.min().over("device"))
    earlier = launch.is_null() & (pl.col("start_ns") < first)
    return ops.select(earlier.fill_null(False).alias("earlier"))["earlier"]


def step_at(moment: pl.Series, steps: pl.DataFrame) -> pl.Series:
    """The step that contains each moment; null outside all steps."""
    if not steps.height:
        return pl.Series("step", [None] * len(moment), dtype=pl.Int64)
    ordered = steps.select("step", "start_ns", "end_ns").sort("start_ns")
    place = ordered["start_ns"].search_sorted(moment.fill_null(-1), side="right").cast(pl.Int64) - 1
    candidates = ordered[place.clip(0, ordered.height - 1)]
    inside = (place >= 0) & (moment.fill_null(-1) < candidates["end_ns"])
    return candidates["step"].zip_with(
        inside, pl.Series("step", [None] * len(moment), dtype=pl.Int64)
    )
