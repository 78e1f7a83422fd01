"""Every nanosecond of a step given to one op, or to waiting."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from jumar.profiling.advice.finding import Case
from jumar.profiling.comparison.op_kinds import OpKind, op_kind, type_or_name
from jumar.profiling.profile import Profile
from jumar.profiling.views.view import Impossible, Options

_Whole = NDArray[np.int64]
_ORDER: tuple[tuple[OpKind, ...], ...] = (
    ("compute", "cast", "format"),
    ("communication",),
    ("copy",),
)
"""Who has a moment that several ops share: communication is what no computing hides."""


class Row(NamedTuple):
    """An op in a step; `own_ns` is the time that it has for itself alone."""

    kind: OpKind
    type: str
    module: str
    input_shapes: str
    input_types: str
    output_shapes: str
    output_types: str
    input_formats: str
    output_formats: str
    own_ns: int

    @property
    def dtypes(self) -> str:
        """Dtypes in and out."""
        return f"{self.input_types}|{self.output_types}" if self.output_types else self.input_types


@dataclass(frozen=True, kw_only=True)
class Step:
    """One step: its rows by start, and the time before each op in which nothing ran.

    Args:
        lasted_ns: From the end of the step before to the end of this one.
        rows: The ops; their `own_ns` and the waiting add up to `lasted_ns`.
        waits: The free time before ops, by their type.
    """

    lasted_ns: int
    rows: tuple[Row, ...]
    waits: dict[str, int]

    @property
    def waiting_ns(self) -> int:
        """The time in which nothing ran."""
        return self.lasted_ns - sum(row.own_ns for row in self.rows)


@dataclass(frozen=True, kw_only=True)
class Side:
    """One of the profiles that are compared.

    Args:
        source: What was opened.
        kind: Where the ops ran.
        chip: The accelerator, where known.
        rank: The rank from which it is seen: the slowest.
        steps: Its steady steps.
        has_types: Whether ops have types.
        has_dtypes: Whether ops have dtypes.
    """

    source: str
    kind: str
    chip: str
    rank: int
    steps: tuple[Step, ...]
    has_types: bool
    has_dtypes: bool


_TEXTS = (
    "module",
    "input_shapes",
    "input_types",
    "output_shapes",
    "output_types",
    "input_formats",
    "output_formats",
)


def side_of(profile: Profile, *, steps: int | None = None) -> Side:
    """The steady steps of the slowest rank, with the time that each op has for itself.

    Args:
        profile: The profile.
        steps: Only so many steps, where a few tell enough.

    Raises:
        Impossible: No op has a start and a duration.
    """
    ops = profile.ops.filter(pl.col("start_ns").is_not_null() & pl.col("duration_ns").is_not_null())
    if ops.is_empty():
        raise Impossible("ops with start and duration")
    case = Case(profile, Options())
    windows = case.windows.sort("begin_ns").head(steps or case.steps)
    if windows.is_empty():
        raise Impossible("a step that takes time")
    first, last = windows["begin_ns"][0], windows["end_ns"][-1]
    mine = ops.filter(
        (pl.col("rank").fill_null(0) == case.rank)
        & (pl.col("start_ns") < last)
        & (pl.col("start_ns") + pl.col("duration_ns") > first)
    ).sort("start_ns", "stream", "task", maintain_order=True)
    return Side(
        source=profile.source,
        kind=profile.kind,
        chip=profile.chip,
        rank=case.rank,
        steps=tuple(_steps(mine, windows)),
        has_types=ops["type"].null_count() < ops.height,
        has_dtypes=ops["input_types"].null_count() < ops.height,
    )


def _steps(ops: pl.DataFrame, windows: pl.DataFrame) -> list[Step]:
    names = ops["name"].fill_null("").to_list()
    types = ops["type"].to_list()
    kinds: list[OpKind] = [
        op_kind(*told)
        for told in zip(
            types,
            ops["core"].to_list(),
            names,
            ops["input_types"].to_list(),
            ops["output_types"].to_list(),
            strict=True,
        )
    ]
    starts = ops["start_ns"].to_numpy().astype(np.int64)
    ends = starts + np.maximum(ops["duration_ns"].to_numpy().astype(np.int64), 0)
    begins = windows["begin_ns"].to_numpy().astype(np.int64)
    stops = windows["end_ns"].to_numpy().astype(np.int64)
    op_of, window_of, own, busy = _owned(starts, ends, np.array(kinds), begins, stops)
    told = [type_or_name(kind, name) for kind, name in zip(types, names, strict=True)]
    texts = [ops[name].fill_null("").to_list() for name in _TEXTS]
    rows: list[list[Row]] = [[] for _ in range(len(begins))]
    for op, window, length in zip(op_of.tolist(), window_of.tolist(), own.tolist(), strict=True):
        rows[window].append(Row._make((kinds[op], told[op], *(text[op] for text in texts), length)))
    waits = _waits(starts, told, busy, begins, stops)
    return [
        Step(lasted_ns=int(stops[index] - begins[index]), rows=tuple(own_rows), waits=waits[index])
        for index, own_rows in enumerate(rows)
    ]


def _owned(
    starts: _Whole, ends: _Whole, kinds: NDArray[np.str_], begins: _Whole, stops: _Whole
) -> tuple[_Whole, _Whole, _Whole, tuple[_Whole, _Whole]]:
    """Op, step and own time of each row, by start; and the intervals in which anything ran."""
    busy = (np.zeros(0, np.int64), np.zeros(0, np.int64))
    found: list[tuple[_Whole, _Whole, _Whole]] = []
    for group in _ORDER:
        chosen = np.flatnonzero(np.isin(kinds, group))
        if not len(chosen):
            continue
        low, high = starts[chosen], ends[chosen]
        # Of ops that overlap, the one that started first has the time: the other hides behind it.
        reached = np.maximum.accumulate(high)
        before = np.concatenate([low[:1], reached[:-1]])
        low = np.minimum(np.maximum(low, before), np.maximum(high, low))
        op, window, low, high = _cut(chosen, low, np.maximum(high, low), begins, stops)
        own = (high - low) - (_covered(busy, high) - _covered(busy, low))
        found.append((op, window, own))
        busy = _joined(busy, (low, high))
    if not found:
        nothing = np.zeros(0, np.int64)
        return nothing, nothing, nothing, busy
    op, window, own = (np.concatenate(parts) for parts in zip(*found, strict=True))
    order = np.lexsort((op, window))
    return op[order], window[order], own[order], busy


def _cut(
    ops: _Whole, low: _Whole, high: _Whole, begins: _Whole, stops: _Whole
) -> tuple[_Whole, _Whole, _Whole, _Whole]:
    """Intervals cut at the edges of steps; an op that goes on in the next step is in both."""
    first = np.maximum(np.searchsorted(begins, low, side="right") - 1, 0)
    last = np.maximum(np.searchsorted(begins, np.maximum(high - 1, low), side="right") - 1, first)
    counts = last - first + 1
    row = np.repeat(np.arange(len(ops)), counts)
    window = first[row] + (np.arange(len(row)) - np.repeat(np.cumsum(counts) - counts, counts))
    cut_low = np.clip(low[row], begins[window], stops[window])
    cut_high = np.clip(high[row], begins[window], stops[window])
    # An op without time of its own stays a row of the step that it began in.
    begun = (low[row] >= begins[window]) & (low[row] < stops[window])
    kept = (cut_high > cut_low) | begun
    return ops[row][kept], window[kept], cut_low[kept], cut_high[kept]


def _covered(busy: tuple[_Whole, _Whole], moments: _Whole) -> _Whole:
    """How much of the time before each moment is covered by intervals that do not overlap."""
    low, high = busy
    if not len(low):
        return np.zeros(len(moments), np.int64)
    before = np.concatenate([np.zeros(1, np.int64), np.cumsum(high - low)])
    at = np.searchsorted(low, moments, side="right")
    inside = np.where(at > 0, np.minimum(moments, high[at - 1]) - low[at - 1], 0)
    return np.where(at > 0, before[at - 1] + inside, 0)


def _joined(first: tuple[_Whole, _Whole], second: tuple[_Whole, _Whole]) -> tuple[_Whole, _Whole]:
    """The union of two sets of intervals."""
    low = np.concatenate([first[0], second[0]])
    high = np.concatenate([first[1], second[1]])
    kept = high > low
    low, high = low[kept], high[kept]
    order = np.argsort(low, kind="stable")
    low, high = low[order], high[order]
    if not len(low):
        return low, high
    reached = np.maximum.accumulate(high)
    new = np.concatenate([[True], low[1:] > reached[:-1]])
    at = np.flatnonzero(new)
    return low[at], np.concatenate([reached[at[1:] - 1], reached[-1:]])


def _waits(
    starts: _Whole,
    types: list[str],
    busy: tuple[_Whole, _Whole],
    begins: _Whole,
    stops: _Whole,
) -> list[dict[str, int]]:
    """The free time of each step by the type of the op that ends it."""
    low = np.concatenate([busy[0], stops])
    high = np.concatenate([busy[1], stops])
    order = np.argsort(low, kind="stable")
    low, high = low[order], high[order]
    reached = np.concatenate([begins[:1], np.maximum.accumulate(high)[:-1]])
    free = np.flatnonzero(low > reached)
    begin, end = reached[free], low[free]
    op = np.searchsorted(starts, end, side="left")
    window = np.maximum(np.searchsorted(begins, begin, side="right") - 1, 0)
    followed = np.append(starts, -1)[op] == end
    found: list[dict[str, int]] = [{} for _ in range(len(begins))]
    parts = (op.tolist(), followed.tolist(), window.tolist(), (end - begin).tolist())
    for place, is_op, step, length in zip(*parts, strict=True):
        name = types[place] if is_op else ""
        found[step][name] = found[step].get(name, 0) + length
    return found
