"""Ops of a long trace, one time span after another: what launched them, and their own times."""

from collections.abc import Iterator
from typing import Final

import numpy as np
import polars as pl

from jumar.profiling.reading.traces.categories import OP, RUNTIME
from jumar.profiling.reading.traces.nesting import MOMENT, Sweep
from jumar.profiling.reading.traces.trace import Trace

STEP: Final = r"^ProfilerStep#(\d{1,18})$"
SPAN: Final = 32_768
"""Rows that are held at once, more or less."""

_NAMES: Final = ("name", "shapes", "types", "module")
_SWEPT: Final = (*_NAMES, "row", "thread", "start_ns", "duration_ns", "correlation", "external")


def is_op(trace: Trace) -> pl.Expr:
    """Whether a row of `Trace.calls` is an op: steps are marked in the same category."""
    return (
        (pl.col("category") == trace.texts.number(OP))
        & pl.col("name").is_not_null()
        & ~pl.col("name").is_in(trace.texts.matching(STEP))
    )


class _Swept:
    """The rows of a span with those still running from earlier spans."""

    def __init__(self) -> None:
        self._sweep = Sweep()
        self._places = np.empty(0, dtype=np.int64)
        self._carried: pl.DataFrame | None = None
        self._given = 0

    def take(self, rows: pl.DataFrame) -> tuple[pl.DataFrame, np.ndarray]:
        """All rows known so far, and for each of `rows` the index of its parent, or -1."""
        parents = self._sweep.parents(
            rows["thread"].fill_null(0), rows["start_ns"], rows["duration_ns"]
        )
        places = np.arange(self._given, self._given + rows.height)
        self._places = np.concatenate([self._places, places])
        self._given += rows.height
        known = rows if self._carried is None else pl.concat([self._carried, rows])
        positions = np.searchsorted(self._places, parents)
        return known, np.where(parents < 0, -1, positions)

    def keep(self, known: pl.DataFrame, until: int) -> pl.DataFrame:
        """Keep what is still running; returns the rows that have ended."""
        running = self._sweep.running(until)
        still = np.isin(self._places, running)
        self._carried, self._places = known.filter(pl.Series(still)), self._places[still]
        return known.filter(pl.Series(~still))

    @property
    def rest(self) -> pl.DataFrame | None:
        """The rows still running when the trace ended."""
        return self._carried


def launches(trace: Trace, correlations: np.ndarray) -> pl.DataFrame:
    """The calls that launched something, with the innermost op around each.

    Args:
        trace: The trace.
        correlations: Of what was launched, in order.

    Returns:
        `correlation`, `launch_ns`, and `op`, `shapes`, `types`, `module`, `thread` as numbers of
        texts.
    """
    ops, swept = is_op(trace), _Swept()
    runtime = pl.col("category").is_in([trace.texts.number(name) for name in RUNTIME])
    frames: list[pl.DataFrame] = []
    for span in trace.calls.spans(SPAN):
        calls = span.filter(runtime & pl.col("correlation").is_not_null())
        calls = calls.filter(among(calls["correlation"], correlations))
        moments = calls.with_columns(pl.lit(MOMENT, pl.Int64).alias("duration_ns"))
        rows = pl.concat([span.filter(ops).select(_SWEPT), moments.select(_SWEPT)])
        if not rows.height:
            continue
        known, parents = swept.take(rows)
        place = pl.Series(parents[rows.height - moments.height :])
        place = place.set(place < 0, None)
        frames.append(
            moments.select(
                "row",
                "correlation",
                "thread",
                pl.col("start_ns").alias("launch_ns"),
                *(known[name].gather(place).alias(_renamed(name)) for name in _NAMES),
            )
        )
        swept.keep(known, int(span["start_ns"].max()))  # pyright: ignore[reportArgumentType]
    if not frames:
        return trace.calls.joined(()).select(
            "correlation",
            "thread",
            pl.col("start_ns").alias("launch_ns"),
            *(pl.col(name).alias(_renamed(name)) for name in _NAMES),
        )
    # The first in the file: a correlation repeats where the profiler was started again.
    return (
        pl.concat(frames)
        .sort("row")
        .unique("correlation", keep="first", maintain_order=True)
        .drop("row")
    )


def named_once(trace: Trace, externals: np.ndarray) -> pl.DataFrame:
    """The ops whose external id no other op has.

    Args:
        trace: The trace.
        externals: The ids that are looked for, in order.
    """
    ops = is_op(trace)
    columns = ("category", "external", *_NAMES)
    frames = [trace.calls.joined(()).select(columns)]
    for rows in trace.calls.frames(*columns):
        rows = rows.filter(ops & pl.col("external").is_not_null()).select(columns)
        frames.append(rows.filter(among(rows["external"], externals)))
    return (
        pl.concat(frames)
        .unique("external", keep="none")
        .select("external", *(pl.col(name).alias(_renamed(name)) for name in _NAMES))
    )


def own_times(trace: Trace) -> Iterator[pl.DataFrame]:
    """The ops of a CPU with `own_ns`: without their direct children; unordered."""
    ops, swept = is_op(trace), _Swept()
    for span in trace.calls.spans(SPAN):
        rows = span.filter(ops).select(*_SWEPT, pl.lit(0, pl.Int64).alias("within_ns"))
        if not rows.height:
            continue
        known, parents = swept.take(rows)
        within = known["within_ns"].to_numpy().copy()
        inner = parents >= 0
        np.add.at(within, parents[inner], rows["duration_ns"].to_numpy()[inner])
        known = known.with_columns(pl.Series("within_ns", within))
        yield _own(swept.keep(known, int(span["start_ns"].max())))  # pyright: ignore[reportArgumentType]
    if swept.rest is not None:
        yield _own(swept.rest)


def _own(ops: pl.DataFrame) -> pl.DataFrame:
    own = (pl.col("duration_ns") - pl.col("within_ns")).clip(lower_bound=0)
    return ops.with_columns(own.alias("own_ns")).drop("within_ns")


def among(values: pl.Series, ordered: np.ndarray) -> pl.Series:
    """Which values are in a sorted array; much cheaper than a hash table for each batch."""
    if not len(ordered):
        return pl.repeat(False, len(values), eager=True)
    wanted = values.to_numpy()
    place = np.searchsorted(ordered, wanted).clip(max=len(ordered) - 1)
    return pl.Series(ordered[place] == wanted)


def _renamed(name: str) -> str:
    return "op" if name == "name" else name
