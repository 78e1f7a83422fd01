"""The time intervals of to-do entries on the timeline."""

from typing import Any

import polars as pl

from jumar.profiling.advice.todo import Advice, todo
from jumar.profiling.page.time_range import TimeRange
from jumar.profiling.profile import Profile
from jumar.profiling.views import Impossible, Options


def todo_intervals(
    profile: Profile, options: Options, time_range: TimeRange
) -> list[dict[str, Any]]:
    """The longest intervals of each to-do entry, in the order of the to-do list.

    Args:
        profile: The profile.
        options: The options of the to-do list.
        time_range: The time range of the page.

    Returns:
        `intervals`, pairs of start and end (ns from the origin), and `count`, the number of all.
    """
    try:
        return [_intervals_of(advice, time_range) for advice in todo(profile, options)]
    except Impossible:
        return []


def _intervals_of(advice: Advice, time_range: TimeRange) -> dict[str, Any]:
    intervals = advice.longest.select(
        (pl.col("start_ns") - time_range.origin).clip(0, time_range.span).alias("start"),
        (pl.col("end_ns") - time_range.origin).clip(0, time_range.span).alias("end"),
    ).filter(pl.col("end") > pl.col("start"))
    return {
        "intervals": [list(map(int, row)) for row in intervals.iter_rows()],
        "count": advice.count,
    }
