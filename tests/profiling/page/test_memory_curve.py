"""Memory over time on the page."""

from typing import Any

import polars as pl
import pytest

from jumar.profiling.page.memory_curve import memory_curves
from jumar.profiling.page.time_range import TimeRange
from jumar.profiling.profile import Profile
from tests.profiling.generated import profile_of

_COLUMNS = ("rank", "component", "device_type", "timestamp_ns")
_SCHEMA = (*_COLUMNS, "total_allocated_bytes", "total_reserved_bytes")


def _profile(*rows: tuple[Any, ...], ranks: int = 1, drop: tuple[str, ...] = ()) -> Profile:
    table = pl.DataFrame(rows, schema=list(_SCHEMA), orient="row", infer_schema_length=None)
    ops = [{"rank": rank, "start_ns": 0, "duration_ns": 1} for rank in range(ranks)]
    return profile_of(ops, statistics={"memory_record": table.drop(drop)})


_CLOCK = TimeRange(100, 1000)
_ROWS = (
    (1, "PTA", "NPU:1", 120, 7, 9),
    (0, "PTA", "NPU:0", 150, 3, 8),
    (0, "PTA", "NPU:0", 100, 2, None),
    (0, "PTA", "NPU:0", 1100, 1, 8),
    # Outside of what is shown, or unknown, or alone.
    (0, "PTA", "NPU:0", 99, 5, 8),
    (0, "PTA", "NPU:0", 1101, 5, 8),
    (0, "PTA", "NPU:0", 300, None, 8),
    (0, "GE", None, 300, 5, 8),
    (1, "PTA", "NPU:1", 130, 8, 10),
)


def test_components_have_curves_ordered_by_number_of_points() -> None:
    assert memory_curves(_profile(*_ROWS, ranks=2), _CLOCK, "en") == {
        "curves": [
            {
                "name": "rank 0 · PTA NPU:0",
                "at": [0, 50, 950],
                "allocated": [2, 3, 1],
                "reserved": [0, 8, 8],
            },
            {
                "name": "rank 1 · PTA NPU:1",
                "at": [20, 10],
                "allocated": [7, 8],
                "reserved": [9, 10],
            },
        ],
        "left_out": 0,
    }


def test_without_ranks_components_or_reservations_there_is_one_curve() -> None:
    told = _profile(*_ROWS[:4], drop=(*_COLUMNS[:3], "total_reserved_bytes"))
    assert memory_curves(told, _CLOCK, "en")["curves"] == [
        {"name": "", "at": [0, 20, 30, 950], "allocated": [2, 7, 3, 1], "reserved": [0] * 4}
    ]
    (named,) = memory_curves(_profile(*_ROWS[1:4]), _CLOCK, "en")["curves"]
    assert named["name"] == "PTA NPU:0"


@pytest.mark.parametrize("lacks", ["timestamp_ns", "total_allocated_bytes"])
def test_without_times_or_sizes_there_is_no_memory_curve(lacks: str) -> None:
    for profile in (profile_of(), _profile(*_ROWS, drop=(lacks,))):
        assert memory_curves(profile, _CLOCK, "en") == {"curves": [], "left_out": 0}


@pytest.mark.parametrize(("parts", "drawn", "left"), [(8, 8, 0), (9, 8, 1)])
def test_at_most_eight_curves_are_drawn(parts: int, drawn: int, left: int) -> None:
    rows = [(0, f"part {part}", "x", at, 1, 1) for part in range(parts) for at in (100, 200)]
    found = memory_curves(_profile(*rows), _CLOCK, "en")
    assert (len(found["curves"]), found["left_out"]) == (drawn, left)


def test_thinning_keeps_the_last_and_highest_point_of_each_stretch() -> None:
    # A thousandth of 3000 ns is a stretch of 3.
    sizes = [5, 9, 1, 4, 4, 6, 2, 8, 8, 7]
    rows = [(0, "x", "y", at, size, at) for at, size in enumerate(sizes)]
    (curve,) = memory_curves(_profile(*rows), TimeRange(0, 3000), "en")["curves"]
    assert curve == {
        "name": "x y",
        "at": [1, 1, 3, 2, 1, 1],
        "allocated": [9, 1, 6, 8, 8, 7],
        "reserved": [1, 2, 5, 7, 8, 9],
    }
    (whole,) = memory_curves(_profile(*rows), TimeRange(0, 1999), "en")["curves"]
    assert whole["allocated"] == sizes
