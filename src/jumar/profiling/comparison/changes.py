"""Groups of ops, with their own times before and after."""

from collections import Counter, defaultdict
from collections.abc import Hashable, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Final, Literal, NamedTuple

import numpy as np
import polars as pl

from jumar.profiling.comparison.aligning import Aligned, Key, Tokens, align_rows, token_columns
from jumar.profiling.comparison.op_kinds import base_type, conversion, float_dtypes
from jumar.profiling.comparison.own_times import Integers, Op, PreparedProfile, summed

PartName = Literal[
    "kernel",
    "dtype",
    "shape",
    "casts",
    "formats",
    "replaced",
    "count",
    "communication",
    "copies",
    "waiting",
]

CHANGES: Final = {
    "part": pl.String(),
    "type": pl.String(),
    "module": pl.String(),
    "shapes": pl.String(),
    "before": pl.String(),
    "after": pl.String(),
    "before_count": pl.Int64(),
    "after_count": pl.Int64(),
    "before_ns": pl.Int64(),
    "after_ns": pl.Int64(),
    "delta_ns": pl.Int64(),
}
"""One row per group of ops: its dtypes, counts and own times before and after."""

_Group = tuple[PartName, str, str, str, str, str]


class _Groups:
    """Own times summed over ops with the same key."""

    def __init__(self) -> None:
        self.sums: defaultdict[_Group, list[int]] = defaultdict(lambda: [0, 0, 0, 0])

    def add(self, group: _Group, side_index: int, count: int, duration: int) -> None:
        """Add ops to a group; `side_index` is 0 for before, 1 for after."""
        sums = self.sums[group]
        sums[side_index] += count
        sums[2 + side_index] += duration

    def table(self) -> pl.DataFrame:
        rows = [(*group, *sums, sums[3] - sums[2]) for group, sums in self.sums.items()]
        table = pl.DataFrame(rows, schema=CHANGES, orient="row")
        return table.sort(
            pl.col("delta_ns").abs(),
            "part",
            "type",
            "before",
            "after",
            "shapes",
            "module",
            descending=[True, *[False] * 6],
        )


class _Rows(NamedTuple):
    """The rows of all steps of a profile."""

    ops: Sequence[Op]
    step: Integers
    op_numbers: Integers
    own_ns: Integers

    def select(self, rows: Integers) -> "_Rows":
        return _Rows(self.ops, self.step[rows], self.op_numbers[rows], self.own_ns[rows])


def changes_of(before: PreparedProfile, after: PreparedProfile) -> pl.DataFrame:
    """Groups of ops of two profiles with equally many steps (`CHANGES`), largest change first."""
    groups = _Groups()
    numbers: dict[Hashable, int] = {}
    # Captures without stacks have no layers, and a renamed class is another layer.
    shared_layers = {op.module for op in before.ops} & {op.module for op in after.ops}
    sides: list[tuple[_Rows, Tokens]] = []
    for side_index, profile in enumerate((before, after)):
        rows = _rows(profile)
        is_compute = np.array([op.kind == "compute" for op in profile.ops], bool)[rows.op_numbers]
        _add_non_compute(rows.select(np.flatnonzero(~is_compute)), side_index, groups)
        _add_waits(profile, side_index, groups)
        compute_rows = rows.select(np.flatnonzero(is_compute))
        keys = [
            Key(
                op.type,
                op.input_shapes,
                op.module if op.module in shared_layers else "",
                base_type(op.type),
            )
            for op in profile.ops
        ]
        columns = token_columns(keys, numbers)
        sides.append(
            (
                compute_rows,
                Tokens(compute_rows.step, *(column[compute_rows.op_numbers] for column in columns)),
            )
        )
    (before_rows, before_tokens), (after_rows, after_tokens) = sides
    aligned = align_rows(before_tokens, after_tokens)
    _add_pairs(before_rows.select(aligned.left), after_rows.select(aligned.right), groups)
    _add_unpaired(before_rows, after_rows, aligned, groups)
    return groups.table()


def _rows(profile: PreparedProfile) -> _Rows:
    empty = [np.zeros(0, np.int64)]
    counts = np.array([len(step.op_numbers) for step in profile.steps], np.int64)
    return _Rows(
        profile.ops,
        np.repeat(np.arange(len(counts)), counts),
        np.concatenate(empty + [step.op_numbers for step in profile.steps]),
        np.concatenate(empty + [step.own_ns for step in profile.steps]),
    )


def _add_waits(profile: PreparedProfile, side_index: int, groups: _Groups) -> None:
    for step in profile.steps:
        for name, length in step.waits.items():
            what = f"before {name}" if name else "before the end of the step"
            groups.add(("waiting", what, "", "", "", ""), side_index, 1, length)


