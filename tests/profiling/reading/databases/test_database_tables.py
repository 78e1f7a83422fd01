"""Tables of a database that are only shown have the names and units of the CSV files."""

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from jumar.profiling.reading.databases.database_tables import Columns, ReadColumns, displayed_tables

TEXTS = {1: "aten::mm", 2: "PTA", 3: "allocate", 4: "release", 5: "app", 6: "other", 7: "launch"}


def reader(tables: Mapping[str, Sequence[Mapping[str, Any]]]) -> ReadColumns:
    def read(name: str, columns: Columns) -> pl.DataFrame:
        rows = [{column: row.get(column) for column in columns} for row in tables.get(name, ())]
        return pl.DataFrame(rows, schema=dict(columns))

    return read


def made(kind: str, **tables: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    return displayed_tables(reader(tables), TEXTS)[kind]().to_dicts()


def test_tables_are_named_like_their_csv_files() -> None:
    assert list(displayed_tables(reader({}), TEXTS)) == [
        *("operator_memory", "memory_record", "npu_module_mem", "api_statistic", "environment"),
    ]


def test_torch_npu_allocations_are_read_unchanged() -> None:
    row = {
        **{"name": 1, "deviceId": 3, "streamPtr": 99, "size": 512, "allocationTime": 10},
        **{"releaseTime": 30, "activeReleaseTime": 25, "duration": 20, "activeDuration": 15},
        **{"allocationTotalAllocated": 1, "allocationTotalReserved": 2, "allocationTotalActive": 4},
        **{"releaseTotalAllocated": 5, "releaseTotalReserved": 6, "releaseTotalActive": 7},
    }
    assert made("operator_memory", OP_MEMORY=[row], NPU_OP_MEM=[{"operatorName": 1}]) == [
        {
            **{"name": "aten::mm", "size_bytes": 512, "allocation_time_ns": 10},
            **{"release_time_ns": 30, "active_release_time_ns": 25, "duration_ns": 20},
            **{"active_duration_ns": 15, "allocation_total_allocated_bytes": 1},
            **{"allocation_total_reserved_bytes": 2, "allocation_total_active_bytes": 4},
            **{"release_total_allocated_bytes": 5, "release_total_reserved_bytes": 6},
            **{"release_total_active_bytes": 7, "stream_ptr": "99", "device_type": "NPU:3"},
        }
    ]


def test_graph_engine_allocations_are_paired_in_order_of_time() -> None:
    def row(address: int, kind: int, time: int, size: int = 8) -> dict[str, int]:
        return {
            **{"operatorName": 1, "addr": address, "type": kind, "size": size, "deviceId": 0},
            **{"timestampNs": time, "totalAllocate": time + 1000, "totalReserve": time + 2000},
        }

    rows = [row(1, 4, 30), row(1, 3, 10), row(1, 3, 40), row(2, 3, 20, 16), row(1, 4, 55)]
    found = made("operator_memory", NPU_OP_MEM=[*rows, row(3, 77, 1)])
    names = ("size_bytes", "allocation_time_ns", "release_time_ns", "duration_ns")
    assert [tuple(one[name] for name in names) for one in found] == [
        (8, 10, 30, 20),
        (16, 20, None, None),
        (8, 40, 55, 15),
    ]
    assert found[0] == {
        **{"name": "aten::mm", "size_bytes": 8, "allocation_time_ns": 10, "release_time_ns": 30},
        **{"duration_ns": 20, "allocation_total_allocated_bytes": 1010},
        **{"allocation_total_reserved_bytes": 2010, "release_total_allocated_bytes": 1030},
        **{"release_total_reserved_bytes": 2030, "device_type": "NPU:0"},
    }


def test_memory_covers_torch_npu_and_the_drivers_view_of_the_process() -> None:
    torch = {
        **{"component": 2, "deviceId": 1, "streamPtr": 5, "timestamp": 7},
        **{"totalAllocated": 1, "totalReserved": 2, "totalActive": 3},
    }
    driver = {"type": 5, "ddr": 4, "hbm": 6, "timestampNs": 8, "deviceId": 1}
    found = made(
        "memory_record",
        MEMORY_RECORD=[torch],
        NPU_MEM=[driver, driver | {"type": 6}, driver | {"ddr": None}],
    )
    of_driver = {
        **{"component": "APP", "timestamp_ns": 8, "total_allocated_bytes": None},
        **{"total_reserved_bytes": 10, "total_active_bytes": None, "stream_ptr": None},
        "device_type": "NPU:1",
    }
    assert found == [
        {
            **{"component": "PTA", "timestamp_ns": 7, "total_allocated_bytes": 1},
            **{"total_reserved_bytes": 2, "total_active_bytes": 3, "stream_ptr": "5"},
            "device_type": "NPU:1",
        },
        of_driver,
        of_driver | {"total_reserved_bytes": 6},
    ]


def test_modules_of_cann_are_named() -> None:
    found = made(
        "npu_module_mem",
        ENUM_MODULE=[{"id": 4, "name": "HCCL"}],
        NPU_MODULE_MEM=[
            {"moduleId": 4, "timestampNs": 1, "totalReserved": 2, "deviceId": 0},
            {"moduleId": 5, "timestampNs": 3, "totalReserved": 4, "deviceId": 0},
        ],
    )
    assert found == [
        {"component": "HCCL", "timestamp_ns": 1, "total_reserved_bytes": 2, "device": "NPU:0"},
        {"component": None, "timestamp_ns": 3, "total_reserved_bytes": 4, "device": "NPU:0"},
    ]


def test_cann_calls_are_summed_largest_total_first() -> None:
    def call(start: int, end: int | None, name: int = 7) -> dict[str, int | None]:
        return {"startNs": start, "endNs": end, "type": 2, "name": name}

    calls = [call(0, 500, 1), call(1000, 2000), call(3000, 6000), call(9000, None), call(1, 5, 99)]
    found = made("api_statistic", ENUM_API_TYPE=[{"id": 2, "name": "node"}], CANN_API=calls)
    assert found == [
        {
            **{"level": "node", "api_name": "launch", "time_ns": 4000, "count": 2},
            # Of 1 and 3 microseconds: 2 on average, 1 away from it each.
            **{"avg_ns": 2000, "min_ns": 1000, "max_ns": 3000, "variance": 1.0},
        },
        {
            **{"level": "node", "api_name": "aten::mm", "time_ns": 500, "count": 1},
            **{"avg_ns": 500, "min_ns": 500, "max_ns": 500, "variance": 0.0},
        },
    ]


def test_environment_comes_from_the_metadata() -> None:
    rows = [{"name": "other", "value": "{}"}, {"name": "ENV_VARIABLES", "value": '{"A": "1"}'}]
    assert made("environment", META_DATA=rows) == [{"variable": "A", "value": "1"}]
    assert made("environment") == []
