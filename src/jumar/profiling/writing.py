"""Writes the tables of a profile as CSV, with msprof's current file names and headers."""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

import polars as pl

from jumar.ground.files import write_text
from jumar.ground.text import FORMULA, NUMBER
from jumar.profiling.profile import OPS_SCHEMA, Profile
from jumar.profiling.reading.exact import decimal_text
from jumar.profiling.views.op_statistic import op_statistic

OP_HEADERS: Final[Mapping[str, str]] = {
    "rank": "Rank",
    "device": "Device_id",
    "step": "Step Id",
    "task": "Task ID",
    "stream": "Stream ID",
    "name": "Op Name",
    "type": "OP Type",
    "state": "OP State",
    "core": "Task Type",
    "start_ns": "Task Start Time(us)",
    "duration_ns": "Task Duration(us)",
    "wait_ns": "Task Wait Time(us)",
    "block_num": "Block Num",
    "input_shapes": "Input Shapes",
    "input_types": "Input Data Types",
    "input_formats": "Input Formats",
    "output_shapes": "Output Shapes",
    "output_types": "Output Data Types",
    "output_formats": "Output Formats",
    "module": "Module",
    "flops": "FLOPs",
    "bytes": "Size(B)",
    "kernel": "Kernel Name",
    "correlation": "Connection ID",
    "launch_ns": "Launch Time(us)",
}
"""Headers of op_summary in msprof's order, followed by jumar's own."""

STEP_HEADERS: Final[Mapping[str, str]] = {
    "rank": "Rank",
    "step": "Step",
    "computing_ns": "Computing",
    "communication_not_overlapped_ns": "Communication(Not Overlapped)",
    "overlapped_ns": "Overlapped",
    "communication_ns": "Communication",
    "free_ns": "Free",
    "preparing_ns": "Preparing",
    "data_ns": "Data",
    "start_ns": "Start Time(us)",
    "end_ns": "End Time(us)",
}
_STATISTIC_HEADERS: Final = {
    "type": "OP Type",
    "core": "Core Type",
    "count": "Count",
    "total_ns": "Total Time(us)",
    "min_ns": "Min Time(us)",
    "average_ns": "Avg Time(us)",
    "max_ns": "Max Time(us)",
    "ratio_percent": "Ratio(%)",
}
_AICPU_HEADERS: Final = {
    "timestamp_ns": "Timestamp(us)",
    "node": "Node",
    "compute_time_ns": "Compute_time(us)",
    "memcpy_time_ns": "Memcpy_time(us)",
    "task_time_ns": "Task_time(us)",
    "dispatch_time_ns": "Dispatch_time(us)",
    "total_time_ns": "Total_time(us)",
    "stream_id": "Stream ID",
    "task_id": "Task ID",
}
_ALLOCATION_HEADERS: Final = {
    "name": "Name",
    "size_bytes": "Size(KB)",
    "allocation_time_ns": "Allocation Time(us)",
    "release_time_ns": "Release Time(us)",
    "active_release_time_ns": "Active Release Time(us)",
    "duration_ns": "Duration(us)",
    "active_duration_ns": "Active Duration(us)",
    "allocation_total_allocated_bytes": "Allocation Total Allocated(MB)",
    "allocation_total_reserved_bytes": "Allocation Total Reserved(MB)",
    "allocation_total_active_bytes": "Allocation Total Active(MB)",
    "release_total_allocated_bytes": "Release Total Allocated(MB)",
    "release_total_reserved_bytes": "Release Total Reserved(MB)",
    "release_total_active_bytes": "Release Total Active(MB)",
    "stream_ptr": "Stream Ptr",
    "device_type": "Device Type",
    "module": "Module",
    "rank": "Rank",
}
_MEMORY_HEADERS: Final = {
    "component": "Component",
    "timestamp_ns": "Timestamp(us)",
    "total_allocated_bytes": "Total Allocated(MB)",
    "total_reserved_bytes": "Total Reserved(MB)",
    "total_active_bytes": "Total Active(MB)",
    "stream_ptr": "Stream Ptr",
    "device_type": "Device Type",
    "rank": "Rank",
}
_SIZE_UNITS: Final = {"(KB)": 1 << 10, "(MB)": 1 << 20}
"""Size units; powers of two, so that sizes are converted exactly."""


def write_csv(profile: Profile, folder: str | Path) -> list[Path]:
    """Write a profile's tables under msprof's file names.

    The files are `op_summary.csv`, `op_statistic.csv`, `step_trace_time.csv`, `aicpu.csv`,
    `operator_memory.csv` and `memory_record.csv`. Empty tables are not written. Each file is
    written completely or not at all.

    Returns:
        The files written.
    """
    target = Path(folder)
    target.mkdir(parents=True, exist_ok=True)
    tables = {
        "op_summary.csv": ops_csv(profile.ops),
        "op_statistic.csv": _renamed(op_statistic(profile), _STATISTIC_HEADERS),
        "step_trace_time.csv": _renamed(profile.steps, STEP_HEADERS),
        **{
            f"{name}.csv": _renamed(profile.statistics.get(name, pl.DataFrame()), headers)
            for name, headers in (
                ("aicpu", _AICPU_HEADERS),
                ("operator_memory", _ALLOCATION_HEADERS),
                ("memory_record", _MEMORY_HEADERS),
            )
        },
    }
    written: list[Path] = []
    for name, table in tables.items():
        if table.height:
            write_text(target / name, without_formulas(table).write_csv())
            written.append(target / name)
    return written


def without_formulas(table: pl.DataFrame) -> pl.DataFrame:
    """The table with an apostrophe before each text that a spreadsheet would take for a formula."""
    return table.with_columns(
        pl.when(text.str.contains(FORMULA) & ~text.str.contains(NUMBER))
        .then(pl.lit("'") + text)
        .otherwise(text)
        .alias(name)
        for name, kind in table.schema.items()
        if kind == pl.String
        for text in (pl.col(name),)
    )


def ops_csv(ops: pl.DataFrame) -> pl.DataFrame:
    """The op table with msprof's headers, times in decimal microseconds, and `N/A` for nulls."""
    counters = [name for name in ops.columns if name not in OPS_SCHEMA]
    table = _renamed(ops, OP_HEADERS)
    return pl.concat([table, ops.select(counters)], how="horizontal") if counters else table


def _renamed(table: pl.DataFrame, names: Mapping[str, str]) -> pl.DataFrame:
    """The columns of a table with msprof's names and units."""
    columns: list[pl.Expr] = []
    for name, header in names.items():
        if name not in table.columns:
            continue
        value = pl.col(name)
        if name.endswith("_ns"):
            value = decimal_text(value)
        elif name.endswith("_shapes"):
            # In quotes, as in msprof, so that a scalar's empty shape differs from a missing one.
            value = pl.lit('"') + value + pl.lit('"')
        elif header[-4:] in _SIZE_UNITS:
            value = value.cast(pl.Float64) / _SIZE_UNITS[header[-4:]]
        columns.append(value.cast(pl.String).fill_null("N/A").alias(header))
    return table.select(columns)
