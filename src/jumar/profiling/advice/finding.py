"""A finding: intervals of a step that would go, why, and what to change."""

from dataclasses import dataclass, field
from functools import cached_property

import polars as pl

from jumar.profiling.profile import Profile
from jumar.profiling.views.alike import kinds
from jumar.profiling.views.host_calls import Cause, causes
from jumar.profiling.views.intervals import difference, merged, segments, spans, union
from jumar.profiling.views.view import Options
from jumar.profiling.views.windows import (
    as_spans,
    communication_spans,
    computes,
    computing_union,
    steady,
    step_windows,
)


@dataclass(frozen=True, kw_only=True)
class Finding:
    """Something that costs time.

    Args:
        key: A word for what it is, for scripts.
        what: What costs time, in one line.
        claims: The intervals that would go; `carved` already where only a part would.
        evidence: The rows that show it.
        change: What to try.
        setting: The field of a recipe that does it; empty where there is none.
        view: The view that shows all of it.
        alone: Whether the claims are of ops: such a moment is won only where one op computes alone.
        host_ns: How long the host stood in it, over all steps; shown also where little is won.
        certain: False where the win is estimated, or an upper limit.
    """

    key: str
    what: str
    claims: pl.DataFrame = field(repr=False)
    evidence: tuple[str, ...]
    change: str
    setting: str = ""
    view: str = ""
    alone: bool = False
    host_ns: int = 0
    certain: bool = False


def carved(table: pl.DataFrame, share: pl.Expr | float) -> pl.DataFrame:
    """Intervals cut down to a share of their length, which would be won."""
    part = share if isinstance(share, pl.Expr) else pl.lit(share)
    length = ((pl.col("end_ns") - pl.col("start_ns")) * part.clip(0.0, 1.0)).floor()
    return table.select(
        "rank", "start_ns", (pl.col("start_ns") + length.cast(pl.Int64)).alias("end_ns")
    ).filter(pl.col("end_ns") > pl.col("start_ns"))


def ms(nanoseconds: float) -> str:
    """Nanoseconds as text in milliseconds."""
    return f"{nanoseconds / 1e6:.3f} ms"


_EQUAL = 0.98
"""Ranks that step together differ by the jitter of their last op."""


def _pace(profile: Profile, lasted: pl.DataFrame) -> int:
    """The rank from which a profile is seen, of a table with the average step of each."""
    if lasted.height < 2:
        return int(lasted["rank"][0]) if lasted.height else 0
    longest = lasted.filter(pl.col("mean") >= _EQUAL * pl.col("mean").max())["rank"].to_list()
    bare = difference(communication_spans(profile), computing_union(profile))
    size = pl.col("end_ns") - pl.col("start_ns")
    waits = dict(bare.group_by("rank").agg(size.sum()).iter_rows())
    return int(max(longest, key=lambda rank: (waits.get(rank, 0), -rank)))


class Case:
    """A profile seen from its slowest rank, whose steps set the pace, without warm-up.

    Args:
        profile: The profile.
        options: What the user set.

    Attributes:
        rank: The rank with the longest average step; of equals that which waits longest, since
            its collectives tell who came late.
        windows: Its steady steps; each begins where the one before ended.
        steps: Their number.
    """

    def __init__(self, profile: Profile, options: Options) -> None:
        self.profile = profile
        self.options = options
        windows = steady(step_windows(profile))
        lasted = (pl.col("end_ns") - pl.col("begin_ns")).mean().alias("mean")
        self.rank = _pace(profile, windows.group_by("rank").agg(lasted).sort("rank"))
        self.windows = windows.filter(pl.col("rank") == self.rank)
        self.steps = max(self.windows.height, 1)

    @property
    def step_ns(self) -> float:
        """How long a step lasts on average, with what goes before its first op."""
        return float((self.windows["end_ns"] - self.windows["begin_ns"]).sum()) / self.steps

    def mine(self, table: pl.DataFrame) -> pl.DataFrame:
        """The rows of this rank that lie in its steady steps."""
        if self.windows.is_empty():
            return table.clear()
        return table.filter(self._is_mine())

    def _is_mine(self) -> pl.Expr:
        first, last = self.windows["begin_ns"].min(), self.windows["end_ns"].max()
        own = pl.col("rank").fill_null(0) == self.rank
        return own & pl.col("start_ns").is_between(first, last)

    @cached_property
    def ops(self) -> pl.DataFrame:
        """The computing ops of this rank: `rank`, `start_ns`, `duration_ns`, and their `kind`."""
        wanted = pl.lit(False) if self.windows.is_empty() else computes(self.profile.ops)
        if not self.windows.is_empty():
            wanted &= self._is_mine()
        return (
            self.profile.ops.lazy()
            .with_columns(kinds(self.profile).of_op)
            .filter(wanted)
            .select("rank", "start_ns", "duration_ns", "kind")
            .collect()
        )

    @cached_property
    def kinds(self) -> pl.DataFrame:
        """The kinds of these ops, with `count` and `duration_ns` of those that are here."""
        here = self.ops.group_by("kind").agg(pl.len().alias("count"), pl.col("duration_ns").sum())
        return kinds(self.profile).table.drop("count", "total_ns").join(here, on="kind")

    def of(self, chosen: pl.DataFrame) -> pl.DataFrame:
        """The ops of some kinds."""
        return self.ops.join(chosen.select("kind"), on="kind", how="semi")

    @cached_property
    def inside(self) -> pl.DataFrame:
        """The steady steps as intervals."""
        return as_spans(self.windows, start="begin_ns")

    @cached_property
    def communicating(self) -> pl.DataFrame:
        """When this rank communicates."""
        return communication_spans(self.profile).filter(pl.col("rank") == self.rank)

    @cached_property
    def computes(self) -> pl.DataFrame:
        """When any op computes."""
        return union(spans(self.ops))

    @cached_property
    def together(self) -> pl.DataFrame:
        """When several ops compute at once: to win there, all of them would have to go."""
        # Most ops have the device to themselves, and need no sweep.
        ops = spans(self.ops).sort("start_ns")
        reached = ops["end_ns"].cum_max()
        behind = (ops["start_ns"] < reached.shift(1)).fill_null(False)
        ahead = (ops["start_ns"].shift(-1) < ops["end_ns"]).fill_null(False)
        cut = segments({"compute": ops.filter(behind | ahead)})
        return merged(cut.filter(pl.col("compute") > 1))

    @cached_property
    def causes(self) -> list[Cause]:
        """What the host spent time in."""
        return causes(self.profile)

    @cached_property
    def uncovered(self) -> pl.DataFrame:
        """When this rank communicates and nothing computes."""
        return difference(self.communicating, self.computes)

    @cached_property
    def free(self) -> pl.DataFrame:
        """When nothing computes or communicates in the steady steps."""
        return difference(self.inside, pl.concat([self.computes, self.communicating]))
