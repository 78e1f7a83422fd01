"""The time range of a timeline."""

from typing import NamedTuple

import polars as pl

from jumar.profiling.profile import END


class TimeRange(NamedTuple):
    """The time range of a timeline: `span` nanoseconds from `origin`, on the profile's clock."""

    origin: int
    span: int


def time_range_of(ops: pl.DataFrame, host: pl.DataFrame) -> TimeRange:
    """The time range of all ops, extended to host calls on each side by at most its length.

    Args:
        ops: Ops with start and duration; at least one.
        host: Host calls.
    """
    start, end = _extent(ops)
    origin, limit = start, end
    if not host.is_empty():
        first, last = _extent(host)
        length = end - start
        origin, limit = max(min(start, first), start - length), min(max(end, last), end + length)
    return TimeRange(origin, max(limit - origin, 1))


def _extent(table: pl.DataFrame) -> tuple[int, int]:
    bounds = table.select(
        pl.col("start_ns").min().alias("start"),
        END.max().alias("end"),
    ).row(0)
    return int(bounds[0]), int(bounds[1])
