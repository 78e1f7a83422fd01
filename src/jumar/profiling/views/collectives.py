"""Collectives: how their time is spent, which rank is late, and what delays it."""

import polars as pl

from jumar.ground.text import Text
from jumar.profiling.columns import NAME, RANK, STEP, TRANSIT, column, largest_first, ms
from jumar.profiling.profile import END, Profile
from jumar.profiling.views.host_calls import STEP_MARK
from jumar.profiling.views.intervals import difference, spans
from jumar.profiling.views.view import VIEWS, Impossible, Options, View
from jumar.profiling.views.windows import communicating, computing, computing_union, within

_KEY = ("step", "group", "name")
_MIN_WAITED_SHARE = 0.5
"""A delay counts only if the first rank waited for at least this share of it."""
_MIN_STEP_DELAY_SHARE = 0.8
"""A late start of the step by at least this share of a delay explains the delay."""


def collective_rows(profile: Profile, *, uncovered: bool = True) -> pl.DataFrame:
    """One row per collective and rank: how its time was spent, if known, and `uncovered_ns`.

    If the producer does not split the time, the excess over the fastest rank counts as waiting.
    `uncovered_ns` needs a sweep over all ops, and is null unless requested.
    """
    rows = profile.collectives
    if rows.is_empty():
        rows = communicating(profile.ops).select(
            "rank",
            "step",
            "name",
            pl.lit(None, dtype=pl.String).alias("group"),
            "start_ns",
            pl.col("duration_ns").alias("elapse_ns"),
            *(pl.lit(None, dtype=pl.Int64).alias(f"{name}_ns") for name in _SPLIT),
        )
    rows = rows.filter(pl.col("start_ns").is_not_null() & (pl.col("elapse_ns") > 0))
    if rows.is_empty():
        raise Impossible(
            "collectives (communication.json, or communication ops)",
            "a run on one device has none",
        )
    rows = rows.with_columns(pl.col("rank").fill_null(0)).sort(
        "rank", "start_ns", maintain_order=True
    )
    # Names repeat outside numbered steps; the n-th occurrences of all ranks belong together.
    occurrence = pl.int_range(pl.len()).over("rank", *_KEY)
    shortest = pl.col("elapse_ns").min().over(*_KEY, "turn")
    has_ranks = pl.col("rank").n_unique().over(*_KEY, "turn") > 1
    wait = pl.when(has_ranks & pl.col("transit_ns").is_null()).then(pl.col("elapse_ns") - shortest)
    rows = rows.with_columns(occurrence.alias("turn")).with_columns(
        pl.coalesce("wait_ns", wait).alias("wait_ns")
    )
    if not uncovered or profile.ops.is_empty():
        return rows.with_columns(pl.lit(None, dtype=pl.Int64).alias("uncovered_ns"))
    bare = difference(spans(rows, duration="elapse_ns"), computing_union(profile))
    windows = rows.select(
        pl.col("rank").cast(pl.Int32),
        "start_ns",
        (pl.col("start_ns") + pl.col("elapse_ns")).alias("end_ns"),
    )
    return rows.with_columns(within(windows, bare).alias("uncovered_ns"))


_SPLIT = ("transit", "wait", "synchronization", "idle")


def collectives(profile: Profile, options: Options) -> pl.DataFrame:
    """The collectives, longest first, with the late rank and what it did during its delay."""
    rows = collective_rows(profile)
    over = (*_KEY, "turn")
    first = pl.col("start_ns").min().over(*over)
    last = pl.col("start_ns").max().over(*over)
    latest = pl.col("rank").sort_by("start_ns", "rank").last().over(*over)
    late = last - first
    # If a rank enters after the first one left, or the first one takes no longer, nobody waited:
    # their clocks differ, or these are different collectives.
    left = (pl.col("start_ns") + pl.col("elapse_ns")).min().over(*over)
    by_start = pl.col("elapse_ns").sort_by("start_ns", "rank")
    waited = by_start.first().over(*over) - by_start.last().over(*over)
    is_certain = (late == 0) | (last <= left) & (waited >= _MIN_WAITED_SHARE * late)
    has_late_rank = (pl.col("rank").n_unique().over(*over) > 1) & is_certain
    table = rows.with_columns(
        pl.when(has_late_rank & (late > 0)).then(latest).alias("late_rank"),
        pl.when(has_late_rank).then(late).alias("late_ns"),
        first.alias("from_ns"),
    )
    longest = table.sort("elapse_ns", descending=True, maintain_order=True)
    delay_texts = [
        _delay_text(
            profile, row["step"], row["late_rank"], row["from_ns"], row["late_ns"]
        ).in_language(options.language)
        for row in longest.select("step", "late_rank", "from_ns", "late_ns")
        .head(50)
        .iter_rows(named=True)
    ]
    delay_texts += [""] * (longest.height - len(delay_texts))
    return longest.with_columns(pl.Series("late_rank_did", delay_texts, dtype=pl.String))


