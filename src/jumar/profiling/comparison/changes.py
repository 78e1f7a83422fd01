"""Each group of ops with its own times before and after."""

from collections import Counter, defaultdict
from collections.abc import Hashable, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Final, Literal, NamedTuple

import numpy as np
import polars as pl

from jumar.profiling.comparison.aligning import Aligned, Key, Tokens, align_rows, token_columns
from jumar.profiling.comparison.op_kinds import base_type, conversion, floats
from jumar.profiling.comparison.own_times import Op, Side, Whole

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
"""One row per group of ops: its dtypes, formats or ops before and after, and its own times."""

_Group = tuple[PartName, str, str, str, str, str]


class _Groups:
    """Own times summed over ops with the same key."""

    def __init__(self) -> None:
        self.sums: defaultdict[_Group, list[int]] = defaultdict(lambda: [0, 0, 0, 0])

    def add(self, group: _Group, place: int, count: int, length: int) -> None:
        """Ops of a group: `place` 0 is before, 1 after."""
        sums = self.sums[group]
        sums[place] += count
        sums[2 + place] += length

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
    """Rows of all steps of a side together."""

    ops: Sequence[Op]
    step: Whole
    which: Whole
    own_ns: Whole

    def some(self, rows: Whole) -> "_Rows":
        return _Rows(self.ops, self.step[rows], self.which[rows], self.own_ns[rows])


def changes_of(before: Side, after: Side) -> pl.DataFrame:
    """The groups of ops of two sides with as many steps (`CHANGES`), the largest change first."""
    groups = _Groups()
    numbers: dict[Hashable, int] = {}
    # A capture without stacks has no layers, and a class that was renamed has others.
    layers = {op.module for op in before.ops} & {op.module for op in after.ops}
    sides: list[tuple[_Rows, Tokens]] = []
    for place, side in enumerate((before, after)):
        rows = _rows(side)
        computes = np.array([op.kind == "compute" for op in side.ops], bool)[rows.which]
        _add_beside(rows.some(np.flatnonzero(~computes)), place, groups)
        _add_waits(side, place, groups)
        computing = rows.some(np.flatnonzero(computes))
        keys = [
            Key(
                op.type,
                op.input_shapes,
                op.module if op.module in layers else "",
                base_type(op.type),
            )
            for op in side.ops
        ]
        columns = token_columns(keys, numbers)
        sides.append(
            (computing, Tokens(computing.step, *(column[computing.which] for column in columns)))
        )
    (old, tokens), (new, other_tokens) = sides
    aligned = align_rows(tokens, other_tokens)
    _add_pairs(old.some(aligned.left), new.some(aligned.right), groups)
    _add_unpaired(old, new, aligned, groups)
    return groups.table()


def _rows(side: Side) -> _Rows:
    nothing = [np.zeros(0, np.int64)]
    counts = np.array([len(step.which) for step in side.steps], np.int64)
    return _Rows(
        side.ops,
        np.repeat(np.arange(len(counts)), counts),
        np.concatenate(nothing + [step.which for step in side.steps]),
        np.concatenate(nothing + [step.own_ns for step in side.steps]),
    )


def _summed(tokens: Whole, lengths: Whole) -> list[tuple[int, int, int]]:
    """Each token with its count and its total length."""
    token, place, count = np.unique(tokens, return_inverse=True, return_counts=True)
    sums = np.zeros(len(token), np.int64)
    np.add.at(sums, place, lengths)
    return list(zip(token.tolist(), count.tolist(), sums.tolist(), strict=True))


def _add_waits(side: Side, place: int, groups: _Groups) -> None:
    for step in side.steps:
        for name, length in step.waits.items():
            what = f"before {name}" if name else "before the end of the step"
            groups.add(("waiting", what, "", "", "", ""), place, 1, length)


def _add_beside(rows: _Rows, place: int, groups: _Groups) -> None:
    for which, count, length in _summed(rows.which, rows.own_ns):
        groups.add(_beside(rows.ops[which]), place, count, length)