def _add_non_compute(rows: _Rows, side_index: int, groups: _Groups) -> None:
    for op_number, count, length in summed(rows.op_numbers, rows.own_ns):
        groups.add(_non_compute_group(rows.ops[op_number]), side_index, count, length)


def _non_compute_group(op: Op) -> _Group:
    """The group of an op that does not compute; a cast's group includes both dtypes."""
    if op.kind == "cast":
        source, target = conversion(op.type, op.input_types, op.output_types)
        what = f"{op.type} {source} to {target}" if target else f"{op.type} of {source}"
        return "casts", what, op.module, op.input_shapes, "", ""
    if op.kind == "format":
        formats = f" {op.input_formats} to {op.output_formats}" if op.output_formats else ""
        return "formats", f"{op.type}{formats}", op.module, op.input_shapes, "", ""
    part: PartName = "communication" if op.kind == "communication" else "copies"
    return part, op.type, "", "", "", ""


def _add_pairs(before: _Rows, after: _Rows, groups: _Groups) -> None:
    count = len(after.ops)
    tokens = before.op_numbers * count + after.op_numbers
    for side_index, rows in enumerate((before, after)):
        for token, size, length in summed(tokens, rows.own_ns):
            left, right = divmod(token, count)
            groups.add(_pair_group(before.ops[left], after.ops[right]), side_index, size, length)


def _pair_group(before: Op, after: Op) -> _Group:
    part: PartName = "kernel"
    widths = float_dtypes(before.dtypes), float_dtypes(after.dtypes)
    if widths[0] != widths[1] and all(widths):
        part = "dtype"
    elif before.input_shapes != after.input_shapes:
        part = "shape"
    return (
        part,
        _before_and_after(before.type, after.type),
        _before_and_after(before.module, after.module),
        _before_and_after(before.input_shapes, after.input_shapes),
        before.dtypes,
        after.dtypes,
    )


def _before_and_after(before: str, after: str) -> str:
    return before if before == after else f"{before} → {after}"


def _add_unpaired(before: _Rows, after: _Rows, aligned: Aligned, groups: _Groups) -> None:
    """Add unpaired ops: as replaced if both sides have some in a gap, else as added or removed."""
    gaps = aligned.gap_left[aligned.removed], aligned.gap_right[aligned.added]
    shared_gaps = np.intersect1d(*gaps)
    sides = before.select(aligned.removed), after.select(aligned.added)
    for side_index, (rows, gap) in enumerate(zip(sides, gaps, strict=True)):
        unreplaced = rows.select(np.flatnonzero(~np.isin(gap, shared_gaps)))
        for op_number, count, length in summed(unreplaced.op_numbers, unreplaced.own_ns):
            op = rows.ops[op_number]
            before_dtypes, after_dtypes = (op.dtypes, "") if side_index == 0 else ("", op.dtypes)
            groups.add(
                ("count", op.type, op.module, op.input_shapes, before_dtypes, after_dtypes),
                side_index,
                count,
                length,
            )
    # Rows are sorted by gap, so those of a gap are consecutive.
    parts = [_types_by_gap(rows, gap, shared_gaps) for rows, gap in zip(sides, gaps, strict=True)]
    for (old, old_ns), (new, new_ns) in zip(*parts, strict=True):
        group: _Group = ("replaced", f"{_type_list(old)} → {_type_list(new)}", "", "", "", "")
        groups.add(group, 0, len(old), old_ns)
        groups.add(group, 1, len(new), new_ns)


def _types_by_gap(rows: _Rows, gap: Integers, gaps: Integers) -> list[tuple[tuple[str, ...], int]]:
    """The types of the rows in each of some gaps, and their total own time."""
    selected = np.flatnonzero(np.isin(gap, gaps))
    types = [rows.ops[op_number].type for op_number in rows.op_numbers[selected].tolist()]
    time_before = np.concatenate([[0], np.cumsum(rows.own_ns[selected])]).tolist()
    edges = np.append(np.searchsorted(gap[selected], gaps), len(selected)).tolist()
    return [
        (tuple(types[low:high]), time_before[high] - time_before[low])
        for low, high in pairwise(edges)
    ]


_MAX_LISTED: Final = 6


@lru_cache(maxsize=65536)
def _type_list(types: tuple[str, ...]) -> str:
    """A list of op types with their counts, the most frequent first."""
    counts = Counter(types)
    names = [f"{count} x {kind}" if count > 1 else kind for kind, count in counts.most_common()]
    more = f" + {len(names) - _MAX_LISTED} more" if len(names) > _MAX_LISTED else ""
    return " + ".join(names[:_MAX_LISTED]) + more
