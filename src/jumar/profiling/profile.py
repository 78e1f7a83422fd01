"""`Profile`, the common format that all readers return and all other modules use."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import wraps
from typing import Any, Literal, TypeVar

import polars as pl

_Result = TypeVar("_Result")

DeviceKind = Literal["npu", "cuda", "cpu"]
"""The kind of device on which the ops ran."""

COMMUNICATION = "COMMUNICATION"
"""The core of collectives; HCCL in older files."""

AI_CORES = ("AI_CORE", "AI_VECTOR_CORE", "MIX_AIC", "MIX_AIV")
ACCELERATOR_CORES = (*AI_CORES, "AI_CPU", "DSA_SQE")
"""The cores of an NPU, as msprof names them."""

TYPE_IN_NAME = r"^(?:.*/)?([A-Za-z][A-Za-z0-9_]*?)(?:-op\d+|_?\d+)?$"
"""The type of an op within its name in msprof, between scopes and number."""

END = pl.col("start_ns") + pl.col("duration_ns")
"""The end of an op or host call."""

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

Values that the file lacks are null. `start_ns` counts from the producer's own origin (1970 in
msprof). `type` is the op's type without its number. `core` is the accelerator core as msprof names
it (`AI_CORE`, `AI_VECTOR_CORE`, `MIX_AIC`, `MIX_AIV`, `AI_CPU`, `COMMUNICATION`, `DSA_SQE`), or
`CUDA`, `CUDA_MEMCPY`, `CUDA_MEMSET`, `CPU`. Shapes are written as `2,3;4,5`, empty for a scalar;
dtypes as `FLOAT;FLOAT16`, without msprof's `DT_`; formats as `ND;NC1HWC0`, without `FORMAT_`.
`module` is the path of the layer; `flops` and `bytes` are totals of the op, if known. `kernel` is
the name of the kernel if `name` is the op that launched it. `state` is `dynamic` or
`static`. `correlation` is the id of the launching call in `host`, and `launch_ns` its start.
PMU counters follow as floats, under their own names (`aic_mac_ratio`).
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
"""One row per step, as recorded by the producer (`step_trace_time`, ProfilerStep marks, ...)."""

HOST_SCHEMA: Mapping[str, pl.DataType] = {
    "rank": pl.Int32(),
    "thread": pl.String(),
    "layer": pl.String(),
    "name": pl.String(),
    "start_ns": pl.Int64(),
    "duration_ns": pl.Int64(),
    "correlation": pl.Int64(),
}
"""Host calls: `layer` is `python`, `op`, `cann`, `runtime`, `dequeue`, `enqueue` or `mark`."""

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
    """Data that a file lacks, or that could not be read.

    Args:
        file: The file.
        what: Description of what is missing or broken.
        needed_for: The analyses that need it.
    """

    file: str
    what: str
    needed_for: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Profile:
    """A capture of one or more steps on one or more ranks.

    Args:
        source: The paths that were read, as the user wrote them.
        producer: `torch_npu level 1`, `msprof`, `msprof 6.x`, `kineto`, `jumar`, `mindspore`.
        kind: The kind of device on which the ops ran.
        ops: The op table (`OPS_SCHEMA`, then PMU columns).
        steps: The steps, as recorded by the producer.
        host: Host calls.
        collectives: Collectives and how their time is spent.
        links: Transfers between ranks, by transport or link.
        statistics: The producer's tables that are displayed or compared only, by kind of file:
            `op_statistic`, `api_statistic`, `aicpu`, `fusion_op`, `operator_memory`,
            `memory_record`, `l2_cache`, `frequency`.
        files: The files that were read, each with its recognised kind.
        missing: What is missing or was not read, and why.
        chip: The accelerator, if the capture names it.
        memo: The results of `cached`.
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

    def cached(self, name: str, compute: Callable[[], _Result]) -> _Result:
        """Return a result that several views share; it is computed once."""
        if name not in self.memo:
            self.memo[name] = compute()
        return self.memo[name]

    @property
    def ranks(self) -> tuple[int, ...]:
        """The ranks with ops or steps, in order."""
        ranks = pl.concat([self.ops["rank"], self.steps["rank"]]).drop_nulls().unique().sort()
        return tuple(ranks.to_list())


def once(compute: Callable[[Profile], _Result]) -> Callable[[Profile], _Result]:
    """Decorate a function whose result several views share: it is computed once per profile."""

    @wraps(compute)
    def cached(profile: Profile) -> _Result:
        name = f"{compute.__module__}.{compute.__qualname__}"
        return profile.cached(name, lambda: compute(profile))

    return cached
