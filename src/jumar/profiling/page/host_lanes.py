"""Calls of the host as lanes below the ops: a lane for each depth of a thread's stack."""

from typing import Any, Final

import polars as pl

from jumar.ground.text import Language
from jumar.profiling.page.clock import Clock
from jumar.profiling.page.levels import levels_of, packed
from jumar.profiling.page.nesting import call_tree, with_depths
from jumar.profiling.profile import Profile
from jumar.profiling.showing import shown
from jumar.profiling.words import words

MOST_CALLS: Final = 300_000
"""Calls that a page is made from; of more, the longest."""
MOST_THREADS: Final = 8
MOST_DEPTH: Final = 16
"""Lanes of a thread; what is called deeper is in the call tree alone."""
_MOST_BOXES: Final = 50_000
_MOST_IN_DETAIL: Final = 20_000
_MOST_NAMES: Final = 3000
"""Names of calls on a page; rarer ones have only their layer."""


def host_lanes(
    profile: Profile, clock: Clock, detail: tuple[int, int] | None, language: Language
) -> dict[str, Any] | None:
    """The lanes with their boxes, and the call tree, as data for the page; None without calls.

    Args:
        profile: For its calls of the host.
        clock: The time that the page shows; what lies outside is cut.
        detail: From when to when every call is wanted, from the clock's origin (ns).
        language: Language of the lanes' names.
    """
    calls = _placed(profile.host, clock)
    if calls.is_empty():
        return None
    left_out = max(calls.height - MOST_CALLS, 0)
    if left_out:
        longest = calls["end"] - calls["start"]
        calls = calls.filter(longest.rank("ordinal", descending=True) <= MOST_CALLS)
    names, calls = _labelled(calls)
    threads, calls = _threads(calls)
    calls = with_depths(calls)
    titles = [_thread_name(row, profile, language) for row in threads.iter_rows(named=True)]
    drawn = calls.filter((pl.col("thread_id") < MOST_THREADS) & (pl.col("depth") < MOST_DEPTH))
    lanes = drawn.select("thread_id", "depth").unique().sort("thread_id", "depth")
    lanes = lanes.with_row_index("lane")
    boxes = drawn.join(lanes, on=["thread_id", "depth"], how="left").select(
        pl.col("lane").cast(pl.Int32),
        "start",
        "end",
        (pl.col("end") - pl.col("start")).alias("busy"),
        "label",
    )
    levels = levels_of(boxes, span=clock.span, lanes=lanes.height, most=_MOST_BOXES)
    return {
        "lanes": [
            titles[thread] if depth == 0 else ""
            for thread, depth in lanes.select("thread_id", "depth").iter_rows()
        ],
        "ranks": [int(threads["rank"][thread]) for thread in lanes["thread_id"]],
        "levels": levels + _detailed(boxes, levels, detail, lanes.height),
        "names": names["shown"].to_list(),
        "layers": names["layer"].to_list(),
        "counts": names["count"].to_list(),
        "tree": call_tree(calls, titles),
        "left_out": left_out,
        "too_deep": int((calls["depth"] >= MOST_DEPTH).sum()),
        "threads_left_out": max(threads.height - MOST_THREADS, 0),
    }


def _placed(host: pl.DataFrame, clock: Clock) -> pl.DataFrame:
    start = pl.col("start_ns") - clock.origin
    return host.select(
        pl.col("rank").fill_null(0),
        pl.col("thread").fill_null(""),
        pl.col("layer").fill_null(""),
        pl.col("name").fill_null(""),
        start.clip(0, clock.span).alias("start"),
        (start + pl.col("duration_ns")).clip(0, clock.span).alias("end"),
    ).filter(pl.col("end") > pl.col("start"))


def _labelled(calls: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The shown names, and the calls with the index of theirs."""
    named = (
        calls.group_by("layer", "name")
        .agg((pl.col("end") - pl.col("start")).sum().alias("total"), pl.len().alias("count"))
        .sort("total", "layer", "name", descending=[True, False, False])
        .with_row_index("place")
        .with_columns(
            pl.when(pl.col("place") < _MOST_NAMES).then("name").otherwise(pl.lit("…")).alias("kept")
        )
    )
    kept = named.group_by("layer", "kept", maintain_order=True).agg(pl.col("count").sum())
    kept = kept.with_row_index("label")
    of_name = named.join(kept, on=["layer", "kept"]).select("layer", "name", "label")
    labelled = calls.join(of_name, on=["layer", "name"], how="left").drop("layer", "name")
    texts = [shown(name, 120) for name in kept["kept"]]
    return kept.with_columns(pl.Series("shown", texts, pl.String)), labelled


def _threads(calls: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The threads, by rank and number of calls, and the calls with their thread's index."""
    threads = (
        calls.group_by("rank", "thread")
        .agg(pl.len().alias("calls"))
        .sort("calls", "rank", "thread", descending=[True, False, False])
    )
    first = threads.head(MOST_THREADS).sort("rank", "calls", descending=[False, True])
    threads = pl.concat([first, threads.slice(MOST_THREADS)]).with_row_index("thread_id")
    joined = calls.join(
        threads.select("rank", "thread", "thread_id"), on=["rank", "thread"], how="left"
    )
    return threads, joined.drop("rank", "thread")


def _thread_name(row: dict[str, Any], profile: Profile, language: Language) -> str:
    say = words(language)
    name = say["host_thread"].format(name=row["thread"]).rstrip()
    several = len(profile.ranks) > 1
    return shown(say["of_rank"].format(rank=row["rank"], name=name) if several else name, 40)


def _detailed(
    boxes: pl.DataFrame,
    levels: list[dict[str, Any]],
    detail: tuple[int, int] | None,
    lanes: int,
) -> list[dict[str, Any]]:
    """Every call of the step shown with all its ops, if the levels lack some."""
    if detail is None or levels[-1]["width"] == 0:
        return []
    low, high = detail
    inside = boxes.filter((pl.col("start") < high) & (pl.col("end") > low)).sort("start")
    if inside.height > _MOST_IN_DETAIL:
        high = int(inside["start"][_MOST_IN_DETAIL])
        inside = inside.head(_MOST_IN_DETAIL)
    level = inside.sort("lane", "start", maintain_order=True)
    level = level.with_columns(pl.lit(1, pl.Int64).alias("count"))
    return [packed(level, width=0, lanes=lanes) | {"from": low, "to": high}]
