"""Tables other than op rows, with normalized names, times in nanoseconds and sizes in bytes.

`Total Time(us)` becomes `total_time_ns`, `Size(KB)` `size_bytes`, `Ratio(%)` `ratio_percent`,
`OP Type` `op_type`. Units are read from each header, since they differ between releases.
"""

import re
from pathlib import Path
from typing import Final

import polars as pl

from jumar.profiling.reading.exact import DIGITS, clean, nanoseconds
from jumar.profiling.reading.file_content import FileContent
from jumar.profiling.reading.files import headers
from jumar.profiling.reading.tables.csv_text import TextTable, read_text

_SIZE_UNITS: Final = {"b": 1, "byte": 1, "bytes": 1, "kb": 1024, "mb": 1 << 20, "gb": 1 << 30}
_INTEGER_COLUMNS: Final = {
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
_NUMBER_OR_TEXT: Final = {"device_id", "index"}
"""Numeric columns that may also contain text: `host`, or the ranks `(0, 1)` of a stage."""
_FLOAT_COLUMNS: Final = {"hit_rate", "victim_rate", "variance", "ratio"}
_UNITS_WITHOUT_HEADER: Final = {
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
"""Unit of times whose header has none, and the columns with such times, by kind of table."""


def identifier(base: str) -> str:
    """A column name as an identifier."""
    return re.sub(r"[^0-9a-z]+", "_", base).strip("_") or "column"


def normalized(text: TextTable, kind: str) -> pl.DataFrame:
    """A text table with normalized names, times and sizes."""
    columns: dict[str, pl.Expr] = {}
    sources: dict[str, str] = {}
    default_unit, time_columns = _UNITS_WITHOUT_HEADER.get(kind, ("us", frozenset[str]()))
    for name in text.names:
        column = headers.column(name)
        key = identifier(column.base)
        value = clean(pl.col(name))
        unit = column.unit or (default_unit if key in time_columns else "")
        if unit in DIGITS:
            key, value = f"{key}_ns", nanoseconds(value, unit)
        elif unit in _SIZE_UNITS:
            size = value.cast(pl.Float64, strict=False) * _SIZE_UNITS[unit]
            key, value = f"{key}_bytes", size.round().cast(pl.Int64, strict=False)
        elif unit == "%":
            key, value = f"{key}_percent", value.cast(pl.Float64, strict=False)
        elif key in _INTEGER_COLUMNS:
            value = value.cast(pl.Int64, strict=False)
        elif key in _FLOAT_COLUMNS:
            value = value.cast(pl.Float64, strict=False)
        while key in columns:
            key += "_"
        columns[key] = value.alias(key)
        sources[key] = name
    rows = text.frame.select(*columns.values())
    for key, name in sources.items():
        if key not in _NUMBER_OR_TEXT:
            text.checked(text.frame[name], rows[key])
    return rows


def integers_of(rows: pl.DataFrame, name: str) -> pl.Expr:
    """A column of integers; null if the table has none of that name."""
    return pl.col(name) if name in rows.columns else pl.lit(None, pl.Int64)


def read_statistic(path: Path, display_name: str, kind: str) -> FileContent:
    """Read a table that is only displayed or compared."""
    text = read_text(path, display_name)
    rows = normalized(text, kind)
    return FileContent(
        file=display_name,
        kind=kind,
        statistics={_STATISTIC_NAMES.get(kind, kind): rows},
        missing=text.missing(),
    )


_STATISTIC_NAMES: Final = {"task_time_2022": "task_time", "runtime_statistic": "api_statistic"}

_STEP_COLUMNS: Final = {
    "step": "step",
    "computing": "computing_ns",
    "communication(not overlapped)": "communication_not_overlapped_ns",
    "overlapped": "overlapped_ns",
    "communication": "communication_ns",
    "free": "free_ns",
    "preparing": "preparing_ns",
    "data": "data_ns",
    "start time": "start_ns",
    "end time": "end_ns",
}


def read_step_times(path: Path, display_name: str, kind: str) -> FileContent:
    """Read torch_npu's `step_trace_time`, or that of a cluster, with a row for each rank."""
    text = read_text(path, display_name)
    names = {headers.column(name).base: name for name in text.names}
    found = {target: names[base] for base, target in _STEP_COLUMNS.items() if base in names}
    columns: list[pl.Expr] = []
    for target, name in found.items():
        value = clean(pl.col(name))
        is_time = target.endswith("_ns")
        value = nanoseconds(value, "us") if is_time else value.cast(pl.Int64, strict=False)
        columns.append(value.alias(target))
    if "rank" in names:
        columns.append(clean(pl.col(names["rank"])).cast(pl.Int32, strict=False).alias("rank"))
    steps = text.frame.select(*columns)
    for target, name in found.items():
        text.checked(text.frame[name], steps[target])
    if kind == "cluster_step_trace_time":
        cluster_rows = text.frame.select(
            (clean(pl.col(names["type"])) == "rank").alias("is_rank"),
            clean(pl.col(names["index"])).cast(pl.Int32, strict=False).alias("rank"),
        )
        steps = steps.with_columns(cluster_rows["rank"]).filter(cluster_rows["is_rank"])
    return FileContent(
        file=display_name,
        kind=kind,
        producer="jumar" if "rank" in names else "torch_npu",
        steps=steps,
        statistics={"step_trace_time": normalized(text, kind)},
        missing=text.missing(),
    )


def read_step_trace(path: Path, display_name: str, kind: str) -> FileContent:
    """Read graph mode's `step_trace`: one row per iteration, with its wait for data."""
    text = read_text(path, display_name)
    rows = normalized(text, kind)
    end = integers_of(rows, "iteration_end_ns")
    duration = integers_of(rows, "iteration_time_ns")
    steps = rows.select(
        integers_of(rows, "iteration_id").alias("step"),
        (end - duration).alias("start_ns"),
        end.alias("end_ns"),
        integers_of(rows, "data_aug_bound_ns").alias("data_ns"),
    )
    return FileContent(
        file=display_name,
        kind=kind,
        producer="msprof",
        steps=steps,
        statistics={kind: rows},
        missing=text.missing(),
    )
