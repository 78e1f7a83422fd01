"""Assigns every nanosecond of a step to one op, or to waiting."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from jumar.ground.text import Text
from jumar.profiling.advice.finding import Case
from jumar.profiling.comparison.op_kinds import OpKind, op_kind
from jumar.profiling.profile import END, Profile
from jumar.profiling.showing import shown
from jumar.profiling.texts import gap_line
from jumar.profiling.views.intervals import length_before
from jumar.profiling.views.step_split import contradictions
from jumar.profiling.views.view import Impossible, Options
from jumar.profiling.views.windows import COLLECTIVE_PREFIXES, is_communication

Integers = NDArray[np.int64]
"""Arrays of times in nanoseconds, or of indices."""

_PRECEDENCE: tuple[tuple[OpKind, ...], ...] = (
    ("compute", "cast", "format"),
    ("communication",),
    ("copy",),
)
"""Precedence of concurrent ops: communication only gets the time that no computation covers."""


class Op(NamedTuple):
    """The common properties of ops that differ only in their times."""

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
        """Input and output dtypes."""
        return f"{self.input_types}|{self.output_types}" if self.output_types else self.input_types


@dataclass(frozen=True, kw_only=True, eq=False)
class Step:
    """One step: its rows by start, and the idle time before ops.

    Args:
        duration_ns: Time from the end of the previous step to the end of this one.
        ops: The distinct ops of the profile.
        op_numbers: The index of each row in `ops`.
        own_ns: The own time of each row; own times and `waits` add up to `duration_ns`.
        waits: The idle time before ops, by op type.
    """

    duration_ns: int
    ops: Sequence[Op] = field(repr=False)
    op_numbers: Integers = field(repr=False)
    own_ns: Integers = field(repr=False)
    waits: Mapping[str, int]


@dataclass(frozen=True, kw_only=True, eq=False)
class PreparedProfile:
    """A profile prepared for comparison: the steady steps of its slowest rank.

    Args:
        source: The paths that were read.
        kind: The kind of device on which the ops ran.
        chip: The accelerator; empty if unknown.
        rank: The slowest rank.
        ops: Its distinct ops.
        steps: Its steady steps.
        has_types: Whether ops have types.
        has_dtypes: Whether ops have dtypes.
        fingerprint: Number of ops, sum of start times and sum of durations (ns), which are equal
            for copies of a capture and hardly ever for others.
        notes: What is missing, and contradictions.
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
    notes: tuple[Text, ...] = ()


_TEXT_COLUMNS: Final = (
    "module",
    "input_shapes",
    "input_types",
    "output_shapes",
    "output_types",
    "input_formats",
    "output_formats",
)
_KEY_COLUMNS: Final = ("type", "core", "is_collective", "fallback_name")
_TIME_COLUMNS: Final = ("start_ns", "duration_ns", "stream", "task")
_USED_COLUMNS: Final = (*_TIME_COLUMNS, "rank", "name", "type", "core", *_TEXT_COLUMNS)


def prepare(profile: Profile, *, steps: int | None = None) -> PreparedProfile:
    """Prepare a profile for comparison: own times in the steady steps of its slowest rank.

    Args:
        profile: The profile.
        steps: Maximum number of steps; None for all.

    Raises:
        Impossible: No op has a start and a duration.
    """
    timed = pl.col("start_ns").is_not_null() & pl.col("duration_ns").is_not_null()
    has_values = {
        name: bool(profile.ops.select((timed & pl.col(name).is_not_null()).any()).item())
        for name in ("start_ns", "type", "input_types")
    }
    if not has_values["start_ns"]:
        raise Impossible("ops with start times and durations")
    case = Case(profile, Options())
    windows = case.windows.sort("begin_ns").head(steps or case.steps)
    if windows.is_empty():
        raise Impossible("a step with a duration")
    first, last = windows["begin_ns"][0], windows["end_ns"][-1]
    # Filtering or sorting all fifty columns of a million ops would take seconds and a gigabyte;
    # texts are replaced by numbers before sorting.
    distinct_ops, numbered = _numbered(
        profile.ops.lazy()
        .select(_USED_COLUMNS)
        .filter(
            timed
            & (pl.col("rank").fill_null(0) == case.rank)
            & (pl.col("start_ns") < last)
            & (first < END)
        )
    )
    numbered = numbered.sort("start_ns", "stream", "task", maintain_order=True)
    return PreparedProfile(
        source=profile.source,
        kind=profile.kind,
        chip=profile.chip,
        rank=case.rank,
        ops=distinct_ops,
        steps=tuple(_steps(numbered, distinct_ops, windows)),
        has_types=has_values["type"],
        has_dtypes=has_values["input_types"],
        fingerprint=(
            numbered.height,
            int(numbered["start_ns"].sum()),
            int(numbered["duration_ns"].sum()),
        ),
        notes=() if steps else tuple(_notes(profile)),
    )


