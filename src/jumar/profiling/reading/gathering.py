"""Parts of files combined: one source per table, one rank per capture, no row twice."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import polars as pl

from jumar.profiling.profile import (
    COLLECTIVES_SCHEMA,
    HOST_SCHEMA,
    LINKS_SCHEMA,
    OPS_SCHEMA,
    STEPS_SCHEMA,
    Kind,
    Missing,
    Profile,
    empty,
)
from jumar.profiling.reading.clocks import brought_beside, lag_of, on_one_clock
from jumar.profiling.reading.mindspore.timeline import since_start
from jumar.profiling.reading.part import Part
from jumar.profiling.reading.traces.kineto import NOT_READ
from jumar.profiling.reading.traces.nesting import launched_earlier, step_at

_OPS_FROM: Final = (
    "kernel_details",
    "op_summary",
    "sqlite",
    "kineto",
    "trace",
    "mindspore_timeline",
    "mindspore_op_detail",
    "task_time",
)
"""Kinds that have op rows, the one with most columns first: they describe the same ops."""

_HOST_FROM: Final = ("sqlite", "kineto", "trace")
_STEPS_FROM: Final = (
    "step_trace_time",
    "cluster_step_trace_time",
    "sqlite",
    "step_trace",
    "kineto",
    "trace",
    "mindspore_step_trace",
)
_SAME_OP: Final = ("device", "stream", "task", "name", "start_ns", "duration_ns")
_SAME_COLLECTIVE: Final = ("rank", "step", "name", "group")
_TABLES: Final[Mapping[str, Mapping[str, pl.DataType]]] = {
    "ops": OPS_SCHEMA,
    "steps": STEPS_SCHEMA,
    "host": HOST_SCHEMA,
    "collectives": COLLECTIVES_SCHEMA,
    "links": LINKS_SCHEMA,
}


def gathered(source: str, captures: Mapping[str, Sequence[Part]]) -> Profile:
    """One profile of several captures, each of them a rank.

    Args:
        source: The path as the user named it.
        captures: Parts by capture.
    """
    tables: dict[str, list[pl.DataFrame]] = {name: [] for name in _TABLES}
    statistics: dict[str, list[pl.DataFrame]] = {}
    everything = [part for parts in captures.values() for part in parts]
    unclear: list[Missing] = []
    for rank, parts in _ranked(captures):
        known, gaps = _tables(parts)
        unclear += gaps
        for name, table in known.items():
            tables[name].append(_with_rank(table, rank))
        for name, table in _statistics(parts):
            statistics.setdefault(name, []).append(_with_rank(table, rank))
    return Profile(
        source=source,
        producer=_producer(everything),
        kind=_kind(everything),
        **{name: _joined(frames, _TABLES[name]) for name, frames in tables.items()},
        statistics={
            name: pl.concat(frames, how="diagonal_relaxed") for name, frames in statistics.items()
        },
        files=tuple((part.file, part.kind) for part in everything),
        missing=tuple(
            dict.fromkeys(
                [gap for parts in captures.values() for part in parts for gap in _gaps(part, parts)]
                + unclear
            )
        ),
        chip=next((part.chip for part in everything if part.chip), ""),
    )


def _gaps(part: Part, parts: Sequence[Part]) -> Sequence[Missing]:
    """What a file lacks, unless its capture has a better one."""
    if part.kind == "kineto" and any(other.producer == "jumar" for other in parts):
        # Our tables next to the trace contain its memory events.
        return [gap for gap in part.missing if not gap.what.startswith(NOT_READ)]
    timeline = any(other.kind == "mindspore_timeline" for other in parts)
    return () if timeline and part.kind == "mindspore_op_detail" else part.missing


_SETTINGS: Final = "msprof_info"


def _ranked(captures: Mapping[str, Sequence[Part]]) -> list[tuple[int, Sequence[Part]]]:
    """Each capture with its rank: the one it names, its device, else the next free one."""
    known: dict[str, int] = {}
    for name, parts in captures.items():
        named = [part.rank for part in parts if part.rank is not None]
        known[name] = named[0] if named else _device(parts)
    taken: set[int] = set()
    result: list[tuple[int, Sequence[Part]]] = []
    for name, parts in captures.items():
        rank = known[name]
        if rank >= 0 and all(part.kind == _SETTINGS for part in parts):
            # msprof's tables of a device may lie in another folder than its settings.
            result.append((rank, parts))
            continue
        if rank < 0 or rank in taken:
            rank = next(free for free in range(len(captures) + len(taken) + 1) if free not in taken)
        taken.add(rank)
        result.append((rank, parts))
    return sorted(result, key=lambda pair: pair[0])


def _device(parts: Iterable[Part]) -> int:
    """The one device of a capture's ops or settings, or -1."""
    devices: set[int] = set()
    for part in parts:
        for table in (part.ops, part.steps, part.statistics.get("device")):
            if table is not None and "device" in table.columns:
                devices.update(int(device) for device in table["device"].drop_nulls().unique())
    return devices.pop() if len(devices) == 1 else -1


