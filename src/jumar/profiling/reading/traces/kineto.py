"""Traces of torch.profiler: CUDA kernels with the ops that launched them, or CPU ops."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any, Final

import polars as pl

from jumar.profiling.profile import COMMUNICATION, DeviceKind, Missing
from jumar.profiling.reading.exact import nanoseconds_of
from jumar.profiling.reading.file_content import FileContent
from jumar.profiling.reading.traces.categories import (
    DEVICE_CATEGORIES,
    RUNTIME_CATEGORIES,
    device_category,
)
from jumar.profiling.reading.traces.longest import longest_calls
from jumar.profiling.reading.traces.module_calls import layers_of
from jumar.profiling.reading.traces.nesting import launched_before_recording, step_at, with_waits
from jumar.profiling.reading.traces.spilling import TextNumbers
from jumar.profiling.reading.traces.sweeping import (
    STEP,
    launches,
    ops_with_unique_id,
    own_times,
)
from jumar.profiling.reading.traces.trace import Trace

LAYERS: Final = {
    "cpu_op": "op",
    "cuda_runtime": "runtime",
    "cuda_driver": "runtime",
    "python_function": "python",
    "user_annotation": "mark",
}
_CORES: Final = dict(zip(DEVICE_CATEGORIES, ("CUDA", "CUDA_MEMCPY", "CUDA_MEMSET"), strict=True))
NOT_READ: Final = "events of unsupported categories"
_MAX_LISTED: Final = 20
"""Maximum number of categories to list; a hostile file may have a million."""

_KERNEL_FAMILIES: Final = (
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

_FUNCTION_NAME: Final = r"^(?:void )?(?:\(anonymous namespace\)::|\w+::)*(\w+)"
"""The function name of a kernel, without namespaces and template arguments."""
_COLLECTIVE: Final = (
    "^[nr]ccl|cross_device_reduce|(?i:all_?reduce|all_?gather|reduce_?scatter|all_?to_?all)"
)
"""Function names of collectives, including those of symmetric memory, vLLM and TensorRT-LLM."""
_IN_KERNEL_REDUCTION: Final = "(?i)(?:warp|block|thread|lane)_?all_?reduce"
"""Function names of reductions within a kernel."""


def content_of(trace: Trace, display_name: str) -> FileContent:
    """The tables of a Kineto trace."""
    base_ns = nanoseconds_of(trace.other_values.get("baseTimeNanoseconds"), "ns") or 0
    steps = marked_steps(trace, base_ns)
    missing: list[Missing] = []
    device: DeviceKind = "cuda"
    chip = _chip(trace.other_values.get("deviceProperties"))
    if any(rows["category"].is_not_null().any() for rows in _on_device(trace)):
        ops = _op_columns(trace.texts, _with_launches(trace, steps, base_ns))
    elif trace.problem and (chip or has_category(trace, RUNTIME_CATEGORIES)):
        # Kineto writes kernels after the host's calls; those are no substitute for them.
        ops = None
        missing.append(
            Missing(
                file=display_name,
                what="kernels: the trace ends before its first work on the device"
                f"{f' ({chip})' if chip else ''}; the host's ops are not shown as device work",
                needed_for=("op table of the device", "step split"),
            )
        )
    else:
        # A machine with a GPU names it in recordings of the CPU too.
        device, chip = "cpu", ""
        ops = _cpu_ops(trace, steps, base_ns)
        if has_category(trace, RUNTIME_CATEGORIES):
            missing.append(
                Missing(
                    file=display_name,
                    what="kernels: the trace has calls to the device's runtime, but no work on the "
                    "device (recorded without CUDA activities or without permission to use CUPTI)",
                    needed_for=("op table of the device", "step split"),
                )
            )
    if trace.problem:
        missing.append(Missing(file=display_name, what=f"the end: {trace.problem}"))
    missing += _unread_categories(trace, display_name)
    host, gaps = longest_calls(_host(trace, base_ns), display_name)
    missing += gaps
    distributed = trace.other_values.get("distributedInfo")
    rank = distributed.get("rank") if isinstance(distributed, dict) else None
    return FileContent(
        file=display_name,
        kind="kineto",
        producer="kineto",
        device=device,
        ops=ops,
        steps=steps,
        host=host,
        missing=(*missing, *trace.unreadable.missing()),
        rank=rank if type(rank) is int and 0 <= rank < 1 << 20 else None,
        chip=chip,
    )


def marked_steps(trace: Trace, base_ns: int) -> pl.DataFrame:
    """The steps marked by `prof.step()`."""
    return (
        trace.calls.decoded(trace.calls_named(STEP))
        .select(
            pl.col("name").str.extract(STEP).cast(pl.Int64).alias("step"),
            pl.col("start_ns") + base_ns,
            (pl.col("start_ns") + base_ns + pl.col("duration_ns")).alias("end_ns"),
        )
        .unique("step", keep="first", maintain_order=True)
        .sort("step")
    )


def _host(trace: Trace, base_ns: int) -> Iterator[pl.DataFrame]:
    """The host calls with their layers."""
    marks = trace.texts.matching(STEP)
    layers = {trace.texts.number(category): layer for category, layer in LAYERS.items()}
    columns = ("thread", "category", "name", "start_ns", "duration_ns", "correlation")
    for rows in trace.host_calls(*columns):
        yield trace.calls.decoded(
            rows.filter(pl.col("category").is_in(list(layers))).select(
                "thread",
                pl.when(pl.col("name").is_in(marks))
                .then(pl.lit("mark"))
                .otherwise(pl.col("category").replace_strict(layers, return_dtype=pl.String))
                .alias("layer"),
                "name",
                pl.col("start_ns") + base_ns,
                "duration_ns",
                "correlation",
            )
        )


def _on_device(trace: Trace, *names: str) -> Iterator[pl.DataFrame]:
    """The rows of `trace.kernels`, with categories by process where rocprof wrote none."""
    pids = trace.texts.numbers("pid", list(trace.processes))
    by_pid = {
        pid: trace.texts.number(category)
        for pid, name in zip(pids, trace.processes.values(), strict=True)
        if (category := device_category(name))
    }
    category = pl.col("pid").replace_strict(by_pid, default=None, return_dtype=pl.UInt32)
    columns = dict.fromkeys(("category", *names))
    for rows in trace.kernels.frames(*columns, *(["pid"] if by_pid else [])):
        yield rows.with_columns(pl.coalesce("category", category)).drop("pid") if by_pid else rows


def _unread_categories(trace: Trace, display_name: str) -> Iterator[Missing]:
    """A note on the categories that are not read, most frequent first."""
    counts = Counter[str](trace.unread_events)
    # "Trace" is the span of the recording itself.
    read_categories = {*LAYERS, *DEVICE_CATEGORIES, "Trace"}
    for rows in chain(trace.host_calls("category"), _on_device(trace)):
        for number, count in rows["category"].value_counts().iter_rows():
            category = "(no category)" if number is None else trace.texts.column[number]
            if category not in read_categories:
                counts[category] += count
    by_count = sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))
    if by_count:
        names = ", ".join(f"{category} {count}" for category, count in by_count[:_MAX_LISTED])
        more = f" and {len(by_count) - _MAX_LISTED} more" if len(by_count) > _MAX_LISTED else ""
        yield Missing(file=display_name, what=f"{NOT_READ}: {names}{more}")


def _kernels(trace: Trace, base_ns: int) -> pl.DataFrame:
    """Ops on the device, with texts as numbers."""
    columns = (
        *("name", "category", "thread", "start_ns", "duration_ns", "correlation", "external"),
        *("device", "stream", "block_num", "bytes"),
    )
    frames = (
        rows.filter(pl.col("category").is_not_null()).select(columns)
        for rows in _on_device(trace, *columns)
    )
    return pl.concat([trace.kernels.joined(()).select(columns), *frames]).select(
        "name",
        "category",
        pl.coalesce("stream", "thread").alias("stream"),
        pl.col("device").cast(pl.Int32, strict=False),
        pl.col("start_ns") + base_ns,
        *("duration_ns", "correlation", "external", "block_num", "bytes"),
    )


def _with_launches(trace: Trace, steps: pl.DataFrame, base_ns: int) -> pl.DataFrame:
    """One row per kernel, with its step and the innermost op around its launch.

    `External id` is only a fallback: old traces write the correlation id there, and ids repeat if
    the profiler is restarted.
    """
    kernels = _kernels(trace, base_ns)
    correlations = kernels["correlation"].drop_nulls().unique().sort().to_numpy()
    calls = launches(trace, correlations)
    calls = calls.with_columns(_layers(trace, calls["module"], calls["thread"], calls["launch_ns"]))
    kernels = kernels.join(
        calls.with_columns(pl.col("launch_ns") + base_ns).drop("thread"),
        on="correlation",
        how="left",
        maintain_order="left",
    )
    unlinked = kernels.filter(pl.col("op").is_null())["external"].drop_nulls().unique().sort()
    if len(unlinked):
        kernels = kernels.join(
            ops_with_unique_id(trace, unlinked.to_numpy()),
            on="external",
            how="left",
            maintain_order="left",
            suffix="_by_id",
        )
        is_linked = pl.col("op").is_not_null()
        kernels = kernels.with_columns(
            pl.when(is_linked).then(name).otherwise(f"{name}_by_id").alias(name)
            for name in ("shapes", "types", "module", "op")
        ).drop("op_by_id", "shapes_by_id", "types_by_id", "module_by_id")
    times = kernels["launch_ns"].fill_null(kernels["start_ns"])
    step = step_at(times, steps).set(launched_before_recording(kernels), None)
    return kernels.drop("external").with_columns(step.alias("step"))


def _layers(trace: Trace, recorded: pl.Series, threads: pl.Series, starts: pl.Series) -> pl.Series:
    """The text numbers of the ops' layers, as recorded, else from the enclosing module calls."""
    layers = layers_of(trace).at(threads, starts)
    distinct = layers.drop_nulls().unique()
    numbers = trace.texts.numbers("module", distinct.to_list())
    from_calls = layers.replace_strict(distinct, numbers, default=None, return_dtype=pl.UInt32)
    return recorded.zip_with(recorded.is_not_null(), from_calls).alias("module")


