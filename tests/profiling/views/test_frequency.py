"""The clock of the cores, by a counter or by the cycles of ops, and the cost of a low one."""

from typing import Any

import polars as pl
import pytest

from jumar.profiling.views.frequency import clocks, frequency
from jumar.profiling.views.view import VIEWS, Impossible, Options
from tests.profiling.generated import profile_of

_US = 1000


def _op(start: int, length: int, **more: Any) -> dict[str, Any]:
    row = {"rank": 0, "name": "a", "core": "AI_CORE"}
    return row | {"start_ns": start * _US, "duration_ns": length * _US} | more


def _counter(*rows: tuple[int | None, int | None, float | None]) -> dict[str, pl.DataFrame]:
    table = pl.DataFrame(
        {
            "rank": pl.Series([rank for rank, _, _ in rows], dtype=pl.Int64),
            "time_ns": [None if at is None else at * _US for _, at, _ in rows],
            "mhz": [mhz for _, _, mhz in rows],
        },
        schema_overrides={"time_ns": pl.Int64, "mhz": pl.Float64},
    )
    return {"frequency": table}


def test_cost_of_an_op_is_proportional_to_the_clock_deficit_at_its_start() -> None:
    counter = _counter(
        (0, 100, 1000.0),
        (0, 200, 800.0),
        (0, 300, 950.0),
        (0, 400, 949.0),
        (0, 500, 1000.0),
        (1, 100, 1800.0),
    )
    ops = [
        # Before the first reading the clock counts as full.
        _op(0, 10),
        _op(190, 40),
        _op(200, 100),
        _op(300, 20),
        _op(499, 200),
        _op(800, 30),
        _op(800, 900, core="COMMUNICATION"),
        _op(800, 50, rank=1),
        _op(800, 50, rank=2),
    ]
    table = VIEWS["frequency"].make(profile_of(ops, statistics=counter), Options())
    assert table.columns == [
        *("rank", "full_mhz", "lowest_mhz", "computing_ms", "low_ms", "cost_ms", "mean_mhz")
    ]
    low = 0.1 * 0.2 + 0.2 * 0.051
    mean = (80 * 1000 + 100 * 800 + 20 * 950 + 200 * 949) / 400
    assert table.rows() == [
        (0, 1000.0, 800.0, 0.4, 0.3, pytest.approx(low, abs=2e-6), round(mean, 1)),
        (1, 1800.0, 1800.0, 0.05, 0.0, 0.0, 1800.0),
    ]


def test_full_clock_is_the_95th_percentile_of_readings() -> None:
    rows = [(0, 10 * number, 1000.0 + number) for number in range(21)]
    profile = profile_of([_op(5, 10)], statistics=_counter(*rows, (0, 999, 4000.0)))
    # Of 22 readings the 20th is the 95th percentile.
    assert frequency(profile, Options())["full_mhz"].to_list() == [1020.0]


def test_counter_is_sorted_without_missing_values() -> None:
    rows = [(None, 5, 900.0), (1, 3, 800.0), (0, 1, 700.0), (0, None, 1.0), (0, 2, None)]
    profile = profile_of([_op(0, 1)], statistics=_counter(*rows))
    assert clocks(profile).rows() == [(0, 1_000, 700.0), (0, 5_000, 900.0), (1, 3_000, 800.0)]
    assert clocks(profile) is clocks(profile)
    alone = _counter((0, 4, 900.0))["frequency"].drop("rank")
    found = clocks(profile_of([_op(0, 1)], statistics={"frequency": alone}))
    assert found.rows() == [(0, 4_000, 900.0)]


def _cycles(cycles: int, time: float, blocks: int, start: int, **more: Any) -> dict[str, Any]:
    row = {"aic_total_cycles": cycles, "aicore_time(us)": time, "block_num": blocks}
    row |= {"aiv_total_cycles": None, "aiv_time(us)": None}
    return _op(start, 50) | row | more


def test_without_a_counter_the_clock_is_derived_from_cycles() -> None:
    vector = {"core": "AI_VECTOR_CORE", "aic_total_cycles": 9, "aicore_time(us)": 99.0}

    def of_vector(cycles: int, time: float, blocks: int, start: int) -> dict[str, Any]:
        row = {"aiv_total_cycles": cycles, "aiv_time(us)": time}
        return _cycles(0, 0, blocks, start) | vector | row

    ops = [
        _cycles(1_800 * 25 * 24, 25.0, 24, 7, rank=None),
        # Its blocks do not all run at once, or it is too short, or has no blocks.
        _cycles(1_700 * 25 * 25, 25.0, 25, 6),
        _cycles(1_700 * 20 * 1, 20.0, 1, 6),
        _cycles(1_700 * 25, 25.0, 0, 6),
        _cycles(1_600 * 25, 25.0, 1, 5, rank=1),
        # No clock of a chip.
        _cycles(99 * 25, 25.0, 1, 6),
        _cycles(4_001 * 25, 25.0, 1, 6),
        _cycles(100 * 25, 25.0, 1, 8),
        _cycles(4_000 * 25, 25.0, 1, 9),
        _cycles(1_500 * 25, 25.0, 1, 6, core="MIX_AIC"),
        of_vector(1_400 * 30 * 48, 30.0, 48, 4),
        of_vector(1_300 * 30 * 49, 30.0, 49, 4),
        of_vector(1_300 * 20, 20.0, 1, 4),
    ]
    assert clocks(profile_of(ops)).rows() == [
        (0, 4_000, 1400.0),
        (0, 7_000, 1800.0),
        (0, 8_000, 100.0),
        (0, 9_000, 4000.0),
        (1, 5_000, 1600.0),
    ]


@pytest.mark.parametrize(
    "statistics", [{}, _counter(), {"frequency": pl.DataFrame({"time_ns": [1]})}]
)
def test_without_counter_and_cycles_the_clock_is_unknown(
    statistics: dict[str, pl.DataFrame],
) -> None:
    with pytest.raises(Impossible) as told:
        clocks(profile_of([_op(0, 1)], statistics=statistics))
    assert str(told.value) == (
        "needs the counter of the AI Core frequency, or cycles of ops; "
        "record with aic_metrics=PipeUtilization"
    )
