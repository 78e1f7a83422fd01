"""Host calls as lanes below the ops: a lane for each level of a thread's call stack."""

from typing import Any, Final

import polars as pl

from jumar.ground.text import Language
from jumar.profiling.columns import largest_first
from jumar.profiling.page.levels import detail_level, zoom_levels
from jumar.profiling.page.nesting import call_tree, with_depths
from jumar.profiling.page.time_range import TimeRange
from jumar.profiling.profile import Profile
from jumar.profiling.showing import shown
from jumar.profiling.texts import texts_in, with_rank

MAX_CALLS: Final = 300_000
"""Maximum number of calls on a page; beyond it, only the longest are kept."""
MAX_THREADS: Final = 8
MAX_LEVELS: Final = 16
"""Maximum number of lanes per thread; deeper calls are only in the call tree."""
_MAX_BOXES: Final = 50_000
_MAX_IN_DETAIL: Final = 20_000
_MAX_NAMES: Final = 3000
"""Maximum number of call names on a page; the others are replaced by `…`."""


def host_lanes(
    profile: Profile, time_range: TimeRange, detail: tuple[int, int] | None, language: Language
) -> dict[str, Any] | None:
    """The lanes with their boxes, and the call tree, as data for the page; None without calls.

    Args:
        profile: The profile with the host calls.
        time_range: The time range of the page; calls are clipped to it.
        detail: Start and end (ns from the origin) of the step in which every call is shown.
        language: Language of the lane names.
    """
    calls = _calls_in_range(profile.host, time_range)
    if calls.is_empty():
        return None
    left_out = max(calls.height - MAX_CALLS, 0)
    if left_out:
        durations = calls["end"] - calls["start"]
        calls = calls.filter(durations.rank("ordinal", descending=True) <= MAX_CALLS)
    names, calls = _with_labels(calls)
    threads, calls = _with_threads(calls)
    calls = with_depths(calls)
    titles = [_thread_name(row, profile, language) for row in threads.iter_rows(named=True)]
    drawn = calls.filter((pl.col("thread_id") < MAX_THREADS) & (pl.col("depth") < MAX_LEVELS))
    lanes = drawn.select("thread_id", "depth").unique().sort("thread_id", "depth")
    lanes = lanes.with_row_index("lane")
    boxes = drawn.join(lanes, on=["thread_id", "depth"], how="left").select(
        pl.col("lane").cast(pl.Int32),
        "start",
        "end",
        (pl.col("end") - pl.col("start")).alias("busy"),
        "label",
    )
    levels = zoom_levels(boxes, span=time_range.span, lanes=lanes.height, max_boxes=_MAX_BOXES)
    if detail is not None and levels[-1]["width"]:
        levels.append(detail_level(boxes, *detail, lanes=lanes.height, max_boxes=_MAX_IN_DETAIL))
    return {
        "lanes": [
            titles[thread] if depth == 0 else ""
            for thread, depth in lanes.select("thread_id", "depth").iter_rows()
        ],
        "ranks": [int(threads["rank"][thread]) for thread in lanes["thread_id"]],
        "levels": levels,
        "names": names["shown"].to_list(),
        "layers": names["layer"].to_list(),
        "counts": names["count"].to_list(),
        "tree": call_tree(calls, titles),
        "left_out": left_out,
        "too_deep": int((calls["depth"] >= MAX_LEVELS).sum()),
        "threads_left_out": max(threads.height - MAX_THREADS, 0),
    }


def _calls_in_range(host: pl.DataFrame, time_range: TimeRange) -> pl.DataFrame:
    start = pl.col("start_ns") - time_range.origin
    return host.select(
        pl.col("rank").fill_null(0),
        pl.col("thread").fill_null(""),
        pl.col("layer").fill_null(""),
        pl.col("name").fill_null(""),
        start.clip(0, time_range.span).alias("start"),
        (start + pl.col("duration_ns")).clip(0, time_range.span).alias("end"),
    ).filter(pl.col("end") > pl.col("start"))


def _with_labels(calls: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The displayed names, and the calls with the index of their name."""
    names = (
        calls.group_by("layer", "name")
        .agg((pl.col("end") - pl.col("start")).sum().alias("total"), pl.len().alias("count"))
        .pipe(largest_first, "total", "layer", "name")
        .with_row_index("position")
        .with_columns(
            pl.when(pl.col("position") < _MAX_NAMES)
            .then("name")
            .otherwise(pl.lit("…"))
            .alias("kept")
        )
    )
    kept_names = names.group_by("layer", "kept", maintain_order=True).agg(pl.col("count").sum())
    kept_names = kept_names.with_row_index("label")
    label_of_name = names.join(kept_names, on=["layer", "kept"]).select("layer", "name", "label")
    labelled = calls.join(label_of_name, on=["layer", "name"], how="left").drop("layer", "name")
    texts = [shown(name, 120) for name in kept_names["kept"]]
    return kept_names.with_columns(pl.Series("shown", texts, pl.String)), labelled


def _with_threads(calls: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The threads by rank and number of calls, and the calls with the index of their thread."""
    threads = (
        calls.group_by("rank", "thread")
        .agg(pl.len().alias("calls"))
        .pipe(largest_first, "calls", "rank", "thread")
    )
    shown_threads = threads.head(MAX_THREADS).sort("rank", "calls", descending=[False, True])
    threads = pl.concat([shown_threads, threads.slice(MAX_THREADS)]).with_row_index("thread_id")
    joined = calls.join(
        threads.select("rank", "thread", "thread_id"), on=["rank", "thread"], how="left"
    )
    return threads, joined.drop("rank", "thread")


def _thread_name(row: dict[str, Any], profile: Profile, language: Language) -> str:
    name = texts_in(language)["host_thread"].format(name=row["thread"]).rstrip()
    return with_rank(name, row["rank"], profile, language)
