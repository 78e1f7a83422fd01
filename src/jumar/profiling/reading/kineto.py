"""Traces of torch.profiler: kernels of CUDA by the op that launched them, ops of the CPU."""

import re
from typing import Any, Final

import polars as pl

from jumar.profiling.profile import COMMUNICATION, Missing
from jumar.profiling.reading.exact import nanoseconds_of
from jumar.profiling.reading.nesting import innermost, self_times, step_at, with_waits
from jumar.profiling.reading.part import Part
from jumar.profiling.reading.trace import KEPT_CALLS, Trace

LAYERS: Final = {
    "cpu_op": "op",
    "cuda_runtime": "runtime",
    "cuda_driver": "runtime",
    "python_function": "python",
    "user_annotation": "mark",
}
_CORES: Final = {"gpu_memcpy": "CUDA_MEMCPY", "gpu_memset": "CUDA_MEMSET"}
_STEP: Final = r"^ProfilerStep#(\d{1,18})$"
_FAMILIES: Final = (
    ("nccl", "nccl"),
    ("conv|cudnn|winograd|fprop|dgrad|wgrad", "conv"),
    ("gemm|cutlass|sgemm|hgemm|matmul", "gemm"),
    ("reduce", "reduce"),
    ("softmax", "softmax"),
    ("norm", "norm"),
    ("elementwise|vectorized", "elementwise"),
    ("triton", "triton"),
    ("^Memcpy", "Memcpy"),
    ("^Memset", "Memset"),
)


def part_of(trace: Trace, shown: str) -> Part:
    """The tables of a Kineto trace."""
    base = nanoseconds_of(trace.beside.get("baseTimeNanoseconds"), "ns") or 0
    calls = trace.calls.with_columns(pl.col("start_ns") + base)
    kernels = trace.kernels.filter(pl.col("category").is_not_null())
    kernels = kernels.with_columns(pl.col("start_ns") + base)
    steps = steps_of(calls)
    missing: list[Missing] = []
    if kernels.height:
        ops = _cuda_ops(kernels, calls, steps)
    else:
        ops = _cpu_ops(calls, steps)
        if calls["category"].is_in(["cuda_runtime", "cuda_driver"]).any():
            missing.append(
                Missing(
                    file=shown,
                    what="kernels: calls to CUDA are there, but nothing that ran on the device "
                    "(activities without CUDA, or no right to use CUPTI)",
                    needed_for=("op table of the device", "step split"),
                )
            )
    if trace.problem:
        missing.append(Missing(file=shown, what=f"the end: {trace.problem}"))
    host, gaps = kept_calls(trace, host_of(calls), shown)
    missing += gaps
    distributed = trace.beside.get("distributedInfo")
    rank = distributed.get("rank") if isinstance(distributed, dict) else None
    return Part(
        file=shown,
        kind="kineto",
        producer="kineto",
        device="cuda" if kernels.height else "cpu",
        ops=ops,
        steps=steps,
        host=host,
        missing=tuple(missing),
        rank=rank if type(rank) is int and 0 <= rank < 1 << 20 else None,
        chip=_chip(trace.beside.get("deviceProperties")),
    )


def kept_calls(trace: Trace, host: pl.DataFrame, shown: str) -> tuple[pl.DataFrame, list[Missing]]:
    """The longest of the calls on the host, with what is said of those that were left out.

    Ops of a device are linked to their launches before; without a bound, the host's side of a long
    capture would be most of the memory that a profile takes.
    """
    gaps: list[Missing] = []
    if trace.shortest_ns:
        gaps.append(_left_out("Python calls", trace.shortest_ns, shown))
    if host.height > KEPT_CALLS:
        shortest = host["duration_ns"].top_k(KEPT_CALLS).min()
        shortest = int(shortest) if isinstance(shortest, int) else 0
        host = host.filter((pl.col("duration_ns") > shortest) | (pl.col("layer") == "mark"))
        gaps.append(_left_out("calls on the host", shortest, shown))
    return host, gaps


def _left_out(what: str, shortest_ns: int, shown: str) -> Missing:
    return Missing(
        file=shown,
        what=f"{what} of {shortest_ns / 1000:.3f} us and less: there are too many to keep",
        needed_for=("short calls on the host",),
    )


def steps_of(calls: pl.DataFrame) -> pl.DataFrame:
    """The steps that `prof.step()` marked."""
    return (
        calls.filter(pl.col("name").str.contains(_STEP))
        .select(
            pl.col("name").str.extract(_STEP).cast(pl.Int64).alias("step"),
            "start_ns",
            (pl.col("start_ns") + pl.col("duration_ns")).alias("end_ns"),
        )
        .unique("step", keep="first", maintain_order=True)
        .sort("step")
    )


def host_of(calls: pl.DataFrame) -> pl.DataFrame:
    """Calls on the host with their layer."""
    return calls.filter(pl.col("category").is_in(list(LAYERS))).select(
        "thread",
        pl.when(pl.col("name").str.contains(_STEP))
        .then(pl.lit("mark"))
        .otherwise(pl.col("category").replace(LAYERS))
        .alias("layer"),
        "name",
        "start_ns",
        "duration_ns",
        "correlation",
    )


