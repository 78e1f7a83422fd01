"""Where the moments that a to-do line would save are on the timeline."""

from typing import Any

import polars as pl

from jumar.profiling.advice.todo import Advice, todo
from jumar.profiling.page.clock import Clock
from jumar.profiling.profile import Profile
from jumar.profiling.views import Impossible, Options


def places(profile: Profile, options: Options, clock: Clock) -> list[dict[str, Any]]:
    """For each to-do line, its longest moments, in the order of the list.

    Args:
        profile: The profile.
        options: Chip table and language, as the list was made with.
        clock: The time that the page shows.

    Returns:
        `places`, pairs of begin and end from the clock's origin (ns), and `all`, how many moments
        there are.
    """
    try:
        return [_of_line(line, clock) for line in todo(profile, options)]
    except Impossible:
        return []


def _of_line(line: Advice, clock: Clock) -> dict[str, Any]:
    shown = line.places.select(
        (pl.col("start_ns") - clock.origin).clip(0, clock.span).alias("start"),
        (pl.col("end_ns") - clock.origin).clip(0, clock.span).alias("end"),
    ).filter(pl.col("end") > pl.col("start"))
    return {"places": [list(map(int, row)) for row in shown.iter_rows()], "all": line.moments}
