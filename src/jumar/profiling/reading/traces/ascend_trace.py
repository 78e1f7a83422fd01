"""Traces of torch_npu and msprof: calls on the host, what launched each op, clocks, overlap."""

from collections.abc import Callable, Iterator
from typing import Final

import polars as pl

from jumar.profiling.profile import COMMUNICATION, Missing
from jumar.profiling.reading.part import Part
from jumar.profiling.reading.traces.kineto import LAYERS, has_category, steps_of
from jumar.profiling.reading.traces.longest import longest_calls
from jumar.profiling.reading.traces.module_calls import layers_of
from jumar.profiling.reading.traces.nesting import step_at, with_waits
from jumar.profiling.reading.traces.trace import Trace

_HARDWARE: Final = ("Ascend Hardware", "Task Scheduler")
_COLLECTIVES: Final = ("HCCL", "Communication")
_RUNTIME: Final = ("runtime", "hccl", "communication")
_CORES: Final = {"HCCL": COMMUNICATION, "AICPU": "AI_CPU", "N/A": None, "Other": None}
_ACCELERATOR: Final = ("AI_CORE", "AI_VECTOR_CORE", "AI_CPU", "DSA_SQE", "MIX_AIC", "MIX_AIV")
_NUMBERED: Final = r"^(?:.*/)?([A-Za-z][A-Za-z0-9_]*?)(?:-op\d+|_?\d+)?$"
_OP: Final = ("stream", "thread", "task", "name", "start_ns", "duration_ns", "correlation")
_ITERATION: Final = r"^Iteration (\d{1,18})$"
_STEP_TRACE: Final = ("Iteration Time", "FP_BP Time", "Iteration Refresh", "Reduce")
"""Categories of graph mode's step trace: spans of the device, in which the host does nothing."""


def is_ascend(trace: Trace) -> bool:
    """Whether the processes are those of CANN."""
    names = set(trace.processes.values())
    return bool(names & {*_HARDWARE, *_COLLECTIVES, "CANN", "Overlap Analysis", "Step Trace"})


def part_of(trace: Trace, shown: str) -> Part:
    """The tables of a `trace_view.json` or `msprof_*.json`."""
    steps = steps_of(trace, 0)
    steps = steps if steps.height else _iterations(trace)
    ops = _ops(trace)
    ops = ops.with_columns(step_at(ops["start_ns"], steps).alias("step"))
    clocks = trace.clocks.joined(trace.clocks.frames())
    statistics = {
        "overlap_analysis": _chosen(trace, _overlap),
        "frequency": clocks.sort("time_ns", maintain_order=True),
    }
    missing = [Missing(file=shown, what=f"the end: {trace.problem}")] if trace.problem else []
    host, gaps = longest_calls(_host(trace), shown)
    missing += gaps
    return Part(
        file=shown,
        kind="trace",
        producer="torch_npu" if has_category(trace, ("cpu_op",)) else "msprof",
        device="npu",
        ops=ops,
        steps=steps,
        host=host,
        statistics={name: table for name, table in statistics.items() if table.height},
        missing=(*missing, *trace.unreadable.missing()),
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
    """Calls of CANN; their level is where the hardware's have the core."""
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


def _slices(trace: Trace) -> Iterator[pl.DataFrame]:
    """Events without a category, with the names of their process and thread."""
    threads = {"\n".join(key): name for key, name in trace.threads.items()}
    for rows in trace.kernels.frames():
        rows = trace.kernels.decoded(rows)
        yield rows.with_columns(
            pl.col("pid").replace_strict(trace.processes, default="").alias("process"),
            pl.concat_str("pid", "thread", separator="\n")
            .replace_strict(threads, default="")
            .alias("label"),
        )


def _chosen(trace: Trace, choose: Callable[[pl.DataFrame], pl.DataFrame]) -> pl.DataFrame:
    """The relevant slices, since not all are kept in memory."""
    none = trace.kernels.decoded(trace.kernels.joined(())).with_columns(
        pl.lit("").alias("process"), pl.lit("").alias("label")
    )
    return pl.concat([choose(none), *(choose(rows) for rows in _slices(trace))])


def _host(trace: Trace) -> Iterator[pl.DataFrame]:
    of_device = trace.texts.numbers("category", _STEP_TRACE).to_list()
    for rows in trace.host():
        called = rows.filter(~pl.col("category").is_in(of_device))
        yield _python_calls(trace.calls.decoded(called))
    for rows in _slices(trace):
        yield _cann_calls(rows)


def _iterations(trace: Trace) -> pl.DataFrame:
    """Iterations of graph mode, which every file of one iteration repeats."""
    waits = trace.waits.decoded(trace.waits.joined(trace.waits.frames()))
    ends = (
        waits.with_columns(pl.col("name").str.extract(r" (\d{1,18})$").cast(pl.Int64))
        .drop_nulls()
        .group_by("name")
        .agg(pl.col("data_ns").max())
    )
    return (
        trace.calls.decoded(trace.called(_ITERATION))
        .select(
            pl.col("name").str.extract(_ITERATION).cast(pl.Int64).alias("step"),
            "start_ns",
            (pl.col("start_ns") + pl.col("duration_ns")).alias("end_ns"),
        )
        .unique("step", keep="first", maintain_order=True)
        .join(ends, left_on="step", right_on="name", how="left")
        .sort("step")
    )


def _hardware(slices: pl.DataFrame) -> pl.DataFrame:
    """Ops that ran on the device.

    Only names tell whether a task without a core is an op: those of the queue itself
    (`EVENT_RECORD`, `MEMCPY_ASYNC`, `PROFILING_ENABLE`) are all in capitals.
    """
    return slices.filter(
        pl.col("process").is_in(_HARDWARE)
        & pl.col("category").is_null()
        & ~pl.col("label").str.starts_with("Step Trace")
        & (
            pl.col("core").is_in(_ACCELERATOR)
            | (pl.col("core").is_in(["Other", "N/A"]) & pl.col("name").str.contains("[a-z]"))
        )
    ).select(*_OP, pl.col("core").replace(_CORES))


def _communication(slices: pl.DataFrame) -> pl.DataFrame:
    """Collectives, which have threads of their own."""
    return slices.filter(
        pl.col("process").is_in(_COLLECTIVES)
        & (pl.col("label").str.contains("^Group .*Communication$"))
    ).select(*_OP, pl.lit(COMMUNICATION).alias("core"))


def _ops(trace: Trace) -> pl.DataFrame:
    """Ops on the device, with the call that launched each."""
    both = pl.concat([_chosen(trace, _hardware), _chosen(trace, _communication)]).with_columns(
        pl.coalesce("stream", "thread").alias("stream"), pl.lit(None, pl.Int64).alias("device")
    )
    launched = (
        trace.launches.joined(trace.launches.frames())
        .filter(pl.col("arrow").is_not_null())
        .unique("arrow", keep="first", maintain_order=True)
    )
    launched = layers_of(trace).of_launches(launched)
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
        pl.col("^module$"),
    )


def _overlap(slices: pl.DataFrame) -> pl.DataFrame:
    return slices.filter(pl.col("process") == "Overlap Analysis").select(
        "name", "start_ns", "duration_ns"
    )
