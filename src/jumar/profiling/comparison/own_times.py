"""Every nanosecond of a step given to one op, or to waiting."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from jumar.ground.text import Text
from jumar.profiling.advice.finding import Case
from jumar.profiling.comparison.op_kinds import TALKS, OpKind, op_kind
from jumar.profiling.profile import Profile
from jumar.profiling.showing import shown
from jumar.profiling.views.step_split import contradictions
from jumar.profiling.views.view import Impossible, Options
from jumar.profiling.views.windows import is_communication

Whole = NDArray[np.int64]
"""Integers, nanoseconds or places."""

_ORDER: tuple[tuple[OpKind, ...], ...] = (
    ("compute", "cast", "format"),
    ("communication",),
    ("copy",),
)
"""Who has a moment that several ops share: communication is what no computing hides."""


class Op(NamedTuple):
    """The facts shared by ops that differ only in their times."""

    kind: OpKind
    type: str
    module: str
    input_shapes: str
    input_types: str
    output_shapes: str
    output_types: str
    input_formats: str
    output_formats: str

    @property
    def dtypes(self) -> str:
        """Dtypes in and out."""
        return f"{self.input_types}|{self.output_types}" if self.output_types else self.input_types


@dataclass(frozen=True, kw_only=True, eq=False)
class Step:
    """One step: its rows by start, and the time before each op in which nothing ran.

    Args:
        lasted_ns: From the end of the step before to the end of this one.
        ops: The different ops of the side.
        which: For each row its place in `ops`.
        own_ns: For each row its own time; these and the waiting add up to `lasted_ns`.
        waits: The idle time before ops, by their type.
    """

    lasted_ns: int
    ops: Sequence[Op] = field(repr=False)
    which: Whole = field(repr=False)
    own_ns: Whole = field(repr=False)
    waits: Mapping[str, int]


@dataclass(frozen=True, kw_only=True, eq=False)
class Side:
    """One of the compared profiles.

    Args:
        source: What was opened.
        kind: Where the ops ran.
        chip: The accelerator, where known.
        rank: The rank whose view is taken: the slowest.
        ops: Its different ops.
        steps: Its steady steps.
        has_types: Whether ops have types.
        has_dtypes: Whether ops have dtypes.
        fingerprint: Count and sums of starts and durations of its ops, in nanoseconds: equal in
            copies of a capture, and in others only by an unlikely chance.
        doubts: What was left out of it, and where its figures contradict each other.
    """

    source: str
    kind: str
    chip: str
    rank: int
    ops: tuple[Op, ...] = field(repr=False)
    steps: tuple[Step, ...] = field(repr=False)
    has_types: bool
    has_dtypes: bool
    fingerprint: tuple[int, int, int]
    doubts: tuple[Text, ...] = ()


_TEXTS: Final = (
    "module",
    "input_shapes",
    "input_types",
    "output_shapes",
    "output_types",
    "input_formats",
    "output_formats",
)
_KEY: Final = ("type", "core", "talks", "named")
_TIMES: Final = ("start_ns", "duration_ns", "stream", "task")
_USED: Final = (*_TIMES, "rank", "name", "type", "core", *_TEXTS)


def side_of(profile: Profile, *, steps: int | None = None) -> Side:
    """The steady steps of the slowest rank, with each op's own time.

    Args:
        profile: The profile.
        steps: How many steps to take, where a few are enough.

    Raises:
        Impossible: No op has a start and a duration.
    """
    timed = pl.col("start_ns").is_not_null() & pl.col("duration_ns").is_not_null()
    is_told = {
        name: bool(profile.ops.select((timed & pl.col(name).is_not_null()).any()).item())
        for name in ("start_ns", "type", "input_types")
    }
    if not is_told["start_ns"]:
        raise Impossible("ops with start and duration")
    case = Case(profile, Options())
    windows = case.windows.sort("begin_ns").head(steps or case.steps)
    if windows.is_empty():
        raise Impossible("a step that takes time")
    first, last = windows["begin_ns"][0], windows["end_ns"][-1]
    # Filtering or sorting all fifty columns of a million ops takes seconds and a gigabyte, and
    # texts are not sorted at all: they have become numbers before.
    different, numbered = _numbered(
        profile.ops.lazy()
        .select(_USED)
        .filter(
            timed
            & (pl.col("rank").fill_null(0) == case.rank)
            & (pl.col("start_ns") < last)
            & (pl.col("start_ns") + pl.col("duration_ns") > first)
        )
    )
    numbered = numbered.sort("start_ns", "stream", "task", maintain_order=True)
    return Side(
        source=profile.source,
        kind=profile.kind,
        chip=profile.chip,
        rank=case.rank,
        ops=different,
        steps=tuple(_steps(numbered, different, windows)),
        has_types=is_told["type"],
        has_dtypes=is_told["input_types"],
        fingerprint=(
            numbered.height,
            int(numbered["start_ns"].sum()),
            int(numbered["duration_ns"].sum()),
        ),
        doubts=() if steps else tuple(_doubts(profile)),
    )


_DOUBTS: Final = 5
"""Gaps of a profile that a comparison names; a broken capture has one for each file."""


def _doubts(profile: Profile) -> Iterator[Text]:
    """What may make a difference to another profile without being one of the training.

    What a profile lacks for certain views only is no doubt about its ops and steps.
    """
    gaps = [gap for gap in profile.missing if not gap.needed_for or "gate" in gap.needed_for]
    for gap in gaps[:_DOUBTS]:
        what = f"{shown(gap.file)}: {shown(gap.what, 300)}"
        yield Text(en=f"missing: {what}", zh=f"缺失：{what}")
    if len(gaps) > _DOUBTS:
        more, name = len(gaps) - _DOUBTS, shown(profile.source, 200)
        yield Text(
            en=f"{name} lacks {more} more; all: jumar profile show {name}",
            zh=f"{name} 另缺 {more} 项，全部见：jumar profile show {name}",
        )
    for line in contradictions(profile):
        name = shown(profile.source, 200)
        yield Text(en=f"{name}: {line.en}", zh=f"{name}：{line.zh}")


def _numbered(lazy: pl.LazyFrame) -> tuple[tuple[Op, ...], pl.DataFrame]:
    """The different ops, and the rows with their number in `which` instead of texts."""
    ops = lazy.collect()
    # Names contain numbers, so they are used only if nothing else identifies an op.
    bare = pl.col("name").fill_null("").str.replace(r"[_\d]+(\n?)$", "${1}")
    named = pl.when(bare == "").then(pl.col("name").fill_null("")).otherwise(bare)
    talks = pl.col("core").is_null() & is_communication()
    groups = (
        ops.lazy()
        .select(
            "type",
            "core",
            talks.alias("talks"),
            pl.when(pl.col("type").fill_null("") == "").then(named).alias("named"),
            *(pl.col(name).fill_null("") for name in _TEXTS),
        )
        .with_row_index("row")
        .group_by(*_KEY, *_TEXTS)
        .agg("row")
        .sort(pl.col("row").list.first())
        .collect()
    )
    which = np.empty(ops.height, np.int64)
    rows = groups["row"].explode().to_numpy()
    which[rows] = np.repeat(np.arange(groups.height), groups["row"].list.len().to_numpy())
    different = tuple(
        Op(
            op_kind(kind, core, TALKS[0] if talks else "", texts[2], texts[4]),
            kind or named,
            *texts,
        )
        for kind, core, talks, named, *texts in groups.drop("row").iter_rows()
    )
    return different, ops.select(*_TIMES, pl.Series("which", which))


def _steps(ops: pl.DataFrame, different: Sequence[Op], windows: pl.DataFrame) -> Iterator[Step]:
    which = ops["which"].to_numpy().astype(np.int64)
    starts = ops["start_ns"].to_numpy().astype(np.int64)
    ends = starts + np.maximum(ops["duration_ns"].to_numpy().astype(np.int64), 0)
    begins = windows["begin_ns"].to_numpy().astype(np.int64)
    stops = windows["end_ns"].to_numpy().astype(np.int64)
    group_of = {kind: index for index, kinds in enumerate(_ORDER) for kind in kinds}
    groups = np.array([group_of[op.kind] for op in different], np.int64)[which]
    op_of, window_of, own, busy = _owned(starts, ends, groups, begins, stops)
    which_of = which[op_of]
    types = [op.type for op in different]
    waits = _waits(starts, (types, which), busy, begins, stops)
    edges = np.searchsorted(window_of, np.arange(len(begins) + 1)).tolist()
    for index, (low, high) in enumerate(pairwise(edges)):
        yield Step(
            lasted_ns=int(stops[index] - begins[index]),
            ops=different,
            which=which_of[low:high],
            own_ns=own[low:high],
            waits=waits[index],
        )


def _owned(
    starts: Whole, ends: Whole, groups: Whole, begins: Whole, stops: Whole
) -> tuple[Whole, Whole, Whole, tuple[Whole, Whole]]:
    """Op, step and own time of each row, by step and start, and the intervals where any ran."""
    busy = (np.zeros(0, np.int64), np.zeros(0, np.int64))
    owned: list[tuple[Whole, Whole, Whole]] = []
    for group in range(len(_ORDER)):
        chosen = np.flatnonzero(groups == group)
        if not len(chosen):
            continue
        low, high = starts[chosen], ends[chosen]
        # Of ops that overlap, the one that started first gets the time: it hides the other.
        reached = np.maximum.accumulate(high)
        left = np.maximum(low, np.concatenate([low[:1], reached[:-1]]))
        # One that others hide wholly stays where it began.
        hidden = left >= high
        low, high = np.where(hidden, low, left), np.where(hidden, low, high)
        op, window, low, high = _cut(chosen, low, high, begins, stops)
        own = (high - low) - (_covered(busy, high) - _covered(busy, low))
        owned.append((op, window, own))
        busy = _joined(busy, (low, high))
    if not owned:
        nothing = np.zeros(0, np.int64)
        return nothing, nothing, nothing, busy
    op, window, own = (np.concatenate(parts) for parts in zip(*owned, strict=True))
    order = np.lexsort((op, window))
    return op[order], window[order], own[order], busy


def _cut(
    ops: Whole, low: Whole, high: Whole, begins: Whole, stops: Whole
) -> tuple[Whole, Whole, Whole, Whole]:
    """Intervals cut at the edges of steps; an op that continues in the next step is in both."""
    first = np.maximum(np.searchsorted(begins, low, side="right") - 1, 0)
    last = np.maximum(np.searchsorted(begins, np.maximum(high - 1, low), side="right") - 1, first)
    counts = last - first + 1
    row = np.repeat(np.arange(len(ops)), counts)
    window = first[row] + (np.arange(len(row)) - np.repeat(np.cumsum(counts) - counts, counts))
    cut_low = np.clip(low[row], begins[window], stops[window])
    cut_high = np.clip(high[row], begins[window], stops[window])
    # An op without own time remains a row of the step in which it started.
    begun = (low[row] >= begins[window]) & (low[row] < stops[window])
    kept = (cut_high > cut_low) | begun
    return ops[row][kept], window[kept], cut_low[kept], cut_high[kept]


def _covered(busy: tuple[Whole, Whole], moments: Whole) -> Whole:
    """How much of the time before each moment disjoint intervals cover."""
    low, high = busy
    if not len(low):
        return np.zeros(len(moments), np.int64)
    before = np.concatenate([np.zeros(1, np.int64), np.cumsum(high - low)])
    at = np.searchsorted(low, moments, side="right")
    inside = np.where(at > 0, np.minimum(moments, high[at - 1]) - low[at - 1], 0)
    return np.where(at > 0, before[at - 1] + inside, 0)


def _joined(first: tuple[Whole, Whole], second: tuple[Whole, Whole]) -> tuple[Whole, Whole]:
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
    starts: Whole,
    named: tuple[Sequence[str], Whole],
    busy: tuple[Whole, Whole],
    begins: Whole,
    stops: Whole,
) -> list[dict[str, int]]:
    """The idle time of each step by the type of the op that ends it."""
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
    types, which = named
    names = {name: place for place, name in enumerate(dict.fromkeys(["", *types]))}
    name_of = np.array([names[name] for name in types], np.int64)
    ended = np.zeros(len(op), np.int64)
    ended[followed] = name_of[which[op[followed]]]
    token, place = np.unique(window * len(names) + ended, return_inverse=True)
    sums = np.zeros(len(token), np.int64)
    np.add.at(sums, place, end - begin)
    kinds = list(names)
    waits: list[dict[str, int]] = [{} for _ in range(len(begins))]
    for token_of_wait, length in zip(token.tolist(), sums.tolist(), strict=True):
        step, name = divmod(token_of_wait, len(names))
        waits[step][kinds[name]] = length
    return waits