_MAX_NOTES: Final = 5
"""Maximum number of gaps to list; a broken capture may have one for each file."""


def _notes(profile: Profile) -> Iterator[Text]:
    """Missing data and contradictions, which may explain differences better than the training.

    Data that only certain views need is not listed.
    """
    gaps = [gap for gap in profile.missing if not gap.needed_for or "gate" in gap.needed_for]
    for gap in gaps[:_MAX_NOTES]:
        yield Text(en="".join(gap_line(gap, "en")), zh="".join(gap_line(gap, "zh")))
    if len(gaps) > _MAX_NOTES:
        more, name = len(gaps) - _MAX_NOTES, shown(profile.source, 200)
        yield Text(
            en=f"{name}: {more} more missing or not read; see: jumar profile show {name}",
            zh=f"{name} 另有 {more} 项缺失或未读取，全部见：jumar profile show {name}",
        )
    for line in contradictions(profile):
        name = shown(profile.source, 200)
        yield Text(en=f"{name}: {line.en}", zh=f"{name}：{line.zh}")


def _numbered(lazy: pl.LazyFrame) -> tuple[tuple[Op, ...], pl.DataFrame]:
    """The distinct ops, and the rows with `op_number` instead of texts."""
    ops = lazy.collect()
    # Names, which contain numbers, are used only for ops without a type.
    without_number = pl.col("name").fill_null("").str.replace(r"[_\d]+(\n?)$", "${1}")
    fallback_name = (
        pl.when(without_number == "").then(pl.col("name").fill_null("")).otherwise(without_number)
    )
    is_collective = pl.col("core").is_null() & is_communication()
    groups = (
        ops.lazy()
        .select(
            "type",
            "core",
            is_collective.alias("is_collective"),
            pl.when(pl.col("type").fill_null("") == "").then(fallback_name).alias("fallback_name"),
            *(pl.col(name).fill_null("") for name in _TEXT_COLUMNS),
        )
        .with_row_index("row")
        .group_by(*_KEY_COLUMNS, *_TEXT_COLUMNS)
        .agg("row")
        .sort(pl.col("row").list.first())
        .collect()
    )
    op_numbers = np.empty(ops.height, np.int64)
    rows = groups["row"].explode().to_numpy()
    op_numbers[rows] = np.repeat(np.arange(groups.height), groups["row"].list.len().to_numpy())
    distinct_ops = tuple(
        Op(
            op_kind(
                kind, core, COLLECTIVE_PREFIXES[0] if is_collective else "", texts[2], texts[4]
            ),
            kind or fallback_name,
            *texts,
        )
        for kind, core, is_collective, fallback_name, *texts in groups.drop("row").iter_rows()
    )
    return distinct_ops, ops.select(*_TIME_COLUMNS, pl.Series("op_number", op_numbers))


def _steps(ops: pl.DataFrame, distinct_ops: Sequence[Op], windows: pl.DataFrame) -> Iterator[Step]:
    op_numbers = ops["op_number"].to_numpy().astype(np.int64)
    starts = ops["start_ns"].to_numpy().astype(np.int64)
    ends = starts + np.maximum(ops["duration_ns"].to_numpy().astype(np.int64), 0)
    step_starts = windows["begin_ns"].to_numpy().astype(np.int64)
    step_ends = windows["end_ns"].to_numpy().astype(np.int64)
    group_of = {kind: index for index, kinds in enumerate(_PRECEDENCE) for kind in kinds}
    groups = np.array([group_of[op.kind] for op in distinct_ops], np.int64)[op_numbers]
    op_of, window_of, own_ns, busy = _own_times(starts, ends, groups, step_starts, step_ends)
    step_ops = op_numbers[op_of]
    types = [op.type for op in distinct_ops]
    waits = _waits(starts, (types, op_numbers), busy, step_starts, step_ends)
    edges = np.searchsorted(window_of, np.arange(len(step_starts) + 1)).tolist()
    for index, (low, high) in enumerate(pairwise(edges)):
        yield Step(
            duration_ns=int(step_ends[index] - step_starts[index]),
            ops=distinct_ops,
            op_numbers=step_ops[low:high],
            own_ns=own_ns[low:high],
            waits=waits[index],
        )


