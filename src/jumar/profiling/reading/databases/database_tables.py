"""Tables of a database that are only displayed: memory, times of CANN calls, environment.

They have the names and units of the corresponding CSV files.
"""

from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

import polars as pl

from jumar.ground.json_text import parse_json
from jumar.profiling.reading.environment import variables

Columns: TypeAlias = Mapping[str, type[pl.DataType]]
"""Columns to query, and their types."""
ReadColumns: TypeAlias = Callable[[str, Columns], pl.DataFrame]
Texts: TypeAlias = Mapping[int, str]

_ALLOCATION_COLUMNS: Final = {
    "size": "size_bytes",
    "allocationTime": "allocation_time_ns",
    "releaseTime": "release_time_ns",
    "activeReleaseTime": "active_release_time_ns",
    "duration": "duration_ns",
    "activeDuration": "active_duration_ns",
    "allocationTotalAllocated": "allocation_total_allocated_bytes",
    "allocationTotalReserved": "allocation_total_reserved_bytes",
    "allocationTotalActive": "allocation_total_active_bytes",
    "releaseTotalAllocated": "release_total_allocated_bytes",
    "releaseTotalReserved": "release_total_reserved_bytes",
    "releaseTotalActive": "release_total_active_bytes",
}
_RECORD_COLUMNS: Final = {
    "timestamp": "timestamp_ns",
    "totalAllocated": "total_allocated_bytes",
    "totalReserved": "total_reserved_bytes",
    "totalActive": "total_active_bytes",
}
_UNKNOWN_TYPE: Final = "unknown"


def displayed_tables(read: ReadColumns, texts: Texts) -> dict[str, Callable[[], pl.DataFrame]]:
    """Functions that create the tables, by the kind of the corresponding CSV file.

    Args:
        read: Reads columns of a table; those that the release lacks are null.
        texts: The strings by their ids (STRING_IDS).
    """
    return {
        "operator_memory": lambda: _allocations(read, texts),
        "memory_record": lambda: _record(read, texts),
        "npu_module_mem": lambda: _modules(read),
        "api_statistic": lambda: _api_statistic(read, texts),
        "environment": lambda: _environment(read),
    }


def _environment(read: ReadColumns) -> pl.DataFrame:
    """The variables in META_DATA, where ENV_VARIABLES is JSON."""
    rows = read("META_DATA", {"name": pl.String, "value": pl.String})
    texts = rows.filter(pl.col("name") == "ENV_VARIABLES")["value"].drop_nulls()
    return variables(parse_json(texts[0]) if texts.len() else None)


def _allocations(read: ReadColumns, texts: Texts) -> pl.DataFrame:
    """OP_MEMORY of torch_npu, which includes the graph engine's allocations; else NPU_OP_MEM."""
    rows = read("OP_MEMORY", int_columns("name", "deviceId", "streamPtr", *_ALLOCATION_COLUMNS))
    if not rows.height:
        return paired_allocations(read, texts)
    return rows.select(
        text_of("name", texts),
        *(pl.col(column).alias(name) for column, name in _ALLOCATION_COLUMNS.items()),
        pl.col("streamPtr").cast(pl.String).alias("stream_ptr"),
        _device(),
    )


def paired_allocations(read: ReadColumns, texts: Texts) -> pl.DataFrame:
    """NPU_OP_MEM, with each allocation joined to its release."""
    rows = read(
        "NPU_OP_MEM",
        int_columns(
            "operatorName",
            "addr",
            "type",
            "size",
            "timestampNs",
            "totalAllocate",
            "totalReserve",
            "deviceId",
        ),
    )
    event = pl.col("type").replace_strict(texts, default=_UNKNOWN_TYPE, return_dtype=pl.String)
    address = ["operatorName", "addr", "deviceId"]
    events = rows.with_columns(event.alias("event")).sort("timestampNs", maintain_order=True)
    occurrence = pl.int_range(pl.len()).over(*address, "event").alias("occurrence")
    numbered = events.with_columns(occurrence)
    allocations = numbered.filter(pl.col("event") == "allocate")
    releases = numbered.filter(pl.col("event") == "release").select(
        *address,
        "occurrence",
        pl.col("timestampNs").alias("release_time_ns"),
        pl.col("totalAllocate").alias("release_total_allocated_bytes"),
        pl.col("totalReserve").alias("release_total_reserved_bytes"),
    )
    return allocations.join(
        releases, on=[*address, "occurrence"], how="left", maintain_order="left"
    ).select(
        text_of("operatorName", texts).alias("name"),
        pl.col("size").alias("size_bytes"),
        pl.col("timestampNs").alias("allocation_time_ns"),
        "release_time_ns",
        (pl.col("release_time_ns") - pl.col("timestampNs")).alias("duration_ns"),
        pl.col("totalAllocate").alias("allocation_total_allocated_bytes"),
        pl.col("totalReserve").alias("allocation_total_reserved_bytes"),
        "release_total_allocated_bytes",
        "release_total_reserved_bytes",
        _device(),
    )


