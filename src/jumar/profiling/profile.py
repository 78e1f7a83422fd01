"""The common form between readers and views: one profile, as tables of integer nanoseconds."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import polars as pl

DeviceKind = Literal["npu", "cuda", "cpu"]
"""Where the ops ran."""

COMMUNICATION = "COMMUNICATION"
"""The core of collectives, which older files call HCCL."""

OPS_SCHEMA: Mapping[str, pl.DataType] = {
    "rank": pl.Int32(),
    "step": pl.Int64(),
    "device": pl.Int32(),
    "stream": pl.String(),
    "task": pl.Int64(),
    "name": pl.String(),
    "type": pl.String(),
    "core": pl.String(),
    "start_ns": pl.Int64(),
    "duration_ns": pl.Int64(),
    "wait_ns": pl.Int64(),
    "block_num": pl.Int64(),
    "input_shapes": pl.String(),
    "input_types": pl.String(),
    "input_formats": pl.String(),
    "output_shapes": pl.String(),
    "output_types": pl.String(),
    "output_formats": pl.String(),
    "module": pl.String(),
    "flops": pl.Int64(),
    "bytes": pl.Int64(),
    "kernel": pl.String(),
    "state": pl.String(),
    "correlation": pl.Int64(),
    "launch_ns": pl.Int64(),
}
"""The op table: one row per op on the device, or on the CPU with its self time.

A null is what the file does not say. `start_ns` counts from the producer's own zero (microseconds
since 1970 in msprof). `type` is the op's type without its number, `core` the accelerator core in
msprof's words (`AI_CORE`, `AI_VECTOR_CORE`, `MIX_AIC`, `MIX_AIV`, `AI_CPU`, `COMMUNICATION`,
`DSA_SQE`), else `CUDA`, `CUDA_MEMCPY`, `CUDA_MEMSET`, `CPU`. Shapes are `2,3;4,5`, an empty part
for a scalar, types `FLOAT;FLOAT16` in msprof's words without `DT_`, formats `ND;NC1HWC0` without
`FORMAT_`. `module` is the path of the layer, `flops` and `bytes` are those of the op where known.
`kernel` is the kernel's own name where `name` is that of the op that launched it, `state` is
`dynamic` or `static`, `correlation` leads to the call in `host` that launched the op, and
`launch_ns` is when that call began.
PMU columns follow under their own names (`aic_mac_ratio`) as floats.
"""

STEPS_SCHEMA: Mapping[str, pl.DataType] = {
    "rank": pl.Int32(),
    "step": pl.Int64(),
    "start_ns": pl.Int64(),
    "end_ns": pl.Int64(),
    "computing_ns": pl.Int64(),
    "communication_not_overlapped_ns": pl.Int64(),
    "overlapped_ns": pl.Int64(),
    "communication_ns": pl.Int64(),
    "free_ns": pl.Int64(),
    "preparing_ns": pl.Int64(),
    "data_ns": pl.Int64(),
}
"""One row per step as its producer gives it (`step_trace_time`, ProfilerStep marks, ...)."""

HOST_SCHEMA: Mapping[str, pl.DataType] = {
    "rank": pl.Int32(),
    "thread": pl.String(),
    "layer": pl.String(),
    "name": pl.String(),
    "start_ns": pl.Int64(),
    "duration_ns": pl.Int64(),
    "correlation": pl.Int64(),
}
"""Calls on the host: `layer` is `python`, `op`, `cann`, `runtime`, `dequeue`, `mark`."""

COLLECTIVES_SCHEMA: Mapping[str, pl.DataType] = {
    "rank": pl.Int32(),
    "step": pl.Int64(),
    "name": pl.String(),
    "group": pl.String(),
    "start_ns": pl.Int64(),
    "elapse_ns": pl.Int64(),
    "transit_ns": pl.Int64(),
    "wait_ns": pl.Int64(),
    "synchronization_ns": pl.Int64(),
    "idle_ns": pl.Int64(),
}

LINKS_SCHEMA: Mapping[str, pl.DataType] = {
    "rank": pl.Int32(),
    "step": pl.Int64(),
    "name": pl.String(),
    "transport": pl.String(),
    "source": pl.Int32(),
    "destination": pl.Int32(),
    "size_bytes": pl.Int64(),
    "transit_ns": pl.Int64(),
    "bandwidth_gb_s": pl.Float64(),
    "large_packet_ratio": pl.Float64(),
}


def empty(schema: Mapping[str, pl.DataType]) -> pl.DataFrame:
    """A table without rows."""
    return pl.DataFrame(schema=dict(schema))


@dataclass(frozen=True, kw_only=True)
class Missing:
    """Something that a file lacks, or that could not be read.

    Args:
        file: The file, or what is not there.
        what: What is missing, or wrong.
        needed_for: The analyses that are impossible without it.
    """

    file: str
    what: str
    needed_for: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Profile:
    """One capture: of one or more ranks, of one or more steps.

    Args:
        source: What was opened, as the user named it.
        producer: `torch_npu level 1`, `msprof`, `msprof 6.x`, `kineto`, `jumar`, `mindspore`.
        kind: Where the ops ran.
        ops: The op table (`OPS_SCHEMA`, then PMU columns).
        steps: As the producer gives them.
        host: Calls on the host.
        collectives: Communication ops and how their time is spent.
        links: Transfers between ranks, by transport or link.
        statistics: The producer's tables that are only shown or compared, by their file's kind:
            `op_statistic`, `api_statistic`, `aicpu`, `fusion_op`, `operator_memory`,
            `memory_record`, `l2_cache`, `frequency`.
        files: What was read, each with its recognised kind.
        missing: What was not read, and why.
        chip: The accelerator, if the capture names it.
        memo: Results that several views of this profile share.
    """

    source: str
    producer: str
    kind: DeviceKind
    ops: pl.DataFrame
    steps: pl.DataFrame = field(default_factory=lambda: empty(STEPS_SCHEMA))
    host: pl.DataFrame = field(default_factory=lambda: empty(HOST_SCHEMA))
    collectives: pl.DataFrame = field(default_factory=lambda: empty(COLLECTIVES_SCHEMA))
    links: pl.DataFrame = field(default_factory=lambda: empty(LINKS_SCHEMA))
    statistics: Mapping[str, pl.DataFrame] = field(default_factory=lambda: {})
    files: tuple[tuple[str, str], ...] = ()
    missing: tuple[Missing, ...] = ()
    chip: str = ""
    memo: dict[str, Any] = field(default_factory=lambda: {}, init=False, repr=False, compare=False)

    @property
    def ranks(self) -> tuple[int, ...]:
        """The ranks that have rows, in order."""
        ranks = pl.concat([self.ops["rank"], self.steps["rank"]]).drop_nulls().unique().sort()
        return tuple(ranks.to_list())
