"""What a finding is, where it is registered, and a profile as findings see it."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final, NamedTuple

import polars as pl

from jumar.ground.text import Text
from jumar.profiling.profile import Profile
from jumar.profiling.registry import Registry
from jumar.profiling.views.alike import kinds
from jumar.profiling.views.host_calls import Cause, causes
from jumar.profiling.views.intervals import (
    difference,
    intersection,
    length,
    merged,
    segments,
    spans,
    union,
)
from jumar.profiling.views.queued import queued_gaps
from jumar.profiling.views.view import Options
from jumar.profiling.views.windows import (
    as_spans,
    communication_spans,
    computes,
    computing_union,
    copying_union,
    steady,
    step_windows,
)


@dataclass(frozen=True, kw_only=True)
class Claim:
    """One thing in a profile that costs time.

    Args:
        values: Values for the braces in its finding's texts.
        spans: The intervals that would go; already `carved` if only a part would.
        evidence: The lines that show it.
        host_ns: How long the host was blocked in it, over all steps; shown even if little is saved.
    """

    values: Mapping[str, object]
    spans: pl.DataFrame = field(repr=False)
    evidence: tuple[Text, ...]
    host_ns: int = 0


@dataclass(frozen=True, kw_only=True)
class Finding:
    """A kind of lost time that the to-do list knows.

    Args:
        name: Its name, for scripts.
        what: What costs time, in one line; `{name}` is filled from a claim's values.
        change: What to try, filled likewise.
        search: Finds it in a profile.
        place: Order in which findings claim time: the specific before the general.

        setting: The recipe's field that changes it; empty if there is none.
        view: The view that shows all of it.
        of_ops: Whether ops are claimed: a moment is saved only if one op computes alone.
        certain: False if the saving is estimated, or an upper limit.
    """

    name: str
    what: Text
    change: Text
    search: Callable[["Case"], Iterable[Claim]] = field(repr=False)
    place: int = 1000
    setting: str = ""
    view: str = ""
    of_ops: bool = False
    certain: bool = False


FINDINGS: Final = Registry[Finding]("jumar.profiling.advice")
"""Every finding by its name; what is added here is in the list on the terminal, in JSON and CSV,
and on the page."""


def types_by_time(ops: pl.DataFrame) -> list[str | None]:
    """The types of ops, the one that took longest first."""
    sums = ops.group_by("type").agg(pl.col("duration_ns").sum())
    return sums.sort("duration_ns", "type", descending=[True, False])["type"].to_list()


def carved(table: pl.DataFrame, share: pl.Expr | float) -> pl.DataFrame:
    """Intervals scaled to the share of their length that would be saved."""
    part = share if isinstance(share, pl.Expr) else pl.lit(share)
    length = ((pl.col("end_ns") - pl.col("start_ns")) * part.clip(0.0, 1.0)).floor()
    return table.select(
        "rank", "start_ns", (pl.col("start_ns") + length.cast(pl.Int64)).alias("end_ns")
    ).filter(pl.col("end_ns") > pl.col("start_ns"))


def ms(nanoseconds: float) -> str:
    """Nanoseconds as text in milliseconds."""
    return f"{nanoseconds / 1e6:.3f} ms"


def alike(line: str) -> Text:
    """A line of names and numbers, which is the same in both languages."""
    return Text(en=line, zh=line)


class Blame(NamedTuple):
    """One cause on the host: its calls in the steps, and the idle time it claims."""

    cause: Cause
    host: pl.DataFrame
    free: pl.DataFrame
    beside_ns: int
    """How much of its calls overlaps uncovered communication."""


_EQUAL = 0.98
"""Ranks that step together differ by the jitter of their last op."""


def _pace(profile: Profile, averages: pl.DataFrame) -> int:
    """The rank whose view of a profile is taken, from a table of average steps."""
    if averages.height < 2:
        return int(averages["rank"][0]) if averages.height else 0
    longest = averages.filter(pl.col("mean") >= _EQUAL * pl.col("mean").max())["rank"].to_list()
    bare = difference(communication_spans(profile), computing_union(profile))
    size = pl.col("end_ns") - pl.col("start_ns")
    waits = dict(bare.group_by("rank").agg(size.sum()).iter_rows())
    return int(max(longest, key=lambda rank: (waits.get(rank, 0), -rank)))


class Case:
    """A profile as its slowest rank sees it, whose steps set the pace, without warm-up.

    Args:
        profile: The profile.
        options: What the user set.

    Attributes:
        rank: The rank with the longest average step; of equals the one that waits longest,
            since its collectives show who came late.
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
        """Average length of a step, including what precedes its first op."""
        return float((self.windows["end_ns"] - self.windows["begin_ns"]).sum()) / self.steps

    def own(self, table: pl.DataFrame) -> pl.DataFrame:
        """The rows of this rank in its steady steps."""
        if self.windows.is_empty():
            return table.clear()
        return table.filter(self._is_own())

    def _is_own(self) -> pl.Expr:
        first, last = self.windows["begin_ns"].min(), self.windows["end_ns"].max()
        of_rank = pl.col("rank").fill_null(0) == self.rank
        return of_rank & pl.col("start_ns").is_between(first, last)

    @cached_property
    def ops(self) -> pl.DataFrame:
        """The computing ops of this rank: `rank`, `start_ns`, `duration_ns`, and their `kind`."""
        wanted = pl.lit(False) if self.windows.is_empty() else computes(self.profile.ops)
        if not self.windows.is_empty():
            wanted &= self._is_own()
        return (
            self.profile.ops.lazy()
            .with_columns(kinds(self.profile).of_op)
            .filter(wanted)
            .select("rank", "start_ns", "duration_ns", "kind")
            .collect()
        )

    @cached_property
    def kinds(self) -> pl.DataFrame:
        """The kinds of these ops, with `count` and `duration_ns` of the ops present."""
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
        """When several ops compute at once: to save time there, all of them would have to go."""
        # Most ops have the device to themselves, and need no sweep.
        ops = spans(self.ops).sort("start_ns")
        reached = ops["end_ns"].cum_max()
        behind = (ops["start_ns"] < reached.shift(1)).fill_null(False)
        ahead = (ops["start_ns"].shift(-1) < ops["end_ns"]).fill_null(False)
        cut = segments({"compute": ops.filter(behind | ahead)})
        return merged(cut.filter(pl.col("compute") > 1))

    @cached_property
    def causes(self) -> list[Cause]:
        """Causes of time spent on the host."""
        return causes(self.profile)

    @cached_property
    def uncovered(self) -> pl.DataFrame:
        """When this rank communicates and nothing computes."""
        return difference(self.communicating, self.computes)

    @cached_property
    def free(self) -> pl.DataFrame:
        """When nothing computes or communicates in the steady steps; memory may be copied."""
        return difference(self.inside, pl.concat([self.computes, self.communicating]))

    @cached_property
    def queued(self) -> pl.DataFrame:
        """When this rank's device is idle although its next op was launched long before."""
        return queued_gaps(self.profile).filter(pl.col("rank") == self.rank)

    @cached_property
    def copying(self) -> pl.DataFrame:
        """When this rank copies memory."""
        return copying_union(self.profile).filter(pl.col("rank") == self.rank)

    @cached_property
    def augmenting(self) -> pl.DataFrame:
        """`Data Aug Bound` of graph mode: how long steps wait for data before their first op."""
        recorded = self.profile.steps.filter(
            (pl.col("rank").fill_null(0) == self.rank) & (pl.col("data_ns") > 0)
        ).unique("step", keep="first", maintain_order=True)
        waits = self.windows.join(recorded.select("step", "data_ns"), on="step")
        return spans(
            waits.select(
                "rank", pl.col("begin_ns").alias("start_ns"), pl.col("data_ns").alias("duration_ns")
            )
        )

    @cached_property
    def blames(self) -> tuple[list[Blame], pl.DataFrame]:
        """The idle time that each cause on the host explains, and what remains.

        While the next op waits on the device, the host is not to blame, whatever it does.
        """
        if self.profile.kind == "cpu":
            # Nothing is idle while the loader works; its calls count as waiting.
            loading = [cause for cause in self.causes if cause.kind == "data"]
            hosts = [intersection(cause.host, self.inside) for cause in loading]
            pairs = zip(loading, hosts, strict=True)
            return [Blame(cause, host, host, 0) for cause, host in pairs], self.inside.clear()
        left = self.free
        if not self.augmenting.is_empty():
            left = difference(left, self.augmenting)
        kept = intersection(left, self.queued)
        left = difference(left, kept) if kept.height else left
        blames: list[Blame] = []
        for cause in self.causes:
            host = intersection(cause.host, self.inside)
            free = intersection(left, cause.alone)
            left = difference(left, cause.alone)
            blames.append(Blame(cause, host, free, length(intersection(host, self.uncovered))))
        return blames, union(pl.concat([left, kept]))
