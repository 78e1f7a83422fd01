"""The time range of a timeline."""

from typing import NamedTuple

import polars as pl


class Clock(NamedTuple):
    """The time range of a timeline: from `origin`, in the profile's nanoseconds, this long."""

    origin: int
    span: int


def clock_of(ops: pl.DataFrame, host: pl.DataFrame) -> Clock:
    """The time of all ops, and of host calls around them, up to the same length again.

    Args:
        ops: Ops with start and duration; not empty.
        host: Calls on the host.
    """
    begin, end = _ends(ops)
    before, after = begin, end
    if not host.is_empty():
        first, last = _ends(host)
        length = end - begin
        before, after = max(min(begin, first), begin - length), min(max(end, last), end + length)
    return Clock(before, max(after - before, 1))


def _ends(table: pl.DataFrame) -> tuple[int, int]:
    ends = table.select(
        pl.col("start_ns").min().alias("begin"),
        (pl.col("start_ns") + pl.col("duration_ns")).max().alias("end"),
    ).row(0)
    return int(ends[0]), int(ends[1])