def _ops(calls: pl.DataFrame) -> pl.DataFrame:
    return calls.filter((pl.col("category") == "cpu_op") & ~pl.col("name").str.contains(_STEP))


def _cuda_ops(kernels: pl.DataFrame, calls: pl.DataFrame, steps: pl.DataFrame) -> pl.DataFrame:
    """A row a kernel, named by the innermost op in which it was launched.

    The launch decides, not `External id`: old traces write the correlation there, and ids
    repeat when the profiler starts again.
    """
    ops = _ops(calls)
    launches = calls.filter(
        pl.col("category").is_in(["cuda_runtime", "cuda_driver"])
        & pl.col("correlation").is_not_null()
    ).unique("correlation", keep="first", maintain_order=True)
    launches = launches.with_columns(innermost(ops, launches).alias("row"))
    kernels = kernels.join(
        launches.select(
            "correlation", pl.col("start_ns").alias("launch_ns"), pl.col("row").cast(pl.Int64)
        ),
        on="correlation",
        how="left",
        maintain_order="left",
    )
    by_id = (
        ops.with_row_index("by_external")
        .filter(pl.col("external").is_not_null())
        .unique("external", keep="none")
        .select("external", pl.col("by_external").cast(pl.Int64))
    )
    kernels = kernels.join(by_id, on="external", how="left", maintain_order="left").with_columns(
        pl.coalesce("row", "by_external")
    )
    parents = ops.with_row_index("row").select(
        pl.col("row").cast(pl.Int64),
        pl.col("name").alias("op"),
        "shapes",
        "types",
        "module",
    )
    kernels = kernels.join(parents, on="row", how="left", maintain_order="left")
    moment = kernels["launch_ns"].fill_null(kernels["start_ns"])
    kernels = kernels.with_columns(step_at(moment, steps).alias("step"))
    return with_waits(_named(kernels))


def _family() -> pl.Expr:
    """What a kernel without an op is called."""
    family = pl.lit("kernel")
    for pattern, name in reversed(_FAMILIES):
        family = (
            pl.when(pl.col("name").str.contains(f"(?i){pattern}"))
            .then(pl.lit(name))
            .otherwise(family)
        )
    return family


def _named(kernels: pl.DataFrame) -> pl.DataFrame:
    collective = pl.col("name").str.contains("^nccl")
    kind = pl.coalesce(pl.col("op").str.strip_prefix("aten::"), _family())
    return (
        kernels.with_columns(
            pl.when(collective)
            .then(pl.col("name").str.extract(r"^(\w+?)(?:\(|$)"))
            .otherwise(kind)
            .alias("type"),
            pl.when(collective)
            .then(pl.lit(COMMUNICATION))
            .otherwise(pl.col("category").replace_strict(_CORES, default="CUDA"))
            .alias("core"),
        )
        .sort("start_ns", maintain_order=True)
        .with_columns(ordinal_name())
        .select(
            "step",
            pl.col("device").cast(pl.Int32, strict=False),
            pl.col("stream").fill_null(pl.col("thread")),
            "ordinal",
            "type",
            "core",
            "start_ns",
            "duration_ns",
            "block_num",
            pl.col("shapes").alias("input_shapes"),
            pl.col("types").alias("input_types"),
            "module",
            "bytes",
            pl.col("name").alias("kernel"),
            "correlation",
            "launch_ns",
        )
        .rename({"ordinal": "name"})
    )


def ordinal_name() -> pl.Expr:
    """`mm_0`, `mm_1`: the type with its place in the step, so that steps and runs line up."""
    number = pl.int_range(pl.len()).over("step", "type").cast(pl.String)
    return (pl.col("type") + "_" + number).alias("ordinal")


def _cpu_ops(calls: pl.DataFrame, steps: pl.DataFrame) -> pl.DataFrame:
    """A row an op with the time that it spent itself, and collectives of gloo."""
    ops = _ops(calls)
    ops = ops.with_columns(
        self_times(ops).alias("own_ns"),
        pl.lit("CPU").alias("core"),
        pl.col("name").str.strip_prefix("aten::").alias("type"),
    )
    collectives = calls.filter(
        (pl.col("category") == "user_annotation") & pl.col("name").str.contains("^(gloo|mpi|ccl):")
    ).with_columns(
        pl.col("duration_ns").alias("own_ns"),
        pl.lit(COMMUNICATION).alias("core"),
        pl.col("name").alias("type"),
    )
    both = pl.concat([ops, collectives]).sort("start_ns", maintain_order=True)
    return (
        both.with_columns(step_at(both["start_ns"], steps).alias("step"))
        .with_columns(ordinal_name())
        .select(
            "step",
            pl.col("thread").alias("stream"),
            pl.col("ordinal").alias("name"),
            "type",
            "core",
            "start_ns",
            pl.col("own_ns").alias("duration_ns"),
            pl.col("shapes").alias("input_shapes"),
            pl.col("types").alias("input_types"),
            "module",
            pl.col("external").alias("correlation"),
        )
    )


def _chip(devices: Any) -> str:
    """The name of the accelerator, where the trace has its properties."""
    first = devices[0] if isinstance(devices, list) and devices else None
    name = first.get("name") if isinstance(first, dict) else None
    return re.sub(r"\s+", " ", name)[:80] if isinstance(name, str) else ""
