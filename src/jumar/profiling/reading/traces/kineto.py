"""Traces of torch.profiler: kernels of CUDA by the op that launched them, ops of the CPU."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any, Final

import polars as pl

from jumar.profiling.profile import COMMUNICATION, Kind, Missing
from jumar.profiling.reading.exact import nanoseconds_of
from jumar.profiling.reading.part import Part
from jumar.profiling.reading.traces.categories import DEVICE, RUNTIME, device_category
from jumar.profiling.reading.traces.longest import longest_calls
from jumar.profiling.reading.traces.module_calls import layers_of
from jumar.profiling.reading.traces.nesting import launched_earlier, step_at, with_waits
from jumar.profiling.reading.traces.spilling import Texts
from jumar.profiling.reading.traces.sweeping import (
    STEP,
    launches,
    named_once,
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
_CORES: Final = dict(zip(DEVICE, ("CUDA", "CUDA_MEMCPY", "CUDA_MEMSET"), strict=True))
NOT_READ: Final = "events of categories that are not read"
_NAMED: Final = 20
"""Categories that are listed; a hostile file has a million."""

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

_FUNCTION: Final = r"^(?:void )?(?:\(anonymous namespace\)::|\w+::)*(\w+)"
"""The name of a kernel's function, without its namespaces and template arguments."""
_COLLECTIVE: Final = (
    "^[nr]ccl|cross_device_reduce|(?i:all_?reduce|all_?gather|reduce_?scatter|all_?to_?all)"
)
"""Functions of collectives, those outside NCCL included: symmetric memory, vLLM, TensorRT-LLM."""
_WITHIN: Final = "(?i)(?:warp|block|thread|lane)_?all_?reduce"
"""Reductions within one kernel."""


def part_of(trace: Trace, shown: str) -> Part:
    """The tables of a Kineto trace."""
    base = nanoseconds_of(trace.beside.get("baseTimeNanoseconds"), "ns") or 0
    steps = steps_of(trace, base)
    missing: list[Missing] = []
    if any(rows["category"].is_not_null().any() for rows in _on_device(trace)):
        device: Kind = "cuda"
        ops = _named(trace.texts, _linked(trace, steps, base))
    else:
        device = "cpu"
        ops = _cpu_ops(trace, steps, base)
        if has_category(trace, RUNTIME):
            missing.append(
                Missing(
                    file=shown,
                    what="kernels: calls to the device's runtime are there, but nothing that ran "
                    "on the device (activities without CUDA, or no right to use CUPTI)",
                    needed_for=("op table of the device", "step split"),
                )
            )
    if trace.problem:
        missing.append(Missing(file=shown, what=f"the end: {trace.problem}"))
    missing += _left_out(trace, shown)
    host, gaps = longest_calls(_host(trace, base), shown)
    missing += gaps
    distributed = trace.beside.get("distributedInfo")
    rank = distributed.get("rank") if isinstance(distributed, dict) else None
    return Part(
        file=shown,
        kind="kineto",
        producer="kineto",
        device=device,
        ops=ops,
        steps=steps,
        host=host,
        missing=(*missing, *trace.unreadable.missing()),
        rank=rank if type(rank) is int and 0 <= rank < 1 << 20 else None,
        chip=_chip(trace.beside.get("deviceProperties")),
    )


def steps_of(trace: Trace, base: int) -> pl.DataFrame:
    """The steps that `prof.step()` marked."""
    return (
        trace.calls.decoded(trace.called(STEP))
        .select(
            pl.col("name").str.extract(STEP).cast(pl.Int64).alias("step"),
            pl.col("start_ns") + base,
            (pl.col("start_ns") + base + pl.col("duration_ns")).alias("end_ns"),
        )
        .unique("step", keep="first", maintain_order=True)
        .sort("step")
    )


def _host(trace: Trace, base: int) -> Iterator[pl.DataFrame]:
    """Calls on the host with their layer."""
    marks = trace.texts.matching(STEP)
    known = {trace.texts.number(category): layer for category, layer in LAYERS.items()}
    columns = ("thread", "category", "name", "start_ns", "duration_ns", "correlation")
    for rows in trace.host(*columns):
        yield trace.calls.decoded(
            rows.filter(pl.col("category").is_in(list(known))).select(
                "thread",
                pl.when(pl.col("name").is_in(marks))
                .then(pl.lit("mark"))
                .otherwise(pl.col("category").replace_strict(known, return_dtype=pl.String))
                .alias("layer"),
                "name",
                pl.col("start_ns") + base,
                "duration_ns",
                "correlation",
            )
        )