def _beside(op: Op) -> _Group:
    """The group of an op that does not compute; both sides of a cast are in its name."""
    if op.kind == "cast":
        source, target = conversion(op.type, op.input_types, op.output_types)
        what = f"{op.type} {source} to {target}" if target else f"{op.type} of {source}"
        return "casts", what, op.module, op.input_shapes, "", ""
    if op.kind == "format":
        ways = f" {op.input_formats} to {op.output_formats}" if op.output_formats else ""
        return "formats", f"{op.type}{ways}", op.module, op.input_shapes, "", ""
    part: PartName = "communication" if op.kind == "communication" else "copies"
    return part, op.type, "", "", "", ""


def _add_pairs(before: _Rows, after: _Rows, groups: _Groups) -> None:
    count = len(after.ops)
    tokens = before.which * count + after.which
    for place, rows in enumerate((before, after)):
        for token, times, length in _summed(tokens, rows.own_ns):
            left, right = divmod(token, count)
            groups.add(_paired(before.ops[left], after.ops[right]), place, times, length)


def _paired(before: Op, after: Op) -> _Group:
    part: PartName = "kernel"
    widths = floats(before.dtypes), floats(after.dtypes)
    if widths[0] != widths[1] and all(widths):
        part = "dtype"
    elif before.input_shapes != after.input_shapes:
        part = "shape"
    return (
        part,
        _either(before.type, after.type),
        _either(before.module, after.module),
        _either(before.input_shapes, after.input_shapes),
        before.dtypes,
        after.dtypes,
    )


def _either(before: str, after: str) -> str:
    return before if before == after else f"{before} → {after}"


def _add_unpaired(before: _Rows, after: _Rows, aligned: Aligned, groups: _Groups) -> None:
    """Unpaired ops: replaced if both sides have some in one gap, else added or removed."""
    gaps = aligned.gap_left[aligned.removed], aligned.gap_right[aligned.added]
    both = np.intersect1d(*gaps)
    sides = before.some(aligned.removed), after.some(aligned.added)
    for place, (rows, gap) in enumerate(zip(sides, gaps, strict=True)):
        alone = rows.some(np.flatnonzero(~np.isin(gap, both)))
        for which, count, length in _summed(alone.which, alone.own_ns):
            op = rows.ops[which]
            was, is_now = (op.dtypes, "") if place == 0 else ("", op.dtypes)
            groups.add(
                ("count", op.type, op.module, op.input_shapes, was, is_now), place, count, length
            )
    # Rows are in the order of their gaps, so those of one gap follow each other.
    parts = [_of_gaps(rows, gap, both) for rows, gap in zip(sides, gaps, strict=True)]
    for (old, old_ns), (new, new_ns) in zip(*parts, strict=True):
        group: _Group = ("replaced", f"{_named(old)} → {_named(new)}", "", "", "", "")
        groups.add(group, 0, len(old), old_ns)
        groups.add(group, 1, len(new), new_ns)


def _of_gaps(rows: _Rows, gap: Whole, wanted: Whole) -> list[tuple[tuple[str, ...], int]]:
    """For each gap, the types of its rows, and their total own time."""
    kept = np.flatnonzero(np.isin(gap, wanted))
    types = [rows.ops[which].type for which in rows.which[kept].tolist()]
    until = np.concatenate([[0], np.cumsum(rows.own_ns[kept])]).tolist()
    edges = np.append(np.searchsorted(gap[kept], wanted), len(kept)).tolist()
    return [(tuple(types[low:high]), until[high] - until[low]) for low, high in pairwise(edges)]


_NAMED: Final = 6


@lru_cache(maxsize=65536)
def _named(types: tuple[str, ...]) -> str:
    """The types of ops with their counts in one line, the most frequent first."""
    counts = Counter(types)
    names = [f"{count} x {kind}" if count > 1 else kind for kind, count in counts.most_common()]
    rest = f" + {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return " + ".join(names[:_NAMED]) + rest
