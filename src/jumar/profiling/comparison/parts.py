"""The change of step time, split into parts that add up to it."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, Literal

import polars as pl

from jumar.profiling.comparison.aligning import Key, align
from jumar.profiling.comparison.op_kinds import base_type, conversion, floats
from jumar.profiling.comparison.own_times import Row, Side, Step, side_of
from jumar.profiling.profile import Profile

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

TITLES: Final[dict[PartName, str]] = {
    "kernel": "kernels, same dtypes and shapes",
    "dtype": "changed dtypes",
    "shape": "changed shapes",
    "casts": "casts",
    "formats": "format changes, copies on the device",
    "replaced": "ops replaced by others, fusion",
    "count": "ops added or left out",
    "communication": "communication, where not hidden",
    "copies": "memcpy and memset, where not hidden",
    "waiting": "waiting: nothing runs",
}
"""What each part means, in the order in which they are shown."""

CHANGES = {
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
"""A row a group of ops: what it was and is (dtypes, formats, or other ops), and its own times."""


@dataclass(frozen=True, kw_only=True)
class Part:
    """One part of the difference, in nanoseconds of all compared steps together.

    `faster_ns` and `slower_ns` are what the groups of ops in it won and lost; their sum is the
    change.
    """

    name: PartName
    before_ns: int
    after_ns: int
    faster_ns: int
    slower_ns: int

    @property
    def delta_ns(self) -> int:
        """The change."""
        return self.after_ns - self.before_ns


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """Two profiles, step by step.

    Args:
        before: The first profile, cut to the steps that are compared.
        after: The second one.
        parts: Every part; their changes add up to `delta_ns` exactly.
        changes: The groups of ops (`CHANGES`), the largest change first; they add up as well.
        notes: What limits the comparison.
    """

    before: Side
    after: Side
    parts: tuple[Part, ...]
    changes: pl.DataFrame = field(repr=False)
    notes: tuple[str, ...]

    @property
    def steps(self) -> int:
        """How many steps of each side are compared."""
        return len(self.before.steps)

    @property
    def before_ns(self) -> int:
        """All compared steps of the first profile together."""
        return sum(step.lasted_ns for step in self.before.steps)

    @property
    def after_ns(self) -> int:
        """All compared steps of the second profile together."""
        return sum(step.lasted_ns for step in self.after.steps)

    @property
    def delta_ns(self) -> int:
        """By how much the steps of the second profile last longer, together."""
        return self.after_ns - self.before_ns

    @property
    def changes_dtypes(self) -> bool:
        """Whether ops compute in other dtypes: a pair of precision modes."""
        return bool((self.changes["part"] == "dtype").any())


def compare(before: Profile, after: Profile) -> Comparison:
    """Explain why a step of one profile takes longer or shorter than one of another.

    Seen from the slowest rank of each, in as many steady steps as both have. Every nanosecond of a
    step belongs to one op or to waiting, so the parts add up to the difference without a rest.

    Raises:
        Impossible: A profile has no op with start and duration.
    """
    return compare_sides(side_of(before), side_of(after))


def compare_sides(before: Side, after: Side) -> Comparison:
    """The same for sides that are made already."""
    count = min(len(before.steps), len(after.steps))
    left = replace(before, steps=before.steps[:count])
    right = replace(after, steps=after.steps[:count])
    groups = _Groups()
    for one, other in zip(left.steps, right.steps, strict=True):
        _compare_step(one, other, groups)
    changes = groups.table()
    return Comparison(
        before=left,
        after=right,
        parts=tuple(_parts(changes)),
        changes=changes,
        notes=tuple(_notes(before, after, count)),
    )


_Group = tuple[PartName, str, str, str, str, str]


class _Groups:
    """Own times summed by what the ops have in common."""

    def __init__(self) -> None:
        self.sums: defaultdict[_Group, list[int]] = defaultdict(lambda: [0, 0, 0, 0])

    def add(self, group: _Group, before: Iterable[int], after: Iterable[int]) -> None:
        sums = self.sums[group]
        for place, lengths in enumerate((before, after)):
            for length in lengths:
                sums[place] += 1
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


def _compare_step(before: Step, after: Step, groups: _Groups) -> None:
    ours = [row for row in before.rows if row.kind == "compute"]
    theirs = [row for row in after.rows if row.kind == "compute"]
    found = align([_key(row) for row in ours], [_key(row) for row in theirs])
    for left, right in found.pairs:
        _pair(ours[left], theirs[right], groups)
    _unpaired(
        [(ours[row], gap) for row, gap in found.removed],
        [(theirs[row], gap) for row, gap in found.added],
        groups,
    )
    for side, rows in enumerate((before.rows, after.rows)):
        for row in rows:
            if row.kind != "compute":
                lengths = ((row.own_ns,), ()) if side == 0 else ((), (row.own_ns,))
                groups.add(_beside(row), *lengths)
    for side, waits in enumerate((before.waits, after.waits)):
        for name, length in waits.items():
            what = f"before {name}" if name else "before the end of the step"
            lengths = ((length,), ()) if side == 0 else ((), (length,))
            groups.add(("waiting", what, "", "", "", ""), *lengths)


def _key(row: Row) -> Key:
    return Key(row.type, row.input_shapes, row.module, base_type(row.type))


def _pair(before: Row, after: Row, groups: _Groups) -> None:
    part: PartName = "kernel"
    widths = floats(before.dtypes), floats(after.dtypes)
    if widths[0] != widths[1] and all(widths):
        part = "dtype"
    elif before.input_shapes != after.input_shapes:
        part = "shape"
    shapes = _either(before.input_shapes, after.input_shapes)
    group = (part, _either(before.type, after.type), _either(before.module, after.module), shapes)
    groups.add((*group, before.dtypes, after.dtypes), (before.own_ns,), (after.own_ns,))


def _either(before: str, after: str) -> str:
    return before if before == after else f"{before} → {after}"


def _unpaired(
    removed: Sequence[tuple[Row, int]], added: Sequence[tuple[Row, int]], groups: _Groups
) -> None:
    """Ops without a partner: replaced where both sides have some in one gap, else added or gone."""
    gone: defaultdict[int, list[Row]] = defaultdict(list)
    new: defaultdict[int, list[Row]] = defaultdict(list)
    for row, gap in removed:
        gone[gap].append(row)
    for row, gap in added:
        new[gap].append(row)
    for gap in sorted(gone.keys() | new.keys()):
        old_rows, new_rows = gone[gap], new[gap]
        if old_rows and new_rows:
            what = f"{_named(old_rows)} → {_named(new_rows)}"
            groups.add(
                ("replaced", what, "", "", "", ""),
                [row.own_ns for row in old_rows],
                [row.own_ns for row in new_rows],
            )
            continue
        for row in old_rows:
            groups.add(_counted(row, row.dtypes, ""), (row.own_ns,), ())
        for row in new_rows:
            groups.add(_counted(row, "", row.dtypes), (), (row.own_ns,))


def _counted(row: Row, before: str, after: str) -> _Group:
    return "count", row.type, row.module, row.input_shapes, before, after


_NAMED: Final = 6


def _named(rows: Sequence[Row]) -> str:
    """The types of ops with their numbers, the most frequent first, for one line."""
    counts = Counter(row.type for row in rows)
    names = [f"{count} x {kind}" if count > 1 else kind for kind, count in counts.most_common()]
    rest = f" + {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return " + ".join(names[:_NAMED]) + rest


def _beside(row: Row) -> _Group:
    """The group of what is no computing; both sides of a cast stand in its name."""
    if row.kind == "cast":
        source, target = conversion(row.type, row.input_types, row.output_types)
        what = f"{row.type} {source} to {target}" if target else f"{row.type} of {source}"
        return "casts", what, row.module, row.input_shapes, "", ""
    if row.kind == "format":
        ways = f" {row.input_formats} to {row.output_formats}" if row.output_formats else ""
        return "formats", f"{row.type}{ways}", row.module, row.input_shapes, "", ""
    part: PartName = "communication" if row.kind == "communication" else "copies"
    return part, row.type, "", "", "", ""


def _parts(changes: pl.DataFrame) -> Iterable[Part]:
    found = {
        str(row["part"]): row
        for row in changes.group_by("part")
        .agg(
            pl.col("before_ns").sum(),
            pl.col("after_ns").sum(),
            pl.col("delta_ns").clip(upper_bound=0).sum().alias("faster_ns"),
            pl.col("delta_ns").clip(lower_bound=0).sum().alias("slower_ns"),
        )
        .iter_rows(named=True)
    }
    for name in TITLES:
        row = found.get(name)
        if row is not None:
            yield Part(
                name=name,
                before_ns=int(row["before_ns"]),
                after_ns=int(row["after_ns"]),
                faster_ns=int(row["faster_ns"]),
                slower_ns=int(row["slower_ns"]),
            )


def _notes(before: Side, after: Side, count: int) -> Iterable[str]:
    for side in (before, after):
        if len(side.steps) > count:
            yield f"{side.source} has {len(side.steps)} steady steps; {count} are compared"
        if not side.has_types:
            yield f"{side.source} has no types of ops (Level 0): ops are told apart by their names"
        if not side.has_dtypes:
            yield f"{side.source} has no dtypes: changed dtypes cannot be told"
    if before.kind != after.kind:
        yield f"different devices: {before.kind} and {after.kind}"
    elif before.chip != after.chip and before.chip and after.chip:
        yield f"different chips: {before.chip} and {after.chip}"