def _kernel_family() -> pl.Expr:
    """The type of a kernel that no op launched."""
    families = [
        pl.when(pl.col("kernel").str.contains(f"(?i){pattern}")).then(pl.lit(name))
        for pattern, name in _KERNEL_FAMILIES
    ]
    return pl.coalesce(*families, pl.lit("kernel"))


def _types(texts: TextNumbers, kernels: pl.DataFrame) -> pl.DataFrame:
    """The type of each kernel from its name and its op, computed once for each distinct pair."""
    pairs = kernels.select("name", "op").unique()
    function = pl.col("kernel").str.extract(_FUNCTION_NAME)
    collective = function.str.contains(_COLLECTIVE) & ~function.str.contains(_IN_KERNEL_REDUCTION)
    op_type = pl.coalesce(pl.col("parent").str.strip_prefix("aten::"), _kernel_family())
    typed = pairs.select(
        "name",
        "op",
        texts.texts_of(pairs["name"]).alias("kernel"),
        texts.texts_of(pairs["op"]).alias("parent"),
    ).with_columns(
        pl.when(pl.col("kernel").str.contains("^nccl"))
        .then(pl.col("kernel").str.extract(r"^(\w+?)(?:\(|$)"))
        .otherwise(op_type)
        .alias("type"),
        collective.fill_null(False).alias("collective"),
    )
    return typed.select("name", "op", "collective", texts.numbers("type", typed["type"].to_list()))


