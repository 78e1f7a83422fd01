"""Findings, their registry, and `Case`, the part of a profile that they search."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final, NamedTuple

import polars as pl

from jumar.ground.text import Text
from jumar.profiling.columns import largest_first
from jumar.profiling.profile import Profile
from jumar.profiling.registry import Registry
from jumar.profiling.views.host_calls import Cause, causes
from jumar.profiling.views.intervals import (
    difference,
    intersection,
    length,
    segments,
    spans,
    union,
)
from jumar.profiling.views.kinds import kinds
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
    """An instance of a finding in a profile.

    Args:
        values: Values for the placeholders in the finding's texts.
        spans: The time intervals that would be saved; `carved` if only a share would be.
        evidence: Lines of text that support the claim.
        host_ns: How long the host was blocked, over all steps; long blocking is always reported.
    """

    values: Mapping[str, object]
    spans: pl.DataFrame = field(repr=False)
    evidence: tuple[Text, ...]
    host_ns: int = 0


@dataclass(frozen=True, kw_only=True)
class Finding:
    """A kind of lost time that the to-do list reports.

    Args:
        name: The identifier for scripts.
        what: One line on what costs time; placeholders are filled from the claim's values.
        change: What to try; may contain the same placeholders.
        search: Function that finds instances in a profile.
        order: Order in which findings claim time: specific before general ones.
        setting: The recipe field that implements the change; empty if there is none.
        view: The view with the details.
        of_ops: Whether it claims the time of ops, which is saved only while no other op computes.
        certain: False if the saving is an estimate or upper limit.
    """

    name: str
    what: Text
    change: Text
    search: Callable[["Case"], Iterable[Claim]] = field(repr=False)
    order: int = 1000
    setting: str = ""
    view: str = ""
    of_ops: bool = False
    certain: bool = False


FINDINGS: Final = Registry[Finding]("jumar.profiling.advice")
"""All findings by name, for the to-do list on terminal and page, in JSON and CSV."""


def types_by_time(ops: pl.DataFrame) -> list[str | None]:
    """The op types, sorted by total time, longest first."""
    sums = ops.group_by("type").agg(pl.col("duration_ns").sum())
    return largest_first(sums, "duration_ns", "type")["type"].to_list()


def carved(table: pl.DataFrame, share: pl.Expr | float) -> pl.DataFrame:
    """Intervals shortened to the share of their length that would be saved."""
    part = share if isinstance(share, pl.Expr) else pl.lit(share)
    length = ((pl.col("end_ns") - pl.col("start_ns")) * part.clip(0.0, 1.0)).floor()
    return table.select(
        "rank", "start_ns", (pl.col("start_ns") + length.cast(pl.Int64)).alias("end_ns")
    ).filter(pl.col("end_ns") > pl.col("start_ns"))


def ms(nanoseconds: float) -> str:
    """Format nanoseconds as milliseconds."""
    return f"{nanoseconds / 1e6:.3f} ms"


def untranslated(line: str) -> Text:
    """Return a `Text` that is the same in both languages."""
    return Text(en=line, zh=line)


class Blame(NamedTuple):
    """A cause on the host, with its calls in the steady steps and the idle time it explains."""

    cause: Cause
    host: pl.DataFrame
    free: pl.DataFrame
    overlap_ns: int
    """The time in which its calls overlap uncovered communication."""


_LOCKSTEP_SHARE = 0.98
"""Ranks in lockstep have step times within this share of each other."""


def _slowest_rank(profile: Profile, averages: pl.DataFrame) -> int:
    """The rank to report on, from a table of average step times."""
    if averages.height < 2:
        return int(averages["rank"][0]) if averages.height else 0
    longest = averages.filter(pl.col("mean") >= _LOCKSTEP_SHARE * pl.col("mean").max())[
        "rank"
    ].to_list()
    uncovered = difference(communication_spans(profile), computing_union(profile))
    size = pl.col("end_ns") - pl.col("start_ns")
    waits = dict(uncovered.group_by("rank").agg(size.sum()).iter_rows())
    return int(max(longest, key=lambda rank: (waits.get(rank, 0), -rank)))


class Case:
    """The steady steps of a profile's slowest rank, which determines the step time.

    Args:
        profile: The profile.
        options: The user's options.

    Attributes:
        rank: The rank with the longest average step; of equal ones the one that waits longest,
            since its collectives show the late rank.
        windows: Its steady steps, each from the end of the previous one.
        steps: The number of steady steps.
    """

    def __init__(self, profile: Profile, options: Options) -> None:
        self.profile = profile
        self.options = options
        windows = steady(step_windows(profile))
        step_time = (pl.col("end_ns") - pl.col("begin_ns")).mean().alias("mean")
        self.rank = _slowest_rank(profile, windows.group_by("rank").agg(step_time).sort("rank"))
        self.windows = windows.filter(pl.col("rank") == self.rank)
        self.steps = max(self.windows.height, 1)

    @property
    def step_ns(self) -> float:
        """Average step time, including the time before the first op."""
        return float((self.windows["end_ns"] - self.windows["begin_ns"]).sum()) / self.steps

    def in_scope(self, table: pl.DataFrame) -> pl.DataFrame:
        """The rows of this rank in the steady steps."""
        if self.windows.is_empty():
            return table.clear()
        return table.filter(self._is_in_scope())

    def _is_in_scope(self) -> pl.Expr:
        first, last = self.windows["begin_ns"].min(), self.windows["end_ns"].max()
        of_rank = pl.col("rank").fill_null(0) == self.rank
        return of_rank & pl.col("start_ns").is_between(first, last)

    @cached_property
    def ops(self) -> pl.DataFrame:
        """The computing ops of this rank: `rank`, `start_ns`, `duration_ns`, `kind`."""
        is_selected = pl.lit(False)
        if not self.windows.is_empty():
            is_selected = computes(self.profile.ops) & self._is_in_scope()
        return (
            self.profile.ops.lazy()
            .with_columns(kinds(self.profile).of_op)
            .filter(is_selected)
            .select("rank", "start_ns", "duration_ns", "kind")
            .collect()
        )

    @cached_property
    def kinds(self) -> pl.DataFrame:
        """The kinds of `ops`, with their `count` and total `duration_ns`."""
        sums = self.ops.group_by("kind").agg(pl.len().alias("count"), pl.col("duration_ns").sum())
        return kinds(self.profile).table.drop("count", "total_ns").join(sums, on="kind")

    def ops_of(self, chosen: pl.DataFrame) -> pl.DataFrame:
        """The ops of the chosen kinds."""
        return self.ops.join(chosen.select("kind"), on="kind", how="semi")

    @cached_property
    def step_spans(self) -> pl.DataFrame:
        """The steady steps as intervals."""
        return as_spans(self.windows)

    @cached_property
    def communicating(self) -> pl.DataFrame:
        """The intervals in which this rank communicates."""
        return communication_spans(self.profile).filter(pl.col("rank") == self.rank)

    @cached_property
    def computing(self) -> pl.DataFrame:
        """The intervals in which any op computes."""
        return union(spans(self.ops))

    @cached_property
    def concurrent(self) -> pl.DataFrame:
        """The intervals in which several ops compute; removing one of them would save no time."""
        # Most ops run alone and need no sweep.
        ops = spans(self.ops).sort("start_ns")
        ends_so_far = ops["end_ns"].cum_max()
        overlaps_earlier = (ops["start_ns"] < ends_so_far.shift(1)).fill_null(False)
        overlaps_next = (ops["start_ns"].shift(-1) < ops["end_ns"]).fill_null(False)
        pieces = segments({"compute": ops.filter(overlaps_earlier | overlaps_next)})
        return union(pieces.filter(pl.col("compute") > 1))

    @cached_property
    def causes(self) -> list[Cause]:
        """The causes of idle time on the host."""
        return causes(self.profile)

    @cached_property
    def uncovered(self) -> pl.DataFrame:
        """The intervals in which this rank communicates and does not compute."""
        return difference(self.communicating, self.computing)

    @cached_property
    def free(self) -> pl.DataFrame:
        """The intervals of steady steps in which this rank neither computes nor communicates."""
        return difference(self.step_spans, pl.concat([self.computing, self.communicating]))

    @cached_property
    def queued(self) -> pl.DataFrame:
        """The intervals in which the device is idle although the next op is in its queue."""
        return queued_gaps(self.profile).filter(pl.col("rank") == self.rank)

    @cached_property
    def copying(self) -> pl.DataFrame:
        """The intervals in which this rank copies memory."""
        return copying_union(self.profile).filter(pl.col("rank") == self.rank)

    @cached_property
    def augmenting(self) -> pl.DataFrame:
        """The intervals in which steps wait for data, by graph mode's `Data Aug Bound`."""
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
        """The idle time explained by each cause on the host, and the rest.

        While the next op waits on the device, the host is not to blame.
        """
        if self.profile.kind == "cpu":
            # On a CPU nothing is idle while the loader works; its calls count as waiting.
            loading = [cause for cause in self.causes if cause.kind == "data"]
            hosts = [intersection(cause.host, self.step_spans) for cause in loading]
            pairs = zip(loading, hosts, strict=True)
            return [Blame(cause, host, host, 0) for cause, host in pairs], self.step_spans.clear()
        remaining = self.free
        if not self.augmenting.is_empty():
            remaining = difference(remaining, self.augmenting)
        queued = intersection(remaining, self.queued)
        remaining = difference(remaining, queued) if queued.height else remaining
        blames: list[Blame] = []
        for cause in self.causes:
            host = intersection(cause.host, self.step_spans)
            free = intersection(remaining, cause.alone)
            remaining = difference(remaining, cause.alone)
            blames.append(Blame(cause, host, free, length(intersection(host, self.uncovered))))
        return blames, union(pl.concat([remaining, queued]))
