"""The peak of device memory, what was reserved beyond it, and who held it."""

from typing import Any

import polars as pl
import pytest

from jumar.profiling.views.memory import MIB, memory_at_peak, memory_peak
from jumar.profiling.views.view import VIEWS, Impossible, Options
from tests.profiling.generated import profile_of

_HOW = "record with profile_memory=True (jumar profile --memory)"


def _record(*rows: tuple[int, str, str, int | None, int | None]) -> pl.DataFrame:
    columns = ("rank", "component", "device_type", "total_allocated_bytes", "total_reserved_bytes")
    return pl.DataFrame(rows, schema=columns, orient="row")


def test_peaks_and_gaps_are_per_component() -> None:
    record = _record(
        (0, "PTA", "NPU:0", 2 * MIB, 10 * MIB),
        (0, "PTA", "NPU:0", 7 * MIB, 10 * MIB),
        (0, "PTA", "NPU:0", 7 * MIB, 11 * MIB + MIB // 3),
        (0, "PTA", "NPU:0", 5 * MIB, 12 * MIB),
        (1, "PTA", "NPU:1", 9 * MIB, 12 * MIB),
        (1, "APP", "NPU:1", None, 12 * MIB),
        (0, "GE", "NPU:0", 3 * MIB, None),
    )
    table = VIEWS["memory"].make(profile_of(statistics={"memory_record": record}), Options())
    assert table.columns == [
        *("rank", "component", "device_type", "peak_allocated_mib", "peak_reserved_mib"),
        *("largest_gap_mib", "gap_at_peak_mib", "samples"),
    ]
    assert table.rows() == [
        (1, "PTA", "NPU:1", 9.0, 12.0, 3.0, 3.0, 1),
        (0, "PTA", "NPU:0", 7.0, 12.0, 8.0, 4.33, 4),
        (1, "APP", "NPU:1", None, 12.0, None, None, 1),
        (0, "GE", "NPU:0", 3.0, None, None, None, 1),
    ]


def test_equal_peaks_are_sorted_by_rank_component_and_device() -> None:
    rows = [
        (rank, component, device, MIB, MIB)
        for rank in (1, 0)
        for component in ("PTA", "APP")
        for device in ("NPU:1", "NPU:0")
    ]
    found = memory_peak(profile_of(statistics={"memory_record": _record(*rows)}), Options())
    keys = found.select("rank", "component", "device_type").rows()
    assert len(keys) == 8
    assert keys == sorted(keys)


@pytest.mark.parametrize("lacks", ["component", "total_allocated_bytes", "total_reserved_bytes"])
def test_memory_over_time_needs_its_columns(lacks: str) -> None:
    record = _record((0, "PTA", "NPU:0", 1, 1)).drop(lacks)
    for statistics in ({}, {"memory_record": record}):
        with pytest.raises(Impossible) as told:
            memory_peak(profile_of(statistics=statistics), Options())
        assert str(told.value) == f"needs memory over time (memory_record.csv); {_HOW}"


def _held(*rows: dict[str, Any]) -> dict[str, pl.DataFrame]:
    schema = {
        "rank": pl.Int64(),
        "name": pl.String(),
        "module": pl.String(),
        "size_bytes": pl.Int64(),
        "allocation_time_ns": pl.Int64(),
        "release_time_ns": pl.Int64(),
    }
    return {"operator_memory": pl.DataFrame(list(rows), schema=schema)}


def _alloc(name: str, size: int, begin: int | None, end: int | None, **more: Any) -> dict[str, Any]:
    row = {"rank": 0, "name": name, "size_bytes": size * MIB, "allocation_time_ns": begin}
    return row | {"release_time_ns": end} | more


_ALLOCATIONS = [
    _alloc("gone", 9, 1, 10),
    _alloc("conv", 4, 2, None, module="a"),
    # What is released at a moment makes room for what is allocated at it.
    _alloc("relu", 3, 10, 30, module="a"),
    _alloc("relu", 2, 15, 20, module="b"),
    _alloc("relu", 3, 16, 21, rank=None, module="a"),
    _alloc("late", 1, 20, 40),
    _alloc("free", 0, 1, None),
    _alloc("unknown", 50, None, None),
    _alloc("released", -50, 3, None),
    _alloc("other", 6, 5, 6, rank=1),
    _alloc("other", 2, 6, None, rank=1),
]


def test_peak_is_held_by_allocations_not_yet_released() -> None:
    small = [_alloc("gone", 2, 1, 10), *_ALLOCATIONS[1:]]
    table = VIEWS["memory-by-op"].make(profile_of(statistics=_held(*small)), Options())
    assert table.columns == ["rank", "name", "module", "allocations", "held_mib", "share_%"]
    assert table.rows() == [
        (0, "relu", "a", 2, 6.0, 50.0),
        (0, "conv", "a", 1, 4.0, 33.33),
        (0, "relu", "b", 1, 2.0, 16.67),
        (1, "other", None, 1, 6.0, 100.0),
    ]


def test_first_of_equal_peaks_counts() -> None:
    table = memory_at_peak(profile_of(statistics=_held(*_ALLOCATIONS)), Options())
    assert table.filter(rank=0).select("name", "held_mib").rows() == [("gone", 9.0), ("conv", 4.0)]


def test_table_without_ranks_and_layers_is_of_one_rank() -> None:
    table = _held(_alloc("b", 1, 1, None), _alloc("a", 1, 1, None))["operator_memory"]
    found = memory_at_peak(
        profile_of(statistics={"operator_memory": table.drop("rank", "module")}), Options()
    )
    assert found.rows() == [(0, "a", 1, 1.0, 50.0), (0, "b", 1, 1.0, 50.0)]


def test_without_allocations_there_are_no_holders() -> None:
    table = _held(_alloc("a", 1, 1, None))["operator_memory"]
    lacking = [
        {},
        {"operator_memory": table.drop("release_time_ns")},
        {"operator_memory": table.clear()},
        _held(_alloc("a", 0, 1, None), _alloc("a", 1, None, None)),
    ]
    for statistics in lacking:
        with pytest.raises(Impossible) as told:
            memory_at_peak(profile_of(statistics=statistics), Options())
        assert str(told.value) == f"needs allocations (operator_memory.csv); {_HOW}"