def _with_rank(table: pl.DataFrame, rank: int) -> pl.DataFrame:
    """The table with its rank, where its rows do not name their own.

    One capture of several devices, as msprof makes them, has one rank per device.
    """
    if "rank" in table.columns:
        return table.with_columns(pl.col("rank").cast(pl.Int32).fill_null(rank))
    if "device" in table.columns and table["device"].drop_nulls().n_unique() > 1:
        device = pl.col("device")
        if table["device"].dtype == pl.String:
            # Tables of memory name it as `NPU:0`.
            device = device.str.extract(r"(\d+)\s*$")
        return table.with_columns(device.cast(pl.Int32, strict=False).fill_null(rank).alias("rank"))
    return table.with_columns(pl.lit(rank, pl.Int32).alias("rank"))


def _tables(parts: Sequence[Part]) -> tuple[dict[str, pl.DataFrame], list[Missing]]:
    """The tables of one capture, and contradictions among them."""
    result: dict[str, pl.DataFrame] = {}
    unclear: list[Missing] = []
    ops = _best([(part.kind, part.ops) for part in parts], _OPS_FROM)
    lag, mixed = 0, list[Missing]()
    if ops:
        result["ops"] = since_start(_once(ops), parts)
        mixed = _mixed(parts)
    steps = _best([(_kind_of_steps(part), part.steps) for part in parts], _STEPS_FROM)
    if steps:
        result["steps"] = _bounded(
            pl.concat(steps, how="diagonal_relaxed").unique(maintain_order=True), parts
        )
    if "ops" in result and "steps" in result:
        marked = result["steps"]
        result["steps"], unclear = on_one_clock(result["ops"], marked, parts)
        lag = lag_of(marked, result["steps"])
    if "ops" in result:
        result["ops"] = _detailed(_launched(result["ops"], parts, lag), parts)
    if "ops" in result and "steps" in result:
        result["ops"] = _stepped(result["ops"], result["steps"])
    host = _best([(part.kind, part.host) for part in parts], _HOST_FROM)
    if host:
        result["host"] = (
            pl.concat(host, how="diagonal_relaxed").unique(maintain_order=True)
            if len(host) > 1
            else host[0]
        )
    # A table missing from a broken database has no columns, and one has no times of transfers.
    collectives = [
        part.collectives
        for part in sorted(parts, key=lambda part: part.kind == "sqlite")
        if part.collectives is not None and part.collectives.height
    ]
    if collectives:
        # A cluster's file has the same collective once per rank; MindSpore tells its start and its
        # transfer in two files.
        rows = pl.concat(collectives, how="diagonal_relaxed")
        same = [name for name in _SAME_COLLECTIVE if name in rows.columns]
        known = pl.all().drop_nulls().first()
        result["collectives"] = rows.group_by(same, maintain_order=True).agg(known)
    for name in ("host", "collectives"):
        if name in result and "ops" in result:
            result[name] = brought_beside(result[name], result["ops"], lag)
    links = [part.links for part in parts if part.links is not None and part.kind != "sqlite"]
    links = links or [part.links for part in parts if part.links is not None]
    if links:
        result["links"] = pl.concat(links, how="diagonal_relaxed").unique(maintain_order=True)
    return result, [*mixed, *unclear]


_TABLES_OF_OPS: Final = ("kernel_details", "op_summary")
_AT_ONCE: Final = 0.05
"""Share of a table's ops that begin while one of another table runs, at least, if the two are of
different devices. Slices of one device's time follow each other."""
_COMPARED: Final = 20
"""Tables that are compared with each other; a capture of many iterations has hundreds."""