def _record(read: ReadColumns, texts: Texts) -> pl.DataFrame:
    """MEMORY_RECORD of torch_npu, and NPU_MEM, the process's memory according to the driver."""
    rows = read(
        "MEMORY_RECORD", int_columns("component", "deviceId", "streamPtr", *_RECORD_COLUMNS)
    )
    torch_rows = rows.select(
        text_of("component", texts),
        *(pl.col(column).alias(name) for column, name in _RECORD_COLUMNS.items()),
        pl.col("streamPtr").cast(pl.String).alias("stream_ptr"),
        _device(),
    )
    driver_record = read("NPU_MEM", int_columns("type", "ddr", "hbm", "timestampNs", "deviceId"))
    driver_rows = driver_record.select(
        # The CSV files call the process APP and omit other processes.
        text_of("type", texts).str.to_uppercase().alias("component"),
        pl.col("timestampNs").alias("timestamp_ns"),
        pl.lit(None, pl.Int64).alias("total_allocated_bytes"),
        (pl.col("hbm") + pl.col("ddr").fill_null(0)).alias("total_reserved_bytes"),
        _device(),
    ).filter(pl.col("component") == "APP")
    return pl.concat([torch_rows, driver_rows], how="diagonal_relaxed")


def _modules(read: ReadColumns) -> pl.DataFrame:
    """NPU_MODULE_MEM: memory reserved by components of CANN."""
    names = read("ENUM_MODULE", {"id": pl.Int64, "name": pl.String}).drop_nulls()
    rows = read(
        "NPU_MODULE_MEM", int_columns("moduleId", "timestampNs", "totalReserved", "deviceId")
    )
    return rows.select(
        text_of("moduleId", dict(names.iter_rows())).alias("component"),
        pl.col("timestampNs").alias("timestamp_ns"),
        pl.col("totalReserved").alias("total_reserved_bytes"),
        _device("device"),
    )


def _api_statistic(read: ReadColumns, texts: Texts) -> pl.DataFrame:
    """`api_statistic`, computed from the CANN calls."""
    levels = read("ENUM_API_TYPE", {"id": pl.Int64, "name": pl.String}).drop_nulls()
    calls = read("CANN_API", int_columns("startNs", "endNs", "type", "name"))
    duration = pl.col("duration")
    return (
        calls.select(
            text_of("type", dict(levels.iter_rows())).alias("level"),
            text_of("name", texts).alias("api_name"),
            (pl.col("endNs") - pl.col("startNs")).alias("duration"),
        )
        .drop_nulls(["api_name", "duration"])
        .group_by("level", "api_name", maintain_order=True)
        .agg(
            duration.sum().alias("time_ns"),
            pl.len().cast(pl.Int64).alias("count"),
            duration.mean().round().cast(pl.Int64).alias("avg_ns"),
            duration.min().alias("min_ns"),
            duration.max().alias("max_ns"),
            # The population variance in microseconds squared, as in the CSV file.
            (duration / 1000).var(ddof=0).alias("variance"),
        )
        .sort("time_ns", descending=True, maintain_order=True)
    )


def text_of(column: str, texts: Texts) -> pl.Expr:
    """The strings whose ids a column contains."""
    return pl.col(column).replace_strict(texts, default=None, return_dtype=pl.String).alias(column)


def _device(name: str = "device_type") -> pl.Expr:
    return ("NPU:" + pl.col("deviceId").cast(pl.String)).alias(name)


def int_columns(*names: str) -> dict[str, type[pl.DataType]]:
    """Integer columns to query."""
    return dict.fromkeys(names, pl.Int64)
