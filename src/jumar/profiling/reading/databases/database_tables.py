"""Tables of a database that are only displayed: memory by owner, and CANN call times.

They get the names and units that the same tables have as CSV files.
"""

from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

import polars as pl

from jumar.ground.json_text import parse_json
from jumar.profiling.reading.environment import variables

Columns: TypeAlias = Mapping[str, type[pl.DataType]]
"""Columns that a query asks for, with the type they become."""
Read: TypeAlias = Callable[[str, Columns], pl.DataFrame]
Texts: TypeAlias = Mapping[int, str]

_ALLOCATIONS: Final = {
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
_RECORD: Final = {
    "timestamp": "timestamp_ns",
    "totalAllocated": "total_allocated_bytes",
    "totalReserved": "total_reserved_bytes",
    "totalActive": "total_active_bytes",
}
_NO_TYPE: Final = "unknown"


def shown_tables(read: Read, texts: Texts) -> dict[str, Callable[[], pl.DataFrame]]:
    """The function that makes each table, by the kind of its CSV file.

    Args:
        read: Columns of a table by name, nulls where the release has none.
        texts: The texts behind the numbers.
    """
    return {
        "operator_memory": lambda: _allocations(read, texts),
        "memory_record": lambda: _record(read, texts),
        "npu_module_mem": lambda: _modules(read),
        "api_statistic": lambda: _calls(read, texts),
        "environment": lambda: _environment(read),
    }


def _environment(read: Read) -> pl.DataFrame:
    """ENV_VARIABLES of META_DATA, a JSON text."""
    rows = read("META_DATA", {"name": pl.String, "value": pl.String})
    texts = rows.filter(pl.col("name") == "ENV_VARIABLES")["value"].drop_nulls()
    return variables(parse_json(texts[0]) if texts.len() else None)


def _allocations(read: Read, texts: Texts) -> pl.DataFrame:
    """OP_MEMORY of torch_npu, which holds the graph engine's allocations too; else NPU_OP_MEM."""
    rows = read("OP_MEMORY", _numbers("name", "deviceId", "streamPtr", *_ALLOCATIONS))
    if not rows.height:
        return paired(read, texts)
    return rows.select(
        _named("name", texts),
        *(pl.col(column).alias(name) for column, name in _ALLOCATIONS.items()),
        pl.col("streamPtr").cast(pl.String).alias("stream_ptr"),
        _device(),
    )


def paired(read: Read, texts: Texts) -> pl.DataFrame:
    """NPU_OP_MEM, in which an allocation and its release are rows of one address."""
    rows = read(
        "NPU_OP_MEM",
        _numbers(
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
    what = pl.col("type").replace_strict(texts, default=_NO_TYPE, return_dtype=pl.String)
    place = ["operatorName", "addr", "deviceId"]
    sorted_ = rows.with_columns(what.alias("what")).sort("timestampNs", maintain_order=True)
    turn = pl.int_range(pl.len()).over(*place, "what").alias("turn")
    counted = sorted_.with_columns(turn)
    allocations = counted.filter(pl.col("what") == "allocate")
    back = counted.filter(pl.col("what") == "release").select(
        *place,
        "turn",
        pl.col("timestampNs").alias("release_time_ns"),
        pl.col("totalAllocate").alias("release_total_allocated_bytes"),
        pl.col("totalReserve").alias("release_total_reserved_bytes"),
    )
    return allocations.join(back, on=[*place, "turn"], how="left", maintain_order="left").select(
        pl.col("operatorName")
        .replace_strict(texts, default=None, return_dtype=pl.String)
        .alias("name"),
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


def _record(read: Read, texts: Texts) -> pl.DataFrame:
    """MEMORY_RECORD of torch_npu, and NPU_MEM, the driver's view of the whole process."""
    rows = read("MEMORY_RECORD", _numbers("component", "deviceId", "streamPtr", *_RECORD))
    of_torch = rows.select(
        _named("component", texts),
        *(pl.col(column).alias(name) for column, name in _RECORD.items()),
        pl.col("streamPtr").cast(pl.String).alias("stream_ptr"),
        _device(),
    )
    seen = read("NPU_MEM", _numbers("type", "ddr", "hbm", "timestampNs", "deviceId"))
    of_driver = seen.select(
        # The CSV files call the process APP, and leave out what other processes hold.
        pl.col("type")
        .replace_strict(texts, default=None, return_dtype=pl.String)
        .str.to_uppercase()
        .alias("component"),
        pl.col("timestampNs").alias("timestamp_ns"),
        pl.lit(None, pl.Int64).alias("total_allocated_bytes"),
        (pl.col("hbm") + pl.col("ddr").fill_null(0)).alias("total_reserved_bytes"),
        _device(),
    ).filter(pl.col("component") == "APP")
    return pl.concat([of_torch, of_driver], how="diagonal_relaxed")


def _modules(read: Read) -> pl.DataFrame:
    """NPU_MODULE_MEM: memory reserved by parts of CANN itself."""
    names = read("ENUM_MODULE", {"id": pl.Int64, "name": pl.String}).drop_nulls()
    rows = read("NPU_MODULE_MEM", _numbers("moduleId", "timestampNs", "totalReserved", "deviceId"))
    return rows.select(
        pl.col("moduleId")
        .replace_strict(dict(names.iter_rows()), default=None, return_dtype=pl.String)
        .alias("component"),
        pl.col("timestampNs").alias("timestamp_ns"),
        pl.col("totalReserved").alias("total_reserved_bytes"),
        _device("device"),
    )


def _calls(read: Read, texts: Texts) -> pl.DataFrame:
    """`api_statistic`, computed from the CANN calls."""
    kinds = read("ENUM_API_TYPE", {"id": pl.Int64, "name": pl.String}).drop_nulls()
    calls = read("CANN_API", _numbers("startNs", "endNs", "type", "name"))
    took = pl.col("took")
    return (
        calls.select(
            pl.col("type")
            .replace_strict(dict(kinds.iter_rows()), default=None, return_dtype=pl.String)
            .alias("level"),
            pl.col("name")
            .replace_strict(texts, default=None, return_dtype=pl.String)
            .alias("api_name"),
            (pl.col("endNs") - pl.col("startNs")).alias("took"),
        )
        .drop_nulls(["api_name", "took"])
        .group_by("level", "api_name", maintain_order=True)
        .agg(
            took.sum().alias("time_ns"),
            pl.len().cast(pl.Int64).alias("count"),
            took.mean().round().cast(pl.Int64).alias("avg_ns"),
            took.min().alias("min_ns"),
            took.max().alias("max_ns"),
            # Of all calls there were, in microseconds squared, as the CSV file has it.
            (took / 1000).var(ddof=0).alias("variance"),
        )
        .sort("time_ns", descending=True, maintain_order=True)
    )


def _named(column: str, texts: Texts) -> pl.Expr:
    return pl.col(column).replace_strict(texts, default=None, return_dtype=pl.String).alias(column)


def _device(name: str = "device_type") -> pl.Expr:
    return ("NPU:" + pl.col("deviceId").cast(pl.String)).alias(name)


def _numbers(*names: str) -> dict[str, type[pl.DataType]]:
    return dict.fromkeys(names, pl.Int64)