def _mixed(parts: Sequence[Part]) -> list[Missing]:
    """Tables of ops in one capture that cannot be of one device, by the times of their ops."""
    tables = [
        (part.file, part.ops)
        for part in parts
        if part.kind in _TABLES_OF_OPS
        and part.ops is not None
        and "rank" not in part.ops.columns
        and part.ops.height
    ][:_COMPARED]
    found: list[Missing] = []
    for place, (file, ops) in enumerate(tables):
        first = next((name for name, other in tables[:place] if _at_once(other, ops)), None)
        if first is not None:
            what = (
                f"whose it is: its ops run while those of {first} do, as on another device; put "
                "each rank's files in a folder of its own"
            )
            found.append(Missing(file=file, what=what, needed_for=("ranks", "gate")))
    return found


def _at_once(one: pl.DataFrame, other: pl.DataFrame) -> bool:
    """Whether many ops of a table begin while another table's ops run."""
    same = [name for name in _SAME_OP if name in one.columns and name in other.columns]
    if not {"start_ns", "duration_ns"} <= set(same):
        return False
    rest = other.join(one, on=same, how="anti", nulls_equal=True)
    if "device" in same:
        rest = rest.join(one.select("device").unique(), on="device", how="semi", nulls_equal=True)
    times = [
        table.select("start_ns", end_ns=pl.col("start_ns") + pl.col("duration_ns"))
        .drop_nulls()
        .sort("start_ns")
        for table in (one, rest)
    ]
    running = times[0].with_columns(pl.col("end_ns").cum_max().alias("until_ns"))
    begun = times[1].join_asof(running, on="start_ns", strategy="backward")
    inside = int((begun["until_ns"] > begun["start_ns"]).sum())
    return inside > 1 and inside >= _AT_ONCE * other.height


def _stepped(ops: pl.DataFrame, steps: pl.DataFrame) -> pl.DataFrame:
    """The ops with their steps, by the marks of other files if their own file has none."""
    bounds = {"step", "start_ns", "end_ns"}
    if not bounds <= set(steps.columns) or "start_ns" not in ops.columns:
        return ops
    known = ops["step"] if "step" in ops.columns else pl.Series("step", [None] * ops.height)
    marks = steps.drop_nulls(list(bounds))
    if not known.is_null().any() or not marks.height:
        return ops
    moment = ops["start_ns"]
    if "launch_ns" in ops.columns:
        moment = ops["launch_ns"].zip_with(ops["launch_ns"].is_not_null(), moment)
    step = step_at(moment, marks)
    if {"device", "stream", "launch_ns"} <= set(ops.columns):
        step = step.set(launched_earlier(ops), None)
    return ops.with_columns(known.cast(pl.Int64).zip_with(known.is_not_null(), step).alias("step"))


def _kind_of_steps(part: Part) -> str:
    """A database may hold the times of steps, or only their marks."""
    timed = part.steps is not None and "computing_ns" in part.steps.columns
    return "step_trace_time" if timed and part.kind == "sqlite" else part.kind


def _best(
    candidates: Iterable[tuple[str, pl.DataFrame | None]], order: Sequence[str]
) -> list[pl.DataFrame]:
    """The tables of the first kind in `order` that has any rows."""
    by_kind: dict[str, list[pl.DataFrame]] = {}
    for kind, table in candidates:
        if table is not None and table.height:
            by_kind.setdefault(kind, []).append(table)
    return next((by_kind[kind] for kind in order if kind in by_kind), [])


def _once(tables: Sequence[pl.DataFrame]) -> pl.DataFrame:
    """Op rows of all slices, each once: files of one iteration repeat those of the others."""
    if len(tables) == 1:
        return tables[0]
    rows = pl.concat(tables, how="diagonal_relaxed")
    return rows.unique([name for name in _SAME_OP if name in rows.columns], maintain_order=True)


def _detailed(ops: pl.DataFrame, parts: Sequence[Part]) -> pl.DataFrame:
    """The MindSpore ops with their shapes and types, which another file has by name."""
    facts = [part.statistics["framework"] for part in parts if "framework" in part.statistics]
    if not facts:
        return ops
    lacking = [name for name in facts[0].columns if name not in ops.columns]
    return ops.join(
        facts[0].select("name", *lacking).unique("name", keep="first"),
        on="name",
        how="left",
        maintain_order="left",
    )


