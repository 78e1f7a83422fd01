"""The longest calls of a long trace: as many as the memory limit allows."""

from collections.abc import Iterable
from typing import Final

import numpy as np
import polars as pl

from jumar.profiling.profile import HOST_SCHEMA, Missing

KEPT_CALLS: Final = 1_000_000
"""Host calls kept of a trace; of more, the shortest are left out, so that memory is bounded."""


def longest_calls(frames: Iterable[pl.DataFrame], shown: str) -> tuple[pl.DataFrame, list[Missing]]:
    """The longest of the calls on the host, with a note about those left out.

    Ops of a device are linked to their launches before; without a bound, the host's side of a long
    capture would be most of the memory that a profile takes. Marks are kept all.

    Args:
        frames: `thread`, `layer`, `name`, `start_ns`, `duration_ns`, `correlation`, in parts.
        shown: The file, for messages.
    """
    kept: list[pl.DataFrame] = []
    held, bound = 0, -1
    for frame in frames:
        frame = frame.filter(_above(bound)) if bound >= 0 else frame
        kept.append(frame)
        held += frame.height
        if held > KEPT_CALLS * 5 // 4:
            bound = _cut(kept, bound)
            held = sum(part.height for part in kept)
    if bound >= 0 or held > KEPT_CALLS:
        bound = _cut(kept, bound)
    if not kept:
        kept.append(pl.DataFrame(schema={k: v for k, v in HOST_SCHEMA.items() if k != "rank"}))
    host = pl.concat(kept)
    if bound < 0:
        return host, []
    what = f"calls on the host that took {bound / 1000:.3f} us or less: there are too many to keep"
    return host, [Missing(file=shown, what=what, needed_for=("short calls on the host",))]


def _above(bound: int) -> pl.Expr:
    return (pl.col("duration_ns") > bound) | (pl.col("layer") == "mark")


def _cut(kept: list[pl.DataFrame], bound: int) -> int:
    """Drop, in place, what is not longer than the shortest call to keep; returns its length.

    Calls as long as the last are left out too: of millions of one length, none is among the
    longest. So the longest that are held may be fewer, and then the bound stays.
    """
    durations = np.concatenate([part["duration_ns"].to_numpy() for part in kept])
    durations = durations[durations > bound]
    if len(durations) >= KEPT_CALLS:
        bound = int(np.partition(durations, -KEPT_CALLS)[-KEPT_CALLS])
        for index, part in enumerate(kept):
            kept[index] = part.filter(_above(bound))
    return bound