def _step_delay(profile: Profile, step: int | None, rank: int) -> int:
    """The delay of a rank's step mark after the first rank's; 0 if unknown."""
    if step is None:
        return 0
    marks = profile.steps.filter((pl.col("step") == step) & pl.col("start_ns").is_not_null())
    rank_start = marks.filter(pl.col("rank").fill_null(0) == rank)["start_ns"].min()
    return int(str(rank_start)) - int(str(marks["start_ns"].min())) if rank_start is not None else 0


def _delay_text(
    profile: Profile, step: int | None, rank: int | None, start: int, late: int | None
) -> Text:
    """A rank's main activity during its delay, or a note that its step started late."""
    if rank is None or not late:
        return Text(en="", zh="")
    step_delay = _step_delay(profile, step, rank)
    if step_delay >= _MIN_STEP_DELAY_SHARE * late:
        return Text(
            en=f"started the step {step_delay / 1e6:.3f} ms late",
            zh=f"晚 {step_delay / 1e6:.3f} ms 进入该迭代",
        )
    candidates = _activities_during_delay(profile, rank, start, late)
    if not candidates:
        return Text(en="no ops or calls recorded", zh="没有记录到算子和调用")
    length, activity = max(candidates, key=lambda candidate: candidate[0])
    part = f"{length / 1e6:.3f} ms"
    return Text(en=f"{part} of it {activity.en}", zh=f"其中 {part} {activity.zh}")


def _activities_during_delay(
    profile: Profile, rank: int, start: int, late: int
) -> list[tuple[int, Text]]:
    """The op type and the host call in which a rank spent most of its delay, with the times."""
    end = start + late
    of_rank = pl.col("rank").fill_null(0) == rank
    size = pl.min_horizontal(END, end)
    size = size - pl.max_horizontal("start_ns", start)
    overlaps_delay = (pl.col("start_ns") < end) & (start < END)
    # Calls that span many steps, such as the training loop, explain nothing.
    is_short = (pl.col("duration_ns") < 20 * late) & ~pl.col("name").str.contains(STEP_MARK)
    candidates: list[tuple[int, Text]] = []
    for table, label, verb in (
        (computing(profile.ops), "type", Text(en="computing", zh="计算")),
        (profile.host.filter(is_short), "name", Text(en="in host call", zh="host 执行")),
    ):
        inside = table.filter(of_rank & overlaps_delay).group_by(pl.col(label).fill_null("?"))
        sums = largest_first(inside.agg(size.sum().alias("inside")), "inside", label)
        candidates += [
            # Ops on several streams and calls on several threads may add up to more than the delay.
            (min(int(length), late), Text(en=f"{verb.en} {name}", zh=f"{verb.zh} {name}"))
            for name, length in sums.head(1).iter_rows()
        ]
    return candidates


VIEWS.add(
    View(
        name="collectives",
        title=Text(
            en="Collectives: transfer, wait and idle time, and the late rank",
            zh="集合通信：传输、等待、空闲，以及谁来晚了",
        ),
        question=Text(
            en="Do collectives transfer data or wait, and for which rank?",
            zh="集合通信的时间花在传输还是等待上，在等哪张卡？",
        ),
        columns=(
            NAME,
            RANK,
            STEP,
            ms("elapse", "总时长", "elapsed"),
            TRANSIT,
            ms("wait", "等待"),
            ms("idle", "空闲"),
            ms("uncovered", "未掩盖"),
            column("late_rank", "迟到卡"),
            ms("late", "迟到时长", "late by"),
            column("late_rank_did", "迟到卡当时在做", "what the late rank did"),
        ),
        compute=collectives,
        order=110,
    )
)
