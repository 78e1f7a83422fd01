"""Traces of torch_npu and msprof: ops with their launches, host calls, clocks, overlap."""

from collections.abc import Callable, Iterator
from typing import Final

import polars as pl

from jumar.profiling.profile import ACCELERATOR_CORES, COMMUNICATION, END, TYPE_IN_NAME, Missing
from jumar.profiling.reading.file_content import FileContent
from jumar.profiling.reading.traces.kineto import LAYERS, has_category, marked_steps
from jumar.profiling.reading.traces.longest import longest_calls
from jumar.profiling.reading.traces.module_calls import layers_of
from jumar.profiling.reading.traces.nesting import step_at, with_waits
from jumar.profiling.reading.traces.trace import Trace

_DEVICE_PROCESSES: Final = ("Ascend Hardware", "Task Scheduler")
_COLLECTIVE_PROCESSES: Final = ("HCCL", "Communication")
_RUNTIME_LEVELS: Final = ("runtime", "hccl", "communication")
_CORE_NAMES: Final = {"HCCL": COMMUNICATION, "AICPU": "AI_CPU", "N/A": None, "Other": None}
_OP_COLUMNS: Final = ("stream", "thread", "task", "name", "start_ns", "duration_ns", "correlation")
_ITERATION: Final = r"^Iteration (\d{1,18})$"
_STEP_TRACE_CATEGORIES: Final = ("Iteration Time", "FP_BP Time", "Iteration Refresh", "Reduce")
"""Categories of graph mode's step trace, whose slices are on the device, not host calls."""


def is_ascend(trace: Trace) -> bool:
    """Whether a trace has processes of CANN."""
    names = set(trace.processes.values())
    return bool(
        names
        & {*_DEVICE_PROCESSES, *_COLLECTIVE_PROCESSES, "CANN", "Overlap Analysis", "Step Trace"}
    )


def content_of(trace: Trace, display_name: str) -> FileContent:
    """The content of a `trace_view.json` or `msprof_*.json`."""
    steps = marked_steps(trace, 0)
    steps = steps if steps.height else _iterations(trace)
    ops = _ops(trace)
    ops = ops.with_columns(step_at(ops["start_ns"], steps).alias("step"))
    clocks = trace.clocks.joined(trace.clocks.frames())
    statistics = {
        "overlap_analysis": _selected(trace, _overlap),
        "frequency": clocks.sort("time_ns", maintain_order=True),
    }
    missing = (
        [Missing(file=display_name, what=f"the end: {trace.problem}")] if trace.problem else []
    )
    host, gaps = longest_calls(_host(trace), display_name)
    missing += gaps
    return FileContent(
        file=display_name,
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
    """Calls of CANN; their level is in the column `core`."""
    return slices.filter(pl.col("process") == "CANN").select(
        "thread",
        pl.when(pl.col("core").is_in(_RUNTIME_LEVELS))
        .then(pl.lit("runtime"))
        .otherwise(pl.lit("cann"))
        .alias("layer"),
        "name",
        "start_ns",
        "duration_ns",
        "correlation",
    )


def _slices(trace: Trace) -> Iterator[pl.DataFrame]:
    """The rows of `trace.kernels`, with the names of their process and thread."""
    threads = {"\n".join(key): name for key, name in trace.threads.items()}
    for rows in trace.kernels.frames():
        rows = trace.kernels.decoded(rows)
        yield rows.with_columns(
            pl.col("pid").replace_strict(trace.processes, default="").alias("process"),
            pl.concat_str("pid", "thread", separator="\n")
            .replace_strict(threads, default="")
            .alias("label"),
        )


def _selected(trace: Trace, select: Callable[[pl.DataFrame], pl.DataFrame]) -> pl.DataFrame:
    """The slices that `select` selects, batch by batch, since not all fit into memory."""
    no_rows = trace.kernels.decoded(trace.kernels.joined(())).with_columns(
        pl.lit("").alias("process"), pl.lit("").alias("label")
    )
    return pl.concat([select(no_rows), *(select(rows) for rows in _slices(trace))])


def _host(trace: Trace) -> Iterator[pl.DataFrame]:
    step_trace = trace.texts.numbers("category", _STEP_TRACE_CATEGORIES).to_list()
    for rows in trace.host_calls():
        host_rows = rows.filter(~pl.col("category").is_in(step_trace))
        yield _python_calls(trace.calls.decoded(host_rows))
    for rows in _slices(trace):
        yield _cann_calls(rows)


def _iterations(trace: Trace) -> pl.DataFrame:
    """The iterations of graph mode; every file of an iteration repeats them."""
    events = trace.data_waits.decoded(trace.data_waits.joined(trace.data_waits.frames()))
    data_waits = (
        events.with_columns(pl.col("name").str.extract(r" (\d{1,18})$").cast(pl.Int64))
        .drop_nulls()
        .group_by("name")
        .agg(pl.col("data_ns").max())
    )
    return (
        trace.calls.decoded(trace.calls_named(_ITERATION))
        .select(
            pl.col("name").str.extract(_ITERATION).cast(pl.Int64).alias("step"),
            "start_ns",
            END.alias("end_ns"),
        )
        .unique("step", keep="first", maintain_order=True)
        .join(data_waits, left_on="step", right_on="name", how="left")
        .sort("step")
    )


def _device_ops(slices: pl.DataFrame) -> pl.DataFrame:
    """Ops on the device.

    A task without a core is an op unless its name is all in capitals, like the tasks of the queue
    itself (`EVENT_RECORD`, `MEMCPY_ASYNC`, `PROFILING_ENABLE`).
    """
    return slices.filter(
        pl.col("process").is_in(_DEVICE_PROCESSES)
        & pl.col("category").is_null()
        & ~pl.col("label").str.starts_with("Step Trace")
        & (
            pl.col("core").is_in(ACCELERATOR_CORES)
            | (pl.col("core").is_in(["Other", "N/A"]) & pl.col("name").str.contains("[a-z]"))
        )
    ).select(*_OP_COLUMNS, pl.col("core").replace(_CORE_NAMES))


def _collectives(slices: pl.DataFrame) -> pl.DataFrame:
    """Collectives, which are on separate threads."""
    return slices.filter(
        pl.col("process").is_in(_COLLECTIVE_PROCESSES)
        & (pl.col("label").str.contains("^Group .*Communication$"))
    ).select(*_OP_COLUMNS, pl.lit(COMMUNICATION).alias("core"))


def _ops(trace: Trace) -> pl.DataFrame:
    """Ops and collectives, with the call that launched each."""
    ops = pl.concat([_selected(trace, _device_ops), _selected(trace, _collectives)]).with_columns(
        pl.coalesce("stream", "thread").alias("stream"), pl.lit(None, pl.Int64).alias("device")
    )
    launches = (
        trace.launches.joined(trace.launches.frames())
        .filter(pl.col("arrow").is_not_null())
        .unique("arrow", keep="first", maintain_order=True)
    )
    launches = layers_of(trace).with_modules(launches)
    ops = ops.join(
        launches, left_on="start_ns", right_on="arrow", how="left", maintain_order="left"
    )
    return with_waits(ops).select(
        pl.col("device").cast(pl.Int32),
        "stream",
        "task",
        "name",
        pl.coalesce(
            pl.col("name").str.extract(r"^aclnn\w*_([A-Za-z0-9]+)$"),
            pl.col("name").str.extract(TYPE_IN_NAME),
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
