"""The change of step time, split into parts that add up to it."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Final

import polars as pl

from jumar.ground.text import Text
from jumar.profiling.comparison.changes import PartName, changes_of
from jumar.profiling.comparison.own_times import Side, side_of
from jumar.profiling.profile import Profile

TITLES: Final[dict[PartName, Text]] = {
    "kernel": Text(en="kernels, same dtypes and shapes", zh="算子本身（类型和形状相同）"),
    "dtype": Text(en="changed dtypes", zh="数据类型变化"),
    "shape": Text(en="changed shapes", zh="形状变化"),
    "casts": Text(en="casts", zh="类型转换"),
    "formats": Text(en="format changes, copies on the device", zh="格式转换、设备内拷贝"),
    "replaced": Text(en="ops replaced by others, fusion", zh="算子替换、融合"),
    "count": Text(en="ops added or left out", zh="算子增减"),
    "communication": Text(en="communication, where not hidden", zh="未掩盖通信"),
    "copies": Text(en="memcpy and memset, where not hidden", zh="未掩盖的 memcpy 和 memset"),
    "waiting": Text(en="waiting: nothing runs", zh="等待：无任务执行"),
}
"""What each part means, in the order in which they are shown."""


@dataclass(frozen=True, kw_only=True)
class Share:
    """One part of the difference, in nanoseconds of all compared steps together.

    `faster_ns` and `slower_ns` are what its groups of ops gained and lost; their sum is the
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
        notes: Limits of the comparison.
    """

    before: Side
    after: Side
    parts: tuple[Share, ...]
    changes: pl.DataFrame = field(repr=False)
    notes: tuple[Text, ...]

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
        """How much longer all steps of the second profile take."""
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
    """The same for existing sides."""
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


def _parts(changes: pl.DataFrame) -> Iterable[Share]:
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
    for name in TITLES:
        row = sums.get(name)
        if row is not None:
            yield Share(
                name=name,
                before_ns=int(row["before_ns"]),
                after_ns=int(row["after_ns"]),
                faster_ns=int(row["faster_ns"]),
                slower_ns=int(row["slower_ns"]),
            )


def _notes(before: Side, after: Side, count: int) -> Iterable[Text]:
    for side in (before, after):
        yield from side.doubts
        name, steps = side.source, len(side.steps)
        if steps > count:
            yield Text(
                en=f"{name} has {steps} steady steps; {count} are compared",
                zh=f"{name} 有 {steps} 个稳定迭代，对比其中 {count} 个",
            )
        if not side.has_types:
            yield Text(
                en=f"{name} has no types of ops (Level 0): ops are told apart by their names",
                zh=f"{name} 没有算子类型（Level 0）：按名称区分算子",
            )
        if not side.has_dtypes:
            yield Text(
                en=f"{name} has no dtypes: changed dtypes cannot be detected",
                zh=f"{name} 没有数据类型：无法识别数据类型的变化",
            )
    if before.fingerprint == after.fingerprint:
        yield Text(
            en="both are the same capture: the same ops at the same times",
            zh="两者是同一份采集数据：算子及其时间完全相同",
        )
    for en, zh, one, other in (
        ("devices", "设备", before.kind, after.kind),
        ("chips", "芯片", before.chip, after.chip),
    ):
        if one and other and one != other:
            yield Text(en=f"different {en}: {one} and {other}", zh=f"{zh}不同：{one} 和 {other}")
            return
