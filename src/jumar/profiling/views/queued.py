"""Idle time of a device whose next op was waiting in its queue, which is no fault of the host."""

from typing import Final

import polars as pl

from jumar.profiling.profile import Profile
from jumar.profiling.views.intervals import SPAN
from jumar.profiling.views.windows import busy_union, computes, is_communication

_AHEAD_NS: Final = 50_000
"""How long before a gap an op has to be launched to count as waiting; a launch itself takes 5 to
20 us from the call to the start."""


def queued_gaps(profile: Profile) -> pl.DataFrame:
    """Gaps between ops of which the next one had been launched well before the gap began.

    The op waits for something on the device: for a memory copy, for another stream, for another
    program. Known for CUDA and ROCm, where a launch is a call of the runtime; torch_npu's
    launches may wait in a queue on the host.
    """
    if "queued" not in profile.memo:
        profile.memo["queued"] = _queued(profile)
    return profile.memo["queued"]


def _queued(profile: Profile) -> pl.DataFrame:
    if profile.kind != "cuda" or profile.ops["launch_ns"].null_count() == profile.ops.height:
        return pl.DataFrame(schema=SPAN)
    starting = (
        profile.ops.filter(computes(profile.ops) | is_communication())
        .group_by(pl.col("rank").fill_null(0).cast(pl.Int32), "start_ns")
        # Where one of them has no known launch, or a late one, the host may have been the cause.
        .agg(
            pl.when(pl.col("launch_ns").null_count() == 0)
            .then(pl.col("launch_ns").max())
            .alias("launch_ns")
        )
    )
    gaps = busy_union(profile).sort("rank", "start_ns")
    return (
        gaps.with_columns(pl.col("end_ns").shift(1).over("rank").alias("begin_ns"))
        .join(starting, on=["rank", "start_ns"], how="inner", maintain_order="left")
        .filter(pl.col("launch_ns") + _AHEAD_NS <= pl.col("begin_ns"))
        .select("rank", pl.col("begin_ns").alias("start_ns"), pl.col("start_ns").alias("end_ns"))
        .select(pl.col(name).cast(kind) for name, kind in SPAN.items())
    )
