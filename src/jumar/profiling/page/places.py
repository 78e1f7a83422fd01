"""The time intervals of to-do entries on the timeline."""

from typing import Any

import polars as pl

from jumar.profiling.advice.todo import Advice, todo
from jumar.profiling.page.time_range import TimeRange
from jumar.profiling.profile import Profile
from jumar.profiling.views import Impossible, Options


def places(profile: Profile, options: Options, time_range: TimeRange) -> list[dict[str, Any]]:
    """The longest intervals of each to-do entry, in the order of the list.

    Args:
        profile: The profile.
        options: The options with which the list was made.
        time_range: The time range of the page.

    Returns:
        `places`, pairs of start and end (ns from the origin), and `all`, the number of intervals.
    """
    try:
        return [_intervals_of(advice, time_range) for advice in todo(profile, options)]
    except Impossible:
        return []


def _intervals_of(advice: Advice, time_range: TimeRange) -> dict[str, Any]:
    intervals = advice.places.select(
        (pl.col("start_ns") - time_range.origin).clip(0, time_range.span).alias("start"),
        (pl.col("end_ns") - time_range.origin).clip(0, time_range.span).alias("end"),
    ).filter(pl.col("end") > pl.col("start"))
    return {"places": [list(map(int, row)) for row in intervals.iter_rows()], "all": advice.moments}
