"""Combines the contents of files: one source per table, one rank per capture, no duplicates."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import polars as pl

from jumar.profiling.profile import (
    COLLECTIVES_SCHEMA,
    HOST_SCHEMA,
    LINKS_SCHEMA,
    OPS_SCHEMA,
    STEPS_SCHEMA,
    DeviceKind,
    Missing,
    Profile,
    empty,
)
from jumar.profiling.reading.clocks import clock_lag, on_one_clock, on_ops_clock
from jumar.profiling.reading.file_content import FileContent
from jumar.profiling.reading.mindspore.timeline import on_device_clock
from jumar.profiling.reading.overlap import SAME_OP, notes_on_overlap
from jumar.profiling.reading.traces.kineto import NOT_READ
from jumar.profiling.reading.traces.nesting import launched_before_recording, step_at

_OP_SOURCES: Final = (
    "kernel_details",
    "op_summary",
    "sqlite",
    "kineto",
    "trace",
    "mindspore_timeline",
    "mindspore_op_detail",
    "task_time",
)
"""Kinds of files with op rows, those with the most columns first; all describe the same ops."""

_HOST_SOURCES: Final = ("sqlite", "kineto", "trace")
_STEP_SOURCES: Final = (
    "step_trace_time",
    "cluster_step_trace_time",
    "sqlite",
    "step_trace",
    "kineto",
    "trace",
    "mindspore_step_trace",
)
_SAME_COLLECTIVE: Final = ("rank", "step", "name", "group")
_TABLES: Final[Mapping[str, Mapping[str, pl.DataType]]] = {
    "ops": OPS_SCHEMA,
    "steps": STEPS_SCHEMA,
    "host": HOST_SCHEMA,
    "collectives": COLLECTIVES_SCHEMA,
    "links": LINKS_SCHEMA,
}


def combined(source: str, captures: Mapping[str, Sequence[FileContent]]) -> Profile:
    """Combine several captures, one per rank, into a profile.

    Args:
        source: The path as the user wrote it.
        captures: The contents of its files, by capture.
    """
    tables: dict[str, list[pl.DataFrame]] = {name: [] for name in _TABLES}
    statistics: dict[str, list[pl.DataFrame]] = {}
    all_contents = [content for contents in captures.values() for content in contents]
    notes: list[Missing] = []
    for rank, contents in _with_ranks(captures):
        capture_tables, capture_notes = _capture_tables(contents)
        notes += capture_notes
        for name, table in capture_tables.items():
            tables[name].append(_with_rank(table, rank))
        for name, table in _statistics(contents):
            statistics.setdefault(name, []).append(_with_rank(table, rank))
    return Profile(
        source=source,
        producer=_producer(all_contents),
        kind=_device_kind(all_contents),
        **{name: _in_schema(frames, _TABLES[name]) for name, frames in tables.items()},
        statistics={
            name: pl.concat(frames, how="diagonal_relaxed") for name, frames in statistics.items()
        },
        files=tuple((content.file, content.kind) for content in all_contents),
        missing=tuple(
            dict.fromkeys(
                [
                    gap
                    for contents in captures.values()
                    for content in contents
                    for gap in _gaps(content, contents)
                ]
                + notes
            )
        ),
        chip=next((content.chip for content in all_contents if content.chip), ""),
    )


def _gaps(content: FileContent, contents: Sequence[FileContent]) -> Sequence[Missing]:
    """The data that a file lacks, unless another file of its capture provides it."""
    if content.kind == "kineto" and any(other.producer == "jumar" for other in contents):
        # Our own tables next to the trace contain its memory events.
        return [gap for gap in content.missing if not gap.what.startswith(NOT_READ)]
    timeline = any(other.kind == "mindspore_timeline" for other in contents)
    return () if timeline and content.kind == "mindspore_op_detail" else content.missing


_DEVICE_INFO: Final = "msprof_info"


def _with_ranks(
    captures: Mapping[str, Sequence[FileContent]],
) -> list[tuple[int, Sequence[FileContent]]]:
    """Each capture with its rank: as recorded, else its device, else the next unused number."""
    ranks: dict[str, int] = {}
    for name, contents in captures.items():
        recorded_ranks = [content.rank for content in contents if content.rank is not None]
        ranks[name] = recorded_ranks[0] if recorded_ranks else _only_device(contents)
    used: set[int] = set()
    result: list[tuple[int, Sequence[FileContent]]] = []
    for name, contents in captures.items():
        rank = ranks[name]
        if rank >= 0 and all(content.kind == _DEVICE_INFO for content in contents):
            # msprof may write a device's tables and its info.json into different folders.
            result.append((rank, contents))
            continue
        if rank < 0 or rank in used:
            rank = next(
                unused for unused in range(len(captures) + len(used) + 1) if unused not in used
            )
        used.add(rank)
        result.append((rank, contents))
    return sorted(result, key=lambda pair: pair[0])


def _only_device(contents: Iterable[FileContent]) -> int:
    """The device of a capture if it has only one, else -1."""
    devices: set[int] = set()
    for content in contents:
        for table in (content.ops, content.steps, content.statistics.get("device")):
            if table is not None and "device" in table.columns:
                devices.update(int(device) for device in table["device"].drop_nulls().unique())
    return devices.pop() if len(devices) == 1 else -1


def _with_rank(table: pl.DataFrame, rank: int) -> pl.DataFrame:
    """The table with a rank in each row; rows that already have one keep it.

    Captures of msprof may cover several devices; each device is a rank.
    """
    if "rank" in table.columns:
        return table.with_columns(pl.col("rank").cast(pl.Int32).fill_null(rank))
    if "device" in table.columns and table["device"].drop_nulls().n_unique() > 1:
        device = pl.col("device")
        if table["device"].dtype == pl.String:
            # Memory tables write `NPU:0`.
            device = device.str.extract(r"(\d+)\s*$")
        return table.with_columns(device.cast(pl.Int32, strict=False).fill_null(rank).alias("rank"))
    return table.with_columns(pl.lit(rank, pl.Int32).alias("rank"))


def _capture_tables(
    contents: Sequence[FileContent],
) -> tuple[dict[str, pl.DataFrame], list[Missing]]:
    """The tables of one capture, and notes on contradictions among them."""
    result: dict[str, pl.DataFrame] = {}
    clock_notes: list[Missing] = []
    ops = _best_source([(content.kind, content.ops) for content in contents], _OP_SOURCES)
    lag_ns = 0
    if ops:
        result["ops"] = on_device_clock(_without_duplicates(ops), contents)
    steps = _best_source(
        [(_step_source(content), content.steps) for content in contents], _STEP_SOURCES
    )
    if steps:
        result["steps"] = _with_bounds(
            pl.concat(steps, how="diagonal_relaxed").unique(maintain_order=True), contents
        )
    if "ops" in result and "steps" in result:
        marked_steps = result["steps"]
        result["steps"], clock_notes = on_one_clock(result["ops"], marked_steps, contents)
        lag_ns = clock_lag(marked_steps, result["steps"])
    if "ops" in result:
        result["ops"] = _with_shapes(_with_launches(result["ops"], contents, lag_ns), contents)
    if "ops" in result and "steps" in result:
        result["ops"] = _with_steps(result["ops"], result["steps"])
    host = _best_source([(content.kind, content.host) for content in contents], _HOST_SOURCES)
    if host:
        result["host"] = (
            pl.concat(host, how="diagonal_relaxed").unique(maintain_order=True)
            if len(host) > 1
            else host[0]
        )
    # Databases come last, since they lack transfer times; a broken one has a table without columns.
    collectives = [
        content.collectives
        for content in sorted(contents, key=lambda content: content.kind == "sqlite")
        if content.collectives is not None and content.collectives.height
    ]
    if collectives:
        # A cluster's file has the same collective once per rank; MindSpore splits start and
        # transfer time over two files.
        rows = pl.concat(collectives, how="diagonal_relaxed")
        key = [name for name in _SAME_COLLECTIVE if name in rows.columns]
        first_value = pl.all().drop_nulls().first()
        result["collectives"] = rows.group_by(key, maintain_order=True).agg(first_value)
    for name in ("host", "collectives"):
        if name in result and "ops" in result:
            result[name] = on_ops_clock(result[name], result["ops"], lag_ns)
    links = [
        content.links
        for content in contents
        if content.links is not None and content.kind != "sqlite"
    ]
    links = links or [content.links for content in contents if content.links is not None]
    if links:
        result["links"] = pl.concat(links, how="diagonal_relaxed").unique(maintain_order=True)
    return result, [*notes_on_overlap(contents), *clock_notes]


def _with_steps(ops: pl.DataFrame, steps: pl.DataFrame) -> pl.DataFrame:
    """The ops with their steps, from the marks of other files if the op table has none."""
    bounds = {"step", "start_ns", "end_ns"}
    if not bounds <= set(steps.columns) or "start_ns" not in ops.columns:
        return ops
    recorded = ops["step"] if "step" in ops.columns else pl.Series("step", [None] * ops.height)
    marks = steps.drop_nulls(list(bounds))
    if not recorded.is_null().any() or not marks.height:
        return ops
    times = ops["start_ns"]
    if "launch_ns" in ops.columns:
        times = ops["launch_ns"].zip_with(ops["launch_ns"].is_not_null(), times)
    step = step_at(times, marks)
    if {"device", "stream", "launch_ns"} <= set(ops.columns):
        step = step.set(launched_before_recording(ops), None)
    return ops.with_columns(
        recorded.cast(pl.Int64).zip_with(recorded.is_not_null(), step).alias("step")
    )


def _step_source(content: FileContent) -> str:
    """The kind of a file as a source of steps: a database may have step times, or only marks."""
    timed = content.steps is not None and "computing_ns" in content.steps.columns
    return "step_trace_time" if timed and content.kind == "sqlite" else content.kind


def _best_source(
    candidates: Iterable[tuple[str, pl.DataFrame | None]], order: Sequence[str]
) -> list[pl.DataFrame]:
    """The tables of the first kind in `order` that has rows."""
    by_kind: dict[str, list[pl.DataFrame]] = {}
    for kind, table in candidates:
        if table is not None and table.height:
            by_kind.setdefault(kind, []).append(table)
    return next((by_kind[kind] for kind in order if kind in by_kind), [])


def _without_duplicates(tables: Sequence[pl.DataFrame]) -> pl.DataFrame:
    """The op rows of all tables without duplicates, since files of iterations share rows."""
    if len(tables) == 1:
        return tables[0]
    rows = pl.concat(tables, how="diagonal_relaxed")
    return rows.unique([name for name in SAME_OP if name in rows.columns], maintain_order=True)


def _with_shapes(ops: pl.DataFrame, contents: Sequence[FileContent]) -> pl.DataFrame:
    """MindSpore ops with shapes and types from another file, matched by op name."""
    frameworks = [
        content.statistics["framework"] for content in contents if "framework" in content.statistics
    ]
    if not frameworks:
        return ops
    missing_columns = [name for name in frameworks[0].columns if name not in ops.columns]
    return ops.join(
        frameworks[0].select("name", *missing_columns).unique("name", keep="first"),
        on="name",
        how="left",
        maintain_order="left",
    )


def _with_launches(
    ops: pl.DataFrame, contents: Sequence[FileContent], lag_ns: int = 0
) -> pl.DataFrame:
    """The ops with launching calls and layers from a trace next to the table.

    The trace's times are shifted by the lag of its clock. Table and trace round independently, so
    ops are matched by start time within 2 ns.
    """
    trace_ops = [
        content.ops
        for content in contents
        if content.kind in ("trace", "sqlite") and content.ops is not None
    ]
    if not trace_ops or "launch_ns" in ops.columns or "start_ns" not in ops.columns:
        return ops
    layer = () if "module" in ops.columns else ("^module$",)
    calls = (
        pl.concat(
            [table.select("start_ns", "correlation", "launch_ns", *layer) for table in trace_ops],
            how="diagonal",
        )
        .with_columns(pl.col("start_ns", "launch_ns") - lag_ns)
        .filter(pl.col("launch_ns").is_not_null() | pl.col("correlation").is_not_null())
        .sort("start_ns", maintain_order=True)
        .unique("start_ns", keep="first", maintain_order=True)
    )
    bare_ops = ops.drop("correlation", strict=False)
    started = bare_ops.filter(pl.col("start_ns").is_not_null()).sort(
        "start_ns", maintain_order=True
    )
    joined = started.join_asof(calls, on="start_ns", strategy="nearest", tolerance=2)
    return pl.concat(
        [joined, bare_ops.filter(pl.col("start_ns").is_null())], how="diagonal_relaxed"
    )


def _with_bounds(steps: pl.DataFrame, contents: Sequence[FileContent]) -> pl.DataFrame:
    """The steps with start and end, from the marks of a trace next to the table."""
    if "start_ns" in steps.columns:
        return steps
    marks = [
        content.steps.select("step", "start_ns", "end_ns")
        for content in contents
        if content.steps is not None
        and {"step", "start_ns", "end_ns"} <= set(content.steps.columns)
    ]
    if not marks:
        return steps
    bounds = pl.concat(marks).unique("step", keep="first")
    return steps.join(bounds, on="step", how="left", maintain_order="left")


def _statistics(contents: Sequence[FileContent]) -> list[tuple[str, pl.DataFrame]]:
    """Tables that are only displayed; the same table from several files is merged."""
    by_name: dict[str, list[pl.DataFrame]] = {}
    for content in contents:
        for name, table in content.statistics.items():
            by_name.setdefault(name, []).append(table)
    return [
        (name, pl.concat(tables, how="diagonal_relaxed").unique(maintain_order=True))
        if len(tables) > 1
        else (name, tables[0])
        for name, tables in by_name.items()
    ]


def _in_schema(tables: Sequence[pl.DataFrame], schema: Mapping[str, pl.DataType]) -> pl.DataFrame:
    """The tables of all ranks as one, with the schema's columns and types first."""
    if not tables:
        return empty(schema)
    table = pl.concat(tables, how="diagonal_relaxed") if len(tables) > 1 else tables[0]
    if "type" in schema and "module" not in table.columns and "name" in table.columns:
        # In graph mode, op names contain their scopes: `resnet/conv1/Conv2D`.
        table = table.with_columns(pl.col("name").str.extract(r"^(.+)/[^/]+$").alias("module"))
    schema_columns = [
        pl.col(name).cast(kind, strict=False)
        if name in table.columns
        else pl.lit(None, kind).alias(name)
        for name, kind in schema.items()
    ]
    counters = [name for name in table.columns if name not in schema] if "type" in schema else []
    return table.select(*schema_columns, *counters)


def _device_kind(contents: Sequence[FileContent]) -> DeviceKind:
    """The kind of device the ops ran on."""
    for content in contents:
        if content.device is not None:
            return content.device
    return "npu"


def _producer(contents: Sequence[FileContent]) -> str:
    """The tool that made the profile, with torch_npu's profiler level if known."""
    producers = [content.producer for content in contents if content.producer]
    if "jumar" in producers:
        # Our own tables are next to the trace from which they were made.
        return "jumar"
    # The longest is the most specific: `msprof`, `torch_npu`, `torch_npu level 1`.
    return max(producers, key=len, default="unknown")