def _op_columns(texts: TextNumbers, kernels: pl.DataFrame) -> pl.DataFrame:
    """The columns of the op table; numbers are replaced by texts only at the end."""
    cores = {texts.number(category): core for category, core in _CORES.items()}
    core = pl.col("category").replace_strict(cores, default="CUDA", return_dtype=pl.String)
    kernels = (
        kernels.join(
            _types(texts, kernels),
            on=["name", "op"],
            how="left",
            nulls_equal=True,
            maintain_order="left",
        )
        .select(
            "step",
            "device",
            "stream",
            "type",
            pl.when("collective").then(pl.lit(COMMUNICATION)).otherwise(core).alias("core"),
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
        .sort("start_ns", maintain_order=True)
    )
    return _decoded(texts, with_waits(kernels), ("stream", "kernel"))


def _decoded(texts: TextNumbers, ops: pl.DataFrame, other_columns: tuple[str, ...]) -> pl.DataFrame:
    """Sorted ops, with numbers replaced by texts and with names.

    The name is the type and its occurrence in the step, such as `mm_1`, so that the same op has the
    same name in other steps and runs.
    """
    occurrence = pl.int_range(pl.len()).over("step", "type").cast(pl.String)
    ops = ops.with_columns(occurrence.alias("name"))
    for name in ("type", "input_shapes", "input_types", "module", *other_columns):
        ops = ops.with_columns(texts.texts_of(ops[name]))
    return ops.with_columns((pl.col("type") + "_" + pl.col("name")).alias("name"))


def _cpu_ops(trace: Trace, steps: pl.DataFrame, base_ns: int) -> pl.DataFrame:
    """One row per CPU op, with its own time, and one per gloo collective."""
    # By start, then in file order, collectives last. Two sorts by one column take half the memory
    # of one sort by two.
    ops = pl.concat(_cpu_rows(trace)).sort("row").drop("row")
    ops = ops.sort("start_ns", maintain_order=True)
    ops = ops.with_columns(_layers(trace, ops["module"], ops["thread"], ops["start_ns"]))
    ops = ops.with_columns(pl.col("start_ns") + base_ns)
    ops = ops.select(
        step_at(ops["start_ns"], steps).alias("step"),
        pl.col("thread").alias("stream"),
        _cpu_types(trace.texts, ops["name"]),
        "core",
        "start_ns",
        pl.col("own_ns").alias("duration_ns"),
        pl.col("shapes").alias("input_shapes"),
        pl.col("types").alias("input_types"),
        "module",
        pl.col("external").alias("correlation"),
    )
    return _decoded(trace.texts, ops, ("stream", "core"))


def _cpu_rows(trace: Trace) -> Iterator[pl.DataFrame]:
    """Unordered ops and collectives; `row` is their file order, with collectives last."""
    columns = ("thread", "name", "start_ns", "own_ns", "shapes", "types", "module", "external")
    cpu_core, communication_core = trace.texts.number("CPU"), trace.texts.number(COMMUNICATION)
    annotation = trace.texts.number("user_annotation")
    collectives = trace.calls_named("^(gloo|mpi|ccl):").filter(pl.col("category") == annotation)
    yield collectives.select(
        (pl.int_range(pl.len()) + len(trace.calls)).alias("row"),
        pl.lit(communication_core, pl.UInt32).alias("core"),
        *(pl.col("duration_ns").alias(name) if name == "own_ns" else name for name in columns),
    )
    for ops in own_times(trace):
        yield ops.select(
            pl.col("row").cast(pl.Int64), pl.lit(cpu_core, pl.UInt32).alias("core"), *columns
        )


def _cpu_types(texts: TextNumbers, names: pl.Series) -> pl.Series:
    """The types of CPU ops: their names without `aten::`."""
    distinct = names.unique()
    types = texts.numbers("type", texts.texts_of(distinct).str.strip_prefix("aten::").to_list())
    return names.replace_strict(distinct, types, return_dtype=pl.UInt32).alias("type")


def has_category(trace: Trace, categories: Iterable[str]) -> bool:
    """Whether any host call belongs to one of the categories."""
    numbers = [trace.texts.number(category) for category in categories]
    return any(rows["category"].is_in(numbers).any() for rows in trace.calls.frames("category"))


def _chip(devices: Any) -> str:
    """The name of the accelerator; empty if the trace lacks its properties."""
    first = devices[0] if isinstance(devices, list) and devices else None
    name = first.get("name") if isinstance(first, dict) else None
    return re.sub(r"\s+", " ", name)[:80] if isinstance(name, str) else ""
