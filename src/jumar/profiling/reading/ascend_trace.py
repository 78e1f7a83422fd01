"""Traces of torch_npu and msprof: calls on the host, what launched each op, clocks, overlap."""

from typing import Final

import polars as pl

from jumar.profiling.profile import COMMUNICATION, Missing
from jumar.profiling.reading.kineto import LAYERS, kept_calls, steps_of
from jumar.profiling.reading.nesting import step_at, with_waits
from jumar.profiling.reading.part import Part
from jumar.profiling.reading.trace import Trace

_HARDWARE: Final = ("Ascend Hardware", "Task Scheduler")
_COLLECTIVES: Final = ("HCCL", "Communication")
_RUNTIME: Final = ("runtime", "hccl", "communication")
_CORES: Final = {"HCCL": COMMUNICATION, "AICPU": "AI_CPU", "N/A": None, "Other": None}
_ACCELERATOR: Final = ("AI_CORE", "AI_VECTOR_CORE", "AI_CPU", "DSA_SQE", "MIX_AIC", "MIX_AIV")
_NUMBERED: Final = r"^(?:.*/)?([A-Za-z][A-Za-z0-9_]*?)(?:-op\d+|_?\d+)?$"
_ITERATION: Final = r"^Iteration (\d{1,18})$"


def is_ascend(trace: Trace) -> bool:
    """Whether the processes are those of CANN."""
    names = set(trace.processes.values())
    return bool(names & {*_HARDWARE, *_COLLECTIVES, "CANN", "Overlap Analysis", "Step Trace"})


def part_of(trace: Trace, shown: str) -> Part:
    """The tables of a `trace_view.json` or `msprof_*.json`."""
    slices = trace.kernels.with_columns(
        pl.col("pid").replace_strict(trace.processes, default="").alias("process"),
        pl.concat_str("pid", "thread", separator="\n")
        .replace_strict({"\n".join(key): name for key, name in trace.threads.items()}, default="")
        .alias("label"),
    )
    calls = trace.calls
    steps = steps_of(calls)
    steps = steps if steps.height else _iterations(calls, trace.waits)
    ops = _ops(slices, trace.flows)
    ops = ops.with_columns(step_at(ops["start_ns"], steps).alias("step"))
    statistics = {"overlap_analysis": _overlap(slices), "frequency": _clocks(trace.clocks)}
    missing = [Missing(file=shown, what=f"the end: {trace.problem}")] if trace.problem else []
    calls_of_all = pl.concat([_python_calls(calls), _cann_calls(slices)])
    host, gaps = kept_calls(trace, calls_of_all, shown)
    missing += gaps
    return Part(
        file=shown,
        kind="trace",
        producer="torch_npu" if calls["category"].eq("cpu_op").any() else "msprof",
        device="npu",
        ops=ops,
        steps=steps,
        host=host,
        statistics={name: table for name, table in statistics.items() if table.height},
        missing=tuple(missing),
    )


def _python_calls(calls: pl.DataFrame) -> pl.DataFrame:
    layers = {**LAYERS, "dequeue": "dequeue", "enqueue": "enqueue"}
    return calls.select(
        "thread",
        pl.when(pl.col("name").str.starts_with("ProfilerStep#"))
        .then(pl.lit("mark"))
        .otherwise(pl.col("category").replace_strict(layers, default="mark"))
        .alias("layer"),
        "name",
        "start_ns",
        "duration_ns",
        "correlation",
    )


def _cann_calls(slices: pl.DataFrame) -> pl.DataFrame:
    """Calls of CANN; its level stands where hardware has the core."""
    return slices.filter(pl.col("process") == "CANN").select(
        "thread",
        pl.when(pl.col("core").is_in(_RUNTIME))
        .then(pl.lit("runtime"))
        .otherwise(pl.lit("cann"))
        .alias("layer"),
        "name",
        "start_ns",
        "duration_ns",
        "correlation",
    )


def _iterations(calls: pl.DataFrame, waits: pl.DataFrame) -> pl.DataFrame:
    """Iterations of graph mode, which every file of one iteration repeats."""
    ends = (
        waits.with_columns(pl.col("name").str.extract(r" (\d{1,18})$").cast(pl.Int64))
        .drop_nulls()
        .group_by("name")
        .agg(pl.col("data_ns").max())
    )
    return (
        calls.filter(pl.col("name").str.contains(_ITERATION))
        .select(
            pl.col("name").str.extract(_ITERATION).cast(pl.Int64).alias("step"),
            "start_ns",
            (pl.col("start_ns") + pl.col("duration_ns")).alias("end_ns"),
        )
        .unique("step", keep="first", maintain_order=True)
        .join(ends, left_on="step", right_on="name", how="left")
        .sort("step")
    )


def _ops(slices: pl.DataFrame, flows: pl.DataFrame) -> pl.DataFrame:
    """Ops on the device, with the call that launched each.

    Only names tell whether a task without a core is an op: those of the queue itself
    (`EVENT_RECORD`, `MEMCPY_ASYNC`, `PROFILING_ENABLE`) are all in capitals.
    """
    hardware = slices.filter(
        pl.col("process").is_in(_HARDWARE)
        & pl.col("category").is_null()
        & ~pl.col("label").str.starts_with("Step Trace")
        & (
            pl.col("core").is_in(_ACCELERATOR)
            | (pl.col("core").is_in(["Other", "N/A"]) & pl.col("name").str.contains("[a-z]"))
        )
    ).with_columns(pl.col("core").replace(_CORES))
    collectives = slices.filter(
        pl.col("process").is_in(_COLLECTIVES)
        & (pl.col("label").str.contains("^Group .*Communication$"))
    ).with_columns(pl.lit(COMMUNICATION).alias("core"))
    both = pl.concat([hardware, collectives]).with_columns(
        pl.coalesce("stream", "thread").alias("stream"), pl.lit(None, pl.Int64).alias("device")
    )
    launched = (
        flows.filter(pl.col("category") == "async_npu")
        .select(
            pl.col("id").cast(pl.Int64, strict=False).alias("arrow"),
            pl.col("start_ns").alias("launch_ns"),
        )
        .unique("arrow", keep="first")
        .filter(pl.col("arrow").is_not_null())
    )
    both = both.join(
        launched, left_on="start_ns", right_on="arrow", how="left", maintain_order="left"
    )
    return with_waits(both).select(
        pl.col("device").cast(pl.Int32),
        "stream",
        "task",
        "name",
        pl.coalesce(
            pl.col("name").str.extract(r"^aclnn\w*_([A-Za-z0-9]+)$"),
            pl.col("name").str.extract(_NUMBERED),
        ).alias("type"),
        "core",
        "start_ns",
        "duration_ns",
        "wait_ns",
        "correlation",
        "launch_ns",
    )


def _overlap(slices: pl.DataFrame) -> pl.DataFrame:
    return slices.filter(pl.col("process") == "Overlap Analysis").select(
        "name", "start_ns", "duration_ns"
    )


def _clocks(clocks: pl.DataFrame) -> pl.DataFrame:
    return clocks.select("time_ns", "mhz").sort("time_ns")