def _launched(ops: pl.DataFrame, parts: Sequence[Part], lag: int = 0) -> pl.DataFrame:
    """The ops with the calls that launched them and their layers, from a trace beside the table.

    Both round their times, so an op is found within 2 ns of its start, after the trace's times were
    moved by the lag of its clock.
    """
    traced = [
        part.ops for part in parts if part.kind in ("trace", "sqlite") and part.ops is not None
    ]
    if not traced or "launch_ns" in ops.columns or "start_ns" not in ops.columns:
        return ops
    layer = () if "module" in ops.columns else ("^module$",)
    calls = (
        pl.concat(
            [table.select("start_ns", "correlation", "launch_ns", *layer) for table in traced],
            how="diagonal",
        )
        .with_columns(pl.col("start_ns", "launch_ns") - lag)
        .filter(pl.col("launch_ns").is_not_null() | pl.col("correlation").is_not_null())
        .sort("start_ns", maintain_order=True)
        .unique("start_ns", keep="first", maintain_order=True)
    )
    kept = ops.drop([name for name in ("correlation",) if name in ops.columns])
    known = kept.filter(pl.col("start_ns").is_not_null()).sort("start_ns", maintain_order=True)
    joined = known.join_asof(calls, on="start_ns", strategy="nearest", tolerance=2)
    return pl.concat([joined, kept.filter(pl.col("start_ns").is_null())], how="diagonal_relaxed")


def _bounded(steps: pl.DataFrame, parts: Sequence[Part]) -> pl.DataFrame:
    """The steps with their bounds, from the marks of a trace next to the table."""
    if "start_ns" in steps.columns:
        return steps
    marks = [
        part.steps.select("step", "start_ns", "end_ns")
        for part in parts
        if part.steps is not None and {"step", "start_ns", "end_ns"} <= set(part.steps.columns)
    ]
    if not marks:
        return steps
    known = pl.concat(marks).unique("step", keep="first")
    return steps.join(known, on="step", how="left", maintain_order="left")


def _statistics(parts: Sequence[Part]) -> list[tuple[str, pl.DataFrame]]:
    """Tables that are only displayed; the same table of several files merged."""
    by_name: dict[str, list[pl.DataFrame]] = {}
    for part in parts:
        for name, table in part.statistics.items():
            by_name.setdefault(name, []).append(table)
    return [
        (name, pl.concat(tables, how="diagonal_relaxed").unique(maintain_order=True))
        if len(tables) > 1
        else (name, tables[0])
        for name, tables in by_name.items()
    ]


def _joined(tables: Sequence[pl.DataFrame], schema: Mapping[str, pl.DataType]) -> pl.DataFrame:
    """All ranks in one table with the columns of the contract first, in its types."""
    if not tables:
        return empty(schema)
    rows = pl.concat(tables, how="diagonal_relaxed") if len(tables) > 1 else tables[0]
    if "type" in schema and "module" not in rows.columns and "name" in rows.columns:
        # Graph mode names an op by its scopes: `resnet/conv1/Conv2D`.
        rows = rows.with_columns(pl.col("name").str.extract(r"^(.+)/[^/]+$").alias("module"))
    named = [
        pl.col(name).cast(kind, strict=False)
        if name in rows.columns
        else pl.lit(None, kind).alias(name)
        for name, kind in schema.items()
    ]
    counters = [name for name in rows.columns if name not in schema] if "type" in schema else []
    return rows.select(*named, *counters)


def _kind(parts: Sequence[Part]) -> Kind:
    """Where the ops ran, by the parts that have some."""
    for part in parts:
        if part.device is not None:
            return part.device
    return "npu"


def _producer(parts: Sequence[Part]) -> str:
    """The producer; the level of torch_npu if its settings or its columns reveal it."""
    names = [part.producer for part in parts if part.producer]
    if "jumar" in names:
        # Next to our tables is the trace they were made from.
        return "jumar"
    # Of `msprof`, `torch_npu` and `torch_npu level 1` the longest is the most specific.
    return max(names, key=len, default="unknown")
