"""Tables other than op rows: normalised names, times in nanoseconds, sizes in bytes.

`Total Time(us)` becomes `total_time_ns`, `Size(KB)` `size_bytes`, `Ratio(%)` `ratio_percent`,
`OP Type` `op_type`; the unit is read from each header, since one table has had three of them.
"""

import re
from pathlib import Path
from typing import Final

import polars as pl

from jumar.profiling.profile import STEPS_SCHEMA
from jumar.profiling.reading.exact import DIGITS, clean, nanoseconds
from jumar.profiling.reading.files import headers
from jumar.profiling.reading.part import Part
from jumar.profiling.reading.tables.csv_text import TextTable, read_text

_SIZES: Final = {"b": 1, "byte": 1, "bytes": 1, "kb": 1024, "mb": 1 << 20, "gb": 1 << 30}
_WHOLE: Final = {
    "count",
    "device_id",
    "stream_id",
    "task_id",
    "model_id",
    "iteration_id",
    "queue_size",
    "serial_number",
    "execution_frequency",
    "index",
}
_OR_WORDS: Final = {"device_id", "index"}
"""Numbers in whose place a word is not a fault: `host`, or the ranks `(0, 1)` of a stage."""
_REAL: Final = {"hit_rate", "victim_rate", "variance", "ratio"}
_BARE_TIMES: Final = {
    "aicpu": (
        "ms",
        {"compute_time", "memcpy_time", "task_time", "dispatch_time", "total_time"},
    ),
    "op_statistic": ("us", {"total_time", "min_time", "avg_time", "max_time"}),
    "communication_statistic": ("us", {"total_time", "min_time", "avg_time", "max_time"}),
    "api_statistic": ("us", {"time", "avg", "min", "max"}),
    "task_time": ("us", {"task_time", "task_start", "task_stop"}),
    "task_time_2022": ("us", {"avg", "min", "max", "waiting", "running", "pending"}),
    "step_trace": (
        "us",
        {
            "fp_start",
            "bp_end",
            "iteration_end",
            "iteration_time",
            "fp_to_bp_time",
            "iteration_refresh",
            "data_aug_bound",
        },
    ),
    "dp": ("us", {"timestamp"}),
    "aicpu_mi": ("us", {"start", "end"}),
}
"""Times without a unit in their header, and what they are in; aicpu of CANN 5 is in ms."""


def snake(base: str) -> str:
    """A header's name as an identifier."""
    return re.sub(r"[^0-9a-z]+", "_", base).strip("_") or "column"


def table(text: TextTable, kind: str) -> pl.DataFrame:
    """A table of text with names, times and sizes in our format."""
    columns: dict[str, pl.Expr] = {}
    sources: dict[str, str] = {}
    bare_unit, bare = _BARE_TIMES.get(kind, ("us", frozenset[str]()))
    for name in text.names:
        column = headers.column(name)
        plain = snake(column.base)
        value = clean(pl.col(name))
        unit = column.unit or (bare_unit if plain in bare else "")
        if unit in DIGITS:
            plain, value = f"{plain}_ns", nanoseconds(value, unit)
        elif unit in _SIZES:
            size = value.cast(pl.Float64, strict=False) * _SIZES[unit]
            plain, value = f"{plain}_bytes", size.round().cast(pl.Int64, strict=False)
        elif unit == "%":
            plain, value = f"{plain}_percent", value.cast(pl.Float64, strict=False)
        elif plain in _WHOLE:
            value = value.cast(pl.Int64, strict=False)
        elif plain in _REAL:
            value = value.cast(pl.Float64, strict=False)
        while plain in columns:
            plain += "_"
        columns[plain] = value.alias(plain)
        sources[plain] = name
    rows = text.frame.select(*columns.values())
    for plain, name in sources.items():
        if plain not in _OR_WORDS:
            text.checked(text.frame[name], rows[plain])
    return rows


def read_statistic(path: Path, shown: str, kind: str) -> Part:
    """A table that is only displayed or compared."""
    text = read_text(path, shown)
    rows = table(text, kind)
    return Part(
        file=shown,
        kind=kind,
        statistics={_NAMES.get(kind, kind): rows},
        missing=text.missing(),
    )


_NAMES: Final = {"task_time_2022": "task_time", "runtime_statistic": "api_statistic"}

_SPLIT: Final = {
    "device_id": ("device", ""),
    "step": ("step", ""),
    "computing": ("computing_ns", "us"),
    "communication(not overlapped)": ("communication_not_overlapped_ns", "us"),
    "overlapped": ("overlapped_ns", "us"),
    "communication": ("communication_ns", "us"),
    "free": ("free_ns", "us"),
    "preparing": ("preparing_ns", "us"),
    "data": ("data_ns", "us"),
    "start time": ("start_ns", "us"),
    "end time": ("end_ns", "us"),
}


def read_step_times(path: Path, shown: str, kind: str) -> Part:
    """`step_trace_time` of torch_npu, and that of a cluster with one row per rank."""
    text = read_text(path, shown)
    names = {headers.column(name).base: name for name in text.names}
    columns: list[pl.Expr] = []
    for base, (target, unit) in _SPLIT.items():
        if base in names and target in STEPS_SCHEMA:
            value = clean(pl.col(names[base]))
            columns.append(
                (nanoseconds(value, unit) if unit else value.cast(pl.Int64, strict=False)).alias(
                    target
                )
            )
    if "rank" in names:
        columns.append(clean(pl.col(names["rank"])).cast(pl.Int32, strict=False).alias("rank"))
    steps = text.frame.select(*columns)
    for base, (target, _) in _SPLIT.items():
        if base in names and target in steps.columns:
            text.checked(text.frame[names[base]], steps[target])
    if kind == "cluster_step_trace_time":
        of_rank = text.frame.select(
            (clean(pl.col(names["type"])) == "rank").alias("is_rank"),
            clean(pl.col(names["index"])).cast(pl.Int32, strict=False).alias("rank"),
        )
        steps = steps.with_columns(of_rank["rank"]).filter(of_rank["is_rank"])
    return Part(
        file=shown,
        kind=kind,
        producer="jumar" if "rank" in names else "torch_npu",
        steps=steps,
        statistics={"step_trace_time": table(text, kind)},
        missing=text.missing(),
    )


def read_step_trace(path: Path, shown: str, kind: str) -> Part:
    """`step_trace` of graph mode: one row per iteration, with the cost of the data queue."""
    text = read_text(path, shown)
    rows = table(text, kind)

    def column(name: str) -> pl.Expr:
        return pl.col(name) if name in rows.columns else pl.lit(None, pl.Int64)

    end, duration = column("iteration_end_ns"), column("iteration_time_ns")
    steps = rows.select(
        column("iteration_id").alias("step"),
        (end - duration).alias("start_ns"),
        end.alias("end_ns"),
        column("data_aug_bound_ns").alias("data_ns"),
    )
    return Part(
        file=shown,
        kind=kind,
        producer="msprof",
        steps=steps,
        statistics={kind: rows},
        missing=text.missing(),
    )
