"""Limits the host calls of a long trace to the longest ones, to bound memory."""

from collections.abc import Iterable
from typing import Final

import numpy as np
import polars as pl

from jumar.profiling.profile import HOST_SCHEMA, Missing

MAX_CALLS: Final = 1_000_000
"""Maximum number of host calls per trace; beyond it, the shortest are dropped."""


def longest_calls(
    frames: Iterable[pl.DataFrame], display_name: str
) -> tuple[pl.DataFrame, list[Missing]]:
    """The longest host calls and all marks, with a note on the calls that were dropped.

    Without a limit, the host calls of a long capture would take most of a profile's memory. Device
    ops have already been linked to the calls that launched them.

    Args:
        frames: Tables of `thread`, `layer`, `name`, `start_ns`, `duration_ns`, `correlation`.
        display_name: The file, for messages.
    """
    kept: list[pl.DataFrame] = []
    count, longest_dropped = 0, -1
    for frame in frames:
        frame = frame.filter(_is_kept(longest_dropped)) if longest_dropped >= 0 else frame
        kept.append(frame)
        count += frame.height
        if count > MAX_CALLS * 5 // 4:
            longest_dropped = _drop_shortest(kept, longest_dropped)
            count = sum(kept_frame.height for kept_frame in kept)
    if longest_dropped >= 0 or count > MAX_CALLS:
        longest_dropped = _drop_shortest(kept, longest_dropped)
    if not kept:
        kept.append(
            pl.DataFrame(
                schema={name: dtype for name, dtype in HOST_SCHEMA.items() if name != "rank"}
            )
        )
    host = pl.concat(kept)
    if longest_dropped < 0:
        return host, []
    what = f"host calls of {longest_dropped / 1000:.3f} us or less: there are too many to keep"
    return host, [Missing(file=display_name, what=what, needed_for=("short host calls",))]


def _is_kept(longest_dropped: int) -> pl.Expr:
    return (pl.col("duration_ns") > longest_dropped) | (pl.col("layer") == "mark")


def _drop_shortest(kept: list[pl.DataFrame], longest_dropped: int) -> int:
    """Drop the shortest calls in place, and return the longest duration that was dropped.

    All calls of that duration are dropped, since there may be millions of them, so fewer than
    `MAX_CALLS` may remain. If there are too few to drop any, nothing changes.
    """
    durations = np.concatenate([frame["duration_ns"].to_numpy() for frame in kept])
    durations = durations[durations > longest_dropped]
    if len(durations) >= MAX_CALLS:
        longest_dropped = int(np.partition(durations, -MAX_CALLS)[-MAX_CALLS])
        for index, frame in enumerate(kept):
            kept[index] = frame.filter(_is_kept(longest_dropped))
    return longest_dropped
