"""Splits the change of step time into parts that add up to it."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Final

import polars as pl

from jumar.ground.text import Text
from jumar.profiling.comparison.changes import PartName, changes_of
from jumar.profiling.comparison.own_times import PreparedProfile, prepare
from jumar.profiling.profile import Profile

PART_TITLES: Final[dict[PartName, Text]] = {
    "kernel": Text(en="kernels, same dtypes and shapes", zh="算子本身（类型和形状相同）"),
    "dtype": Text(en="changed dtypes", zh="数据类型变化"),
    "shape": Text(en="changed shapes", zh="形状变化"),
    "casts": Text(en="casts", zh="类型转换"),
    "formats": Text(en="format changes, copies on the device", zh="格式转换、设备内拷贝"),
    "replaced": Text(en="ops replaced by others, fusion", zh="算子替换、融合"),
    "count": Text(en="ops added or removed", zh="算子增减"),
    "communication": Text(en="uncovered communication", zh="未掩盖通信"),
    "copies": Text(en="uncovered memcpy and memset", zh="未掩盖的 memcpy 和 memset"),
    "waiting": Text(en="waiting: nothing runs", zh="等待：无任务执行"),
}
"""The title of each part, in display order."""


@dataclass(frozen=True, kw_only=True)
class ChangePart:
    """One part of the difference, in nanoseconds over all compared steps.

    `faster_ns` is the sum over the groups of ops that got faster, and negative; `slower_ns` is the
    sum over the other groups.
    """

    name: PartName
    before_ns: int
    after_ns: int
    faster_ns: int
    slower_ns: int

    @property
    def delta_ns(self) -> int:
        """The change of this part."""
        return self.after_ns - self.before_ns


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """The comparison of two profiles.

    Args:
        before: The first profile, with only the compared steps.
        after: The second profile, likewise.
        parts: The parts of the difference; their changes add up exactly to `delta_ns`.
        changes: The groups of ops (`CHANGES`), largest change first; they add up as well.
        notes: Limitations of the comparison.
    """

    before: PreparedProfile
    after: PreparedProfile
    parts: tuple[ChangePart, ...]
    changes: pl.DataFrame = field(repr=False)
    notes: tuple[Text, ...]

    @property
    def steps(self) -> int:
        """Number of compared steps of each profile."""
        return len(self.before.steps)

    @property
    def before_ns(self) -> int:
        """Total duration of the compared steps of the first profile."""
        return sum(step.duration_ns for step in self.before.steps)

    @property
    def after_ns(self) -> int:
        """Total duration of the compared steps of the second profile."""
        return sum(step.duration_ns for step in self.after.steps)

    @property
    def delta_ns(self) -> int:
        """The change of the total duration from the first profile to the second."""
        return self.after_ns - self.before_ns

    @property
    def changes_dtypes(self) -> bool:
        """Whether ops changed their dtypes, as in a pair of precision modes."""
        return bool((self.changes["part"] == "dtype").any())


def compare(before: Profile, after: Profile) -> Comparison:
    """Explain why a step of one profile takes longer or shorter than one of another.

    Compares the slowest rank of each, over as many steady steps as both have. Every nanosecond of a
    step belongs to one op or to waiting, so the parts add up exactly to the difference.

    Raises:
        Impossible: A profile has no op with start time and duration.
    """
    return compare_prepared(prepare(before), prepare(after))


def compare_prepared(before: PreparedProfile, after: PreparedProfile) -> Comparison:
    """`compare` for prepared profiles."""
    count = min(len(before.steps), len(after.steps))
    cut_before = replace(before, steps=before.steps[:count])
    cut_after = replace(after, steps=after.steps[:count])
    changes = changes_of(cut_before, cut_after)
    return Comparison(
        before=cut_before,
        after=cut_after,
        parts=tuple(_parts(changes)),
        changes=changes,
        notes=tuple(_notes(before, after, count)),
    )


def _parts(changes: pl.DataFrame) -> Iterable[ChangePart]:
    sums = {
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
    for name in PART_TITLES:
        row = sums.get(name)
        if row is not None:
            yield ChangePart(
                name=name,
                before_ns=int(row["before_ns"]),
                after_ns=int(row["after_ns"]),
                faster_ns=int(row["faster_ns"]),
                slower_ns=int(row["slower_ns"]),
            )


def _notes(before: PreparedProfile, after: PreparedProfile, count: int) -> Iterable[Text]:
    for profile in (before, after):
        yield from profile.notes
        name, steps = profile.source, len(profile.steps)
        if steps > count:
            yield Text(
                en=f"{name} has {steps} steady steps; {count} are compared",
                zh=f"{name} 有 {steps} 个稳定迭代，对比其中 {count} 个",
            )
        if not profile.has_types:
            yield Text(
                en=f"{name} has no op types (Level 0): ops are distinguished by their names",
                zh=f"{name} 没有算子类型（Level 0）：按名称区分算子",
            )
        if not profile.has_dtypes:
            yield Text(
                en=f"{name} has no dtypes: changed dtypes cannot be detected",
                zh=f"{name} 没有数据类型：无法识别数据类型的变化",
            )
    if before.fingerprint == after.fingerprint:
        yield Text(
            en="both are the same capture: the same ops at the same times",
            zh="两者是同一份采集数据：算子及其时间完全相同",
        )
    for en, zh, first, second in (
        ("devices", "设备", before.kind, after.kind),
        ("chips", "芯片", before.chip, after.chip),
    ):
        if first and second and first != second:
            yield Text(
                en=f"different {en}: {first} and {second}", zh=f"{zh}不同：{first} 和 {second}"
            )
            return
