"""The chain of device ops and host calls that a step could not have been shorter than."""

from bisect import bisect_right
from dataclasses import replace
from typing import NamedTuple

import polars as pl

from jumar.ground.text import Text
from jumar.profiling.columns import RANK, SHARE, column, ms
from jumar.profiling.profile import Profile
from jumar.profiling.views.view import VIEWS, Impossible, Options, View
from jumar.profiling.views.windows import is_communication, steady, step_windows

_AT_ONCE = 8
_SWITCH_NS = 5_000
"""A gap between two ops on a device that is no longer than this is not waiting."""


class Piece(NamedTuple):
    """One part of the path: who, what, from when to when."""

    place: str
    what: str
    start_ns: int
    end_ns: int


def walked(profile: Profile, rank: int, begin: int, end: int) -> list[Piece]:
    """The path through one step, from its end backwards; the pieces fill the step without gaps.

    The predecessor of an op is the op that ended last before it, on any stream of the rank, since
    profiles tell no events between streams. A gap between the two belongs to the host, if the op
    was launched in it or the host is known to have been in a call, else to the device.
    """
    ends = pl.col("start_ns") + pl.col("duration_ns")
    own = pl.col("rank").fill_null(0) == rank
    ops = (
        profile.ops.filter(
            own
            & (pl.col("start_ns") < end)
            & (ends > begin)
            # Ops without length are not part of the path, and would keep the walk in one place.
            & (pl.col("duration_ns") > 0)
        )
        .with_columns(ends.alias("end_ns"), is_communication().alias("communicates"))
        .sort("end_ns", "start_ns", maintain_order=True)
    )
    starts = ops["start_ns"].to_list()
    stops = ops["end_ns"].to_list()
    labels = ops.select(pl.coalesce("type", "name").fill_null("?"))["type"].to_list()
    talks = ops["communicates"].to_list()
    calls = profile.host.filter(
        own
        & pl.col("layer").is_in(["op", "cann", "runtime", "mark"])
        & ~pl.col("name").str.starts_with("ProfilerStep")
        & (pl.col("start_ns") < end)
        & (pl.col("start_ns") + pl.col("duration_ns") > begin)
    ).sort("start_ns", maintain_order=True)
    host = _Host(calls)
    pieces: list[Piece] = []
    now = end
    while now > begin:
        at = bisect_right(stops, now) - 1
        stop = max(stops[at], begin) if at >= 0 else begin
        if stop < now:
            gap = now - stop
            if gap <= _SWITCH_NS:
                pieces.append(Piece("device", "between ops", stop, now))
            else:
                pieces.append(Piece("host", host.longest(stop, now), stop, now))
            now = stop
        if at >= 0 and now > begin and stops[at] == now:
            start = max(starts[at], begin)
            place = "communication" if talks[at] else "device"
            pieces.append(Piece(place, labels[at], start, now))
            now = start
    return pieces[::-1]


class _Host:
    """Calls on the host by time, to be asked which of them fills a gap."""

    def __init__(self, calls: pl.DataFrame) -> None:
        self.starts = calls["start_ns"].to_list()
        self.ends = (calls["start_ns"] + calls["duration_ns"]).to_list()
        self.names = calls["name"].to_list()
        self.longest_call = max(
            (end - start for start, end in zip(self.starts, self.ends, strict=True)), default=0
        )

    def longest(self, start: int, end: int) -> str:
        """The call that covers most of the interval; of equals the innermost, which starts last."""
        best, name = 0, "no call recorded"
        first = bisect_right(self.starts, start - self.longest_call) - 1
        last = bisect_right(self.starts, end)
        # A gap has few calls in it; a trace with one endless call must not cost a full scan each.
        for at in range(max(first, last - 5000, 0), last):
            inside = min(self.ends[at], end) - max(self.starts[at], start)
            if inside >= best and inside > 0:
                best, name = inside, str(self.names[at])
        return name


def _paths(profile: Profile, rank: int, windows: pl.DataFrame) -> list[Piece]:
    """The paths through steps one after the other.

    Filtering a million ops for each of thousands of steps would take half a minute, so they are
    narrowed down to ever fewer steps.
    """
    begin, end = int(windows["begin_ns"][0]), int(windows["end_ns"][-1])
    if windows.height == 1:
        return walked(profile, rank, begin, end)
    near, size = _between(profile, begin, end), -(-windows.height // _AT_ONCE)
    return [piece for some in windows.iter_slices(size) for piece in _paths(near, rank, some)]


def _between(profile: Profile, begin: int, end: int) -> Profile:
    """What of a profile the path through a span of time may touch."""
    overlaps = (pl.col("start_ns") < end) & (pl.col("start_ns") + pl.col("duration_ns") > begin)
    ops = profile.ops.select("rank", "name", "type", "core", "start_ns", "duration_ns")
    return replace(profile, ops=ops.filter(overlaps), host=profile.host.filter(overlaps))


def critical_path(profile: Profile, _: Options) -> pl.DataFrame:
    """The parts of the path through the slowest rank's steady steps; their sum is the time."""
    windows = steady(step_windows(profile))
    if windows.is_empty() or profile.ops["start_ns"].null_count() == profile.ops.height:
        raise Impossible("ops with start times")
    lasted = (pl.col("end_ns") - pl.col("begin_ns")).mean()
    rank = int(windows.group_by("rank").agg(lasted).sort("end_ns", "rank")["rank"][-1])
    pieces = _paths(profile, rank, windows.filter(pl.col("rank") == rank))
    table = pl.DataFrame(
        pieces,
        schema={
            "place": pl.String,
            "what": pl.String,
            "start_ns": pl.Int64,
            "end_ns": pl.Int64,
        },
        orient="row",
    )
    size = pl.col("end_ns") - pl.col("start_ns")
    total = max(int((table["end_ns"] - table["start_ns"]).sum()), 1)
    return (
        table.group_by("place", "what")
        .agg(pl.len().alias("pieces"), size.sum().alias("path_ns"))
        .sort("path_ns", "what", "place", descending=[True, False, False])
        .with_columns(
            pl.lit(rank, dtype=pl.Int32).alias("rank"),
            (pl.col("path_ns") * 100 / total).round(2).alias("share_%"),
        )
    )


VIEWS.add(
    View(
        name="critical",
        title=Text(en="The critical path of device and host", zh="设备与 host 的关键路径"),
        question=Text(
            en="Which chain of ops and calls decides how long a step takes?",
            zh="迭代时长由哪条算子与调用链决定？",
        ),
        columns=(
            RANK,
            column("place", "位置"),
            column("what", "内容"),
            column("pieces", "段数"),
            ms("path", "路径耗时", "on the path"),
            SHARE,
        ),
        compute=critical_path,
        slow=True,
        place=150,
    )
)