def _on_device(trace: Trace, *names: str) -> Iterator[pl.DataFrame]:
    """Events of `trace.kernels`; by process, where rocprof wrote no category."""
    categories = trace.texts.numbers("pid", list(trace.processes))
    known = {
        pid: trace.texts.number(category)
        for pid, name in zip(categories, trace.processes.values(), strict=True)
        if (category := device_category(name))
    }
    by_process = pl.col("pid").replace_strict(known, default=None, return_dtype=pl.UInt32)
    columns = dict.fromkeys(("category", *names))
    for rows in trace.kernels.frames(*columns, *(["pid"] if known else [])):
        yield rows.with_columns(pl.coalesce("category", by_process)).drop("pid") if known else rows


def _left_out(trace: Trace, shown: str) -> Iterator[Missing]:
    """Categories of which nothing is read, most frequent first."""
    counts = Counter[str](trace.unread)
    # The span of the recording itself is no event of the program.
    read = {*LAYERS, *DEVICE, "Trace"}
    for rows in chain(trace.host("category"), _on_device(trace)):
        for number, count in rows["category"].value_counts().iter_rows():
            category = "(no category)" if number is None else trace.texts.column[number]
            if category not in read:
                counts[category] += count
    listed = sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))
    if listed:
        named = ", ".join(f"{category} {count}" for category, count in listed[:_NAMED])
        more = f" and {len(listed) - _NAMED} more" if len(listed) > _NAMED else ""
        yield Missing(file=shown, what=f"{NOT_READ}: {named}{more}")


def _kernels(trace: Trace, base: int) -> pl.DataFrame:
    """Ops that ran on the device, with numbers for texts."""
    columns = (
        *("name", "category", "thread", "start_ns", "duration_ns", "correlation", "external"),
        *("device", "stream", "block_num", "bytes"),
    )
    frames = [trace.kernels.joined(()).select(columns)]
    for rows in _on_device(trace, *columns):
        frames.append(rows.filter(pl.col("category").is_not_null()).select(columns))
    return pl.concat(frames).select(
        "name",
        "category",
        pl.coalesce("stream", "thread").alias("stream"),
        pl.col("device").cast(pl.Int32, strict=False),
        pl.col("start_ns") + base,
        *("duration_ns", "correlation", "external", "block_num", "bytes"),
    )


def _linked(trace: Trace, steps: pl.DataFrame, base: int) -> pl.DataFrame:
    """One row per kernel with its step and the innermost op in which it was launched.

    The launch decides, not `External id`: old traces write the correlation there, and ids
    repeat when the profiler starts again.
    """
    kernels = _kernels(trace, base)
    wanted = kernels["correlation"].drop_nulls().unique().sort().to_numpy()
    calls = launches(trace, wanted)
    calls = calls.with_columns(_layers(trace, calls["module"], calls["thread"], calls["launch_ns"]))
    kernels = kernels.join(
        calls.with_columns(pl.col("launch_ns") + base).drop("thread"),
        on="correlation",
        how="left",
        maintain_order="left",
    )
    lost = kernels.filter(pl.col("op").is_null())["external"].drop_nulls().unique().sort()
    if len(lost):
        kernels = kernels.join(
            named_once(trace, lost.to_numpy()),
            on="external",
            how="left",
            maintain_order="left",
            suffix="_by_id",
        )
        launched = pl.col("op").is_not_null()
        kernels = kernels.with_columns(
            pl.when(launched).then(name).otherwise(f"{name}_by_id").alias(name)
            for name in ("shapes", "types", "module", "op")
        ).drop("op_by_id", "shapes_by_id", "types_by_id", "module_by_id")
    moment = kernels["launch_ns"].fill_null(kernels["start_ns"])
    step = step_at(moment, steps).set(launched_earlier(kernels), None)
    return kernels.drop("external").with_columns(step.alias("step"))


def _layers(trace: Trace, written: pl.Series, threads: pl.Series, moments: pl.Series) -> pl.Series:
    """Numbers of the layers of ops: those written beside them, else by the calls around them."""
    layers = layers_of(trace).of(threads, moments)
    known = layers.drop_nulls().unique()
    numbers = trace.texts.numbers("module", known.to_list())
    called = layers.replace_strict(known, numbers, default=None, return_dtype=pl.UInt32)
    return written.zip_with(written.is_not_null(), called).alias("module")


