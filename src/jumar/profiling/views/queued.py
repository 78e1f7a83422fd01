"""Idle time while the next op was already in the device's queue, so not caused by the host."""

from typing import Final

import polars as pl

from jumar.profiling.profile import Profile, once
from jumar.profiling.views.intervals import SPAN, in_columns
from jumar.profiling.views.windows import busy_union, computes, is_communication

_MIN_AHEAD_NS: Final = 50_000
"""An op launched at least this long before a gap was queued; usually, ops start 5 to 20 us after
their launch."""
_LAUNCH: Final = "(?:^|@)launch$"
"""Name of the CANN call that enqueues an op on the device, in databases and traces."""


@once
def queued_gaps(profile: Profile) -> pl.DataFrame:
    """Gaps before ops that had been launched well before the gap started.

    Such an op waits on the device, for a memory copy, another stream or another program. On CUDA
    and ROCm the launch is the runtime call. On an NPU, ops launched by PyTorch may be queued on the
    host, so the CANN call counts, if recorded.
    """
    is_npu = profile.kind == "npu"
    links = profile.host["correlation"] if is_npu else profile.ops["launch_ns"]
    if profile.kind == "cpu" or links.null_count() == len(links):
        return pl.DataFrame(schema=SPAN)
    ops = profile.ops.filter(computes(profile.ops) | is_communication())
    if is_npu:
        ops = _launched_by_cann(ops, profile.host)
    starting = (
        ops.group_by(pl.col("rank").fill_null(0).cast(pl.Int32), "start_ns")
        # If any of these ops has no known launch, or a late one, the host may be the cause.
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
        .filter(pl.col("launch_ns") + _MIN_AHEAD_NS <= pl.col("begin_ns"))
        .select("rank", pl.col("begin_ns").alias("start_ns"), pl.col("start_ns").alias("end_ns"))
        .pipe(in_columns, SPAN)
    )


def _launched_by_cann(ops: pl.DataFrame, host: pl.DataFrame) -> pl.DataFrame:
    """The ops with `launch_ns`, the start of the CANN call that launched each."""
    rank = pl.col("rank").fill_null(0)
    calls = (
        host.filter((pl.col("layer") == "cann") & pl.col("name").str.contains(_LAUNCH))
        .group_by(rank, "correlation")
        .agg(pl.col("start_ns").max().alias("launch_ns"))
        .drop_nulls()
    )
    ops_of_ranks = ops.select(rank, "correlation", "start_ns", "duration_ns", "core")
    return ops_of_ranks.join(calls, on=["rank", "correlation"], how="left")
