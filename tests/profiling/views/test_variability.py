"""Steps and ops that do not always take equally long."""

from typing import Any

import pytest

from jumar.profiling.views.variability import op_variability, step_variability
from jumar.profiling.views.view import VIEWS, Impossible, Options
from tests.profiling.generated import profile_of


def _steps(*lengths: int, rank: int | None = 0) -> list[dict[str, Any]]:
    """Steps one after the other, of an op each."""
    rows: list[dict[str, Any]] = []
    now = 0
    for step, length in enumerate(lengths):
        row = {"rank": rank, "step": step, "type": f"of {step}", "core": "AI_CORE"}
        rows.append(row | {"start_ns": now, "duration_ns": length})
        now += length
    return rows


# Six steady steps around 100 ms whose distances from it have the median 2 ms: three deviations of
# 1.4826 times as much are 8.8956 ms.
@pytest.mark.parametrize(("odd", "verdict"), [(108_895_000, ""), (108_896_000, "outlier")])
def test_outlier_is_three_robust_deviations_above_the_median(odd: int, verdict: str) -> None:
    ms = 1_000_000
    lengths = (400 * ms, 100 * ms, 104 * ms, 96 * ms, 100 * ms, odd, 100 * ms)
    profile = profile_of([*_steps(*lengths), *_steps(7 * ms, 8 * ms, rank=1)])
    table = VIEWS["variability"].make(profile, Options())
    of_first = (100.0, 104.0, odd / ms)
    of_second = (7.0, 7.0, 8.0)
    assert table.columns == ["rank", "step", "step_ms", "verdict", "p50_ms", "p95_ms", "max_ms"]
    assert table.rows() == [
        (0, 0, 400.0, "warm-up", *of_first),
        (0, 1, 100.0, "", *of_first),
        (0, 2, 104.0, "", *of_first),
        (0, 3, 96.0, "", *of_first),
        (0, 4, 100.0, "", *of_first),
        (0, 5, odd / ms, verdict, *of_first),
        (0, 6, 100.0, "", *of_first),
        (1, 0, 7.0, "", *of_second),
        (1, 1, 8.0, "", *of_second),
    ]


@pytest.mark.parametrize(("odd", "verdict"), [(105, ""), (106, "outlier")])
def test_outlier_is_at_least_five_percent_longer(odd: int, verdict: str) -> None:
    table = step_variability(profile_of(_steps(100, 100, odd, 100, 100)), Options())
    assert table["verdict"].to_list() == ["", "", verdict, "", ""]


def test_single_step_has_no_variability() -> None:
    for ops in ([*_steps(5), *_steps(5, rank=1)], []):
        with pytest.raises(Impossible) as told:
            step_variability(profile_of(ops), Options())
        assert str(told.value) == (
            "needs more than one step; record several steps (active=3 or more)"
        )
    two = profile_of([*_steps(5), *_steps(5, 5, rank=1)])
    assert step_variability(two, Options()).height == 3


def _op(kind: str, length: int | None, step: int | None = None, **more: Any) -> dict[str, Any]:
    row = {"rank": None, "step": step, "type": kind, "core": "AI_CORE", "duration_ns": length}
    return row | {"input_shapes": "8", "input_types": "BF16"} | more


def test_ops_are_ranked_by_time_above_their_median() -> None:
    us = 1_000
    ops = [
        *(_op("B", length * us) for length in (20, 10, 14, 10)),
        *(_op("A", length * us) for length in (1, 3, 21)),
        *(_op("A", length * us, input_shapes="9") for length in (8, 8)),
        *(_op("A", length * us, input_types="INT8") for length in (9, 11)),
        _op("A", 900 * us, input_shapes="7"),
        *(_op("C", length * us, core="COMMUNICATION") for length in (1, 900)),
    ]
    table = VIEWS["op-variability"].make(profile_of(ops), Options())
    assert table.columns == [
        *("type", "count", "p50_ms", "p95_ms", "max_ms", "above_median_ms"),
        *("input_shapes", "input_types"),
    ]
    assert table.rows() == [
        ("A", 3, 0.003, 0.003, 0.021, 0.018, "8", "BF16"),
        ("B", 4, 0.01, 0.014, 0.02, 0.01, "8", "BF16"),
        ("A", 2, 0.009, 0.009, 0.011, 0.001, "8", "INT8"),
        ("A", 2, 0.008, 0.008, 0.008, 0.0, "9", "BF16"),
    ]
    twenty = [_op("D", length * us) for length in range(1, 22)]
    (row,) = op_variability(profile_of(twenty), Options()).to_dicts()
    assert (row["p50_ms"], row["p95_ms"], row["max_ms"]) == (0.011, 0.02, 0.021)


def test_warm_up_ops_are_excluded() -> None:
    lengths = (99, 10, 12, 10)
    ops = [
        _op("A", length, step, start_ns=1000 * step, rank=rank)
        for rank in (None, 1)
        for step, length in enumerate(lengths)
    ]
    # A step lasts from the end of the one before.
    ops.append(_op("B", 1, 0, start_ns=-5_000, rank=None))
    ops.append(_op("B", 1, 0, start_ns=-5_000, rank=1))
    (row,) = op_variability(profile_of(ops), Options()).to_dicts()
    assert (row["type"], row["count"], row["above_median_ms"]) == ("A", 6, 4e-06)


def test_equally_steady_ops_are_sorted_by_key() -> None:
    ops = [
        _op(kind, 5, input_shapes=shape, input_types=dtype)
        for kind in "BA"
        for shape in "98"
        for dtype in ("INT8", "BF16")
        for _ in range(2)
    ]
    found = op_variability(profile_of(ops), Options())
    keys = found.select("type", "input_shapes", "input_types").rows()
    assert len(keys) == 8
    assert keys == sorted(keys)


def test_ops_without_durations_have_no_variability() -> None:
    with pytest.raises(Impossible) as told:
        op_variability(profile_of([_op("A", None)]), Options())
    assert str(told.value) == "needs ops with durations (column duration_ns)"