def _own_times(
    starts: Integers, ends: Integers, groups: Integers, step_starts: Integers, step_ends: Integers
) -> tuple[Integers, Integers, Integers, tuple[Integers, Integers]]:
    """Op, step and own time of each row, by step and start; and the intervals with any op."""
    busy = (np.zeros(0, np.int64), np.zeros(0, np.int64))
    owned_by_group: list[tuple[Integers, Integers, Integers]] = []
    for group in range(len(_PRECEDENCE)):
        selected = np.flatnonzero(groups == group)
        if not len(selected):
            continue
        low, high = starts[selected], ends[selected]
        # Of overlapping ops of a group, the one that started first gets the time.
        ends_so_far = np.maximum.accumulate(high)
        free_from = np.maximum(low, np.concatenate([low[:1], ends_so_far[:-1]]))
        # Completely hidden ops keep their position, with an own time of 0.
        is_hidden = free_from >= high
        low, high = np.where(is_hidden, low, free_from), np.where(is_hidden, low, high)
        op, window, low, high = _split_at_steps(selected, low, high, step_starts, step_ends)
        own_ns = (high - low) - (length_before(*busy, high) - length_before(*busy, low))
        owned_by_group.append((op, window, own_ns))
        busy = _union(busy, (low, high))
    if not owned_by_group:
        empty = np.zeros(0, np.int64)
        return empty, empty, empty, busy
    op, window, own_ns = (np.concatenate(parts) for parts in zip(*owned_by_group, strict=True))
    order = np.lexsort((op, window))
    return op[order], window[order], own_ns[order], busy


def _split_at_steps(
    ops: Integers, low: Integers, high: Integers, step_starts: Integers, step_ends: Integers
) -> tuple[Integers, Integers, Integers, Integers]:
    """The intervals split at step boundaries: an op that continues in the next step is in both."""
    first = np.maximum(np.searchsorted(step_starts, low, side="right") - 1, 0)
    last = np.maximum(
        np.searchsorted(step_starts, np.maximum(high - 1, low), side="right") - 1, first
    )
    counts = last - first + 1
    row = np.repeat(np.arange(len(ops)), counts)
    window = first[row] + (np.arange(len(row)) - np.repeat(np.cumsum(counts) - counts, counts))
    cut_low = np.clip(low[row], step_starts[window], step_ends[window])
    cut_high = np.clip(high[row], step_starts[window], step_ends[window])
    # Ops without own time remain rows of the step in which they started.
    starts_here = (low[row] >= step_starts[window]) & (low[row] < step_ends[window])
    kept = (cut_high > cut_low) | starts_here
    return ops[row][kept], window[kept], cut_low[kept], cut_high[kept]


def _union(
    first: tuple[Integers, Integers], second: tuple[Integers, Integers]
) -> tuple[Integers, Integers]:
    """The union of two sets of intervals."""
    low = np.concatenate([first[0], second[0]])
    high = np.concatenate([first[1], second[1]])
    kept = high > low
    low, high = low[kept], high[kept]
    order = np.argsort(low, kind="stable")
    low, high = low[order], high[order]
    if not len(low):
        return low, high
    ends_so_far = np.maximum.accumulate(high)
    is_first = np.concatenate([[True], low[1:] > ends_so_far[:-1]])
    starts = np.flatnonzero(is_first)
    return low[starts], np.concatenate([ends_so_far[starts[1:] - 1], ends_so_far[-1:]])


def _waits(
    starts: Integers,
    typed_ops: tuple[Sequence[str], Integers],
    busy: tuple[Integers, Integers],
    step_starts: Integers,
    step_ends: Integers,
) -> list[dict[str, int]]:
    """The idle time of each step, by the type of the op that ends it."""
    low = np.concatenate([busy[0], step_ends])
    high = np.concatenate([busy[1], step_ends])
    order = np.argsort(low, kind="stable")
    low, high = low[order], high[order]
    busy_until = np.concatenate([step_starts[:1], np.maximum.accumulate(high)[:-1]])
    gaps = np.flatnonzero(low > busy_until)
    start, end = busy_until[gaps], low[gaps]
    op = np.searchsorted(starts, end, side="left")
    window = np.maximum(np.searchsorted(step_starts, start, side="right") - 1, 0)
    has_next_op = np.append(starts, -1)[op] == end
    types, op_numbers = typed_ops
    names = {name: index for index, name in enumerate(dict.fromkeys(["", *types]))}
    name_of = np.array([names[name] for name in types], np.int64)
    ending_type = np.zeros(len(op), np.int64)
    ending_type[has_next_op] = name_of[op_numbers[op[has_next_op]]]
    kinds = list(names)
    waits: list[dict[str, int]] = [{} for _ in range(len(step_starts))]
    for token, _, length in summed(window * len(names) + ending_type, end - start):
        step, name = divmod(token, len(names))
        waits[step][kinds[name]] = length
    return waits


def summed(tokens: Integers, durations: Integers) -> list[tuple[int, int, int]]:
    """Each token with its count and total duration."""
    token, index, count = np.unique(tokens, return_inverse=True, return_counts=True)
    sums = np.zeros(len(token), np.int64)
    np.add.at(sums, index, durations)
    return list(zip(token.tolist(), count.tolist(), sums.tolist(), strict=True))
