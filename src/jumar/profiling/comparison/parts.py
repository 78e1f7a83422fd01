"""The change of step time, split into parts that add up to it."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Final

import polars as pl

from jumar.profiling.comparison.changes import PartName, changes_of
from jumar.profiling.comparison.own_times import Side, side_of
from jumar.profiling.profile import Profile

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
    changes = changes_of(left, right)
    return Comparison(
        before=left,
        after=right,
        parts=tuple(_parts(changes)),
        changes=changes,
        notes=tuple(_notes(before, after, count)),
    )


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