def _family() -> pl.Expr:
    """The name of a kernel without an op."""
    family = pl.lit("kernel")
    for pattern, name in reversed(_FAMILIES):
        family = (
            pl.when(pl.col("kernel").str.contains(f"(?i){pattern}"))
            .then(pl.lit(name))
            .otherwise(family)
        )
    return family


def _types(texts: Texts, kernels: pl.DataFrame) -> pl.DataFrame:
    """The type of each kernel, from its own name and its op's; computed once per pair."""
    pairs = kernels.select("name", "op").unique()
    function = pl.col("kernel").str.extract(_FUNCTION)
    collective = function.str.contains(_COLLECTIVE) & ~function.str.contains(_WITHIN)
    kind = pl.coalesce(pl.col("parent").str.strip_prefix("aten::"), _family())
    typed = pairs.select(
        "name", "op", texts.of(pairs["name"]).alias("kernel"), texts.of(pairs["op"]).alias("parent")
    ).with_columns(
        pl.when(pl.col("kernel").str.contains("^nccl"))
        .then(pl.col("kernel").str.extract(r"^(\w+?)(?:\(|$)"))
        .otherwise(kind)
        .alias("type"),
        collective.fill_null(False).alias("collective"),
    )
    return typed.select("name", "op", "collective", texts.numbers("type", typed["type"].to_list()))


def _named(texts: Texts, kernels: pl.DataFrame) -> pl.DataFrame:
    """The columns of the op table. Texts replace their numbers only at the end."""
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


def _decoded(texts: Texts, ops: pl.DataFrame, more: tuple[str, ...]) -> pl.DataFrame:
    """Ops in order of time with texts, and their names.

    `mm_0`, `mm_1`: the type with its place in the step, so that steps and runs line up.
    """
    place = pl.int_range(pl.len()).over("step", "type").cast(pl.String)
    ops = ops.with_columns(place.alias("name"))
    for name in ("type", "input_shapes", "input_types", "module", *more):
        ops = ops.with_columns(texts.of(ops[name]))
    return ops.with_columns((pl.col("type") + "_" + pl.col("name")).alias("name"))


def _cpu_ops(trace: Trace, steps: pl.DataFrame, base: int) -> pl.DataFrame:
    """One row per op with its own time, and collectives of gloo."""
    # Where both begin at the same time, ops come first, in the order of the file. Two sorts by one
    # column take half of the memory of one by two.
    ops = pl.concat(_cpu_rows(trace)).sort("row").drop("row")
    ops = ops.sort("start_ns", maintain_order=True)
    ops = ops.with_columns(_layers(trace, ops["module"], ops["thread"], ops["start_ns"]))
    ops = ops.with_columns(pl.col("start_ns") + base)
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
    """Ops and collectives with their index in the table of calls, unordered."""
    columns = ("thread", "name", "start_ns", "own_ns", "shapes", "types", "module", "external")
    compute, communication = trace.texts.number("CPU"), trace.texts.number(COMMUNICATION)
    annotation = trace.texts.number("user_annotation")
    collectives = trace.called("^(gloo|mpi|ccl):").filter(pl.col("category") == annotation)
    yield collectives.select(
        (pl.int_range(pl.len()) + len(trace.calls)).alias("row"),
        pl.lit(communication, pl.UInt32).alias("core"),
        *(pl.col("duration_ns").alias(name) if name == "own_ns" else name for name in columns),
    )
    for ops in own_times(trace):
        yield ops.select(
            pl.col("row").cast(pl.Int64), pl.lit(compute, pl.UInt32).alias("core"), *columns
        )


def _cpu_types(texts: Texts, names: pl.Series) -> pl.Series:
    """Names of ops without `aten::`; a collective gets its own name."""
    known = names.unique()
    types = texts.numbers("type", texts.of(known).str.strip_prefix("aten::").to_list())
    return names.replace_strict(known, types, return_dtype=pl.UInt32).alias("type")


def has_category(trace: Trace, categories: Iterable[str]) -> bool:
    """Whether any call on the host belongs to one of some categories."""
    wanted = [trace.texts.number(category) for category in categories]
    return any(rows["category"].is_in(wanted).any() for rows in trace.calls.frames("category"))


def _chip(devices: Any) -> str:
    """The name of the accelerator, if the trace has its properties."""
    first = devices[0] if isinstance(devices, list) and devices else None
    name = first.get("name") if isinstance(first, dict) else None
    return re.sub(r"\s+", " ", name)[:80] if isinstance(name, str) else ""
