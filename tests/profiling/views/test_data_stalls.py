"""Whether training waits for data, by any of the records a profile may have."""

from typing import Any

import polars as pl
import pytest

from jumar.profiling.views.data_stalls import data_stalls
from jumar.profiling.views.view import VIEWS, Impossible, Options
from tests.profiling.generated import profile_of

_US = 1000


def _op(rank: int | None, step: int, start: int, length: int, **more: Any) -> dict[str, Any]:
    row = {"rank": rank, "step": step, "name": "a", "type": "Add", "core": "AI_CORE"}
    return row | {"start_ns": start * _US, "duration_ns": length * _US} | more


def _call(start: int, length: int, **more: Any) -> dict[str, Any]:
    row = {"rank": 0, "layer": "op", "name": "enumerate(DataLoader)#x.__next__"}
    return row | {"start_ns": start * _US, "duration_ns": length * _US} | more


def _rows(ops: list[dict[str, Any]], **more: Any) -> list[tuple[Any, ...]]:
    table = VIEWS["data"].make(profile_of(ops, **more), Options())
    assert table.columns == ["rank", "source", "per_step_ms", "share_of_step_%", "verdict"]
    return table.rows()


_TWO = [_op(0, 0, 0, 1_000), _op(0, 1, 1_050, 950), _op(1, 0, 0, 1_000), _op(1, 1, 1_000, 500)]
_LOADER = "loader call, device idle"


@pytest.mark.parametrize(("wait", "verdict"), [(100, "ok"), (102, "stall")])
def test_loader_calls_count_while_the_device_is_free(wait: int, verdict: str) -> None:
    ops = [_op(0, 0, 0, 1_000), _op(0, 1, 1_000 + wait, 1_000 - wait), *_TWO[2:]]
    calls = [
        _call(900, 500),
        _call(950, 60, layer="mark", name="get_next"),
        _call(0, 2_000, layer="python"),
        _call(0, 2_000, name="aten::add"),
    ]
    # Two steps of a millisecond: so much in one of them is half as much in each.
    share = wait / 20
    assert _rows(ops, host=calls) == [
        (0, _LOADER, wait / 2000, share, verdict),
        (1, _LOADER, 0.0, 0.0, "ok"),
    ]


def test_on_a_cpu_whole_loader_calls_count() -> None:
    marks = [{"rank": 0, "step": 0, "start_ns": 0, "end_ns": 2_000 * _US}]
    calls = [_call(-50, 100), _call(500, 33), _call(510, 10)]
    ops = [_op(0, 0, 0, 2_000)]
    assert _rows(ops, kind="cpu", steps=marks, host=calls) == [(0, _LOADER, 0.083, 4.15, "ok")]


def test_producer_waits_are_averaged_over_steps() -> None:
    def step(rank: int | None, number: int, **parts: int) -> dict[str, Any]:
        row = {"rank": rank, "step": number}
        return row | {f"{name}_ns": _US * length for name, length in parts.items()}

    whole = {"computing": 600, "communication_not_overlapped": 200, "free": 150}
    steps = [
        step(1, 0, data=40, preparing=50, **whole),
        step(1, 1, data=60, preparing=50, **whole),
        step(None, 0, data=70, start=0, end=1_000),
        step(0, 1, preparing=51, start=0, end=1_000, **whole),
        step(0, 2, start=0, end=9_000),
        step(2, 0, data=7),
    ]
    assert _rows([], steps=steps) == [
        (0, "Data Aug Bound", 0.07, 7.0, "stall"),
        (0, "Preparing", 0.051, 5.1, "possible stall"),
        (1, "Data Aug Bound", 0.05, 5.0, "ok"),
        (1, "Preparing", 0.05, 5.0, "ok"),
        (2, "Data Aug Bound", 0.007, 0.0, "ok"),
    ]


def test_queue_reading_ops_are_averaged_over_steps() -> None:
    ops = [
        *_TWO,
        _op(None, 0, 10, 40, type="GetNext"),
        _op(0, 1, 1_060, 70, type="IteratorV2"),
        _op(1, 0, 10, 150, type="QueueDequeueV2", core="AI_CPU"),
        _op(1, 0, 10, 900, type="MyGetNext"),
    ]
    # Rank 1 waits 150 us in two steps of 750.
    assert _rows(ops) == [(0, "GetNext", 0.055, 5.5, "stall"), (1, "GetNext", 0.075, 10.0, "stall")]
    timeless = [_op(3, 0, 0, 8) | {"type": "dequeue", "start_ns": None, "step": None}]
    assert _rows(timeless) == [(3, "GetNext", 0.008, 0.0, "ok")]


@pytest.mark.parametrize(
    ("sizes", "share", "verdict"),
    [
        ([0, *[3] * 9], 10.0, "ok"),
        ([0, *[3] * 8], 11.11, "stall"),
        ([0, -1, 1, None], 66.67, "stall"),
        (["0", "1", "x"], 50.0, "stall"),
    ],
)
def test_queue_empty_in_over_a_tenth_of_samples_is_a_stall(
    sizes: list[Any], share: float, verdict: str
) -> None:
    other = pl.DataFrame({"cached_buffer_size": sizes, "other": sizes})
    tables = {"aicpu_mi": pl.DataFrame({"queue_size": sizes}), "dp": other}
    assert _rows([], statistics=tables) == [
        (0, "aicpu_mi: data queue empty", 0.0, share, verdict),
        (0, "dp: data queue empty", 0.0, share, verdict),
    ]


def test_without_any_source_waiting_is_unknown() -> None:
    nothing = {
        "aicpu_mi": pl.DataFrame({"other": [0]}),
        "dp": pl.DataFrame({"queue_size": pl.Series([None], dtype=pl.Int64)}),
    }
    for host, ops in (([], _TWO), ([_call(0, 5)], [])):
        with pytest.raises(Impossible) as told:
            data_stalls(profile_of(ops, host=host, statistics=nothing), Options())
        assert str(told.value) == (
            "needs calls of the data loader, Preparing, Data Aug Bound, GetNext, or data queues; "
            "also record the host (activities CPU and NPU), or set training_trace=on"
        )


def test_warm_up_is_excluded() -> None:
    lengths = (9_000, 1_000, 1_000, 1_000)
    ops, now = [], 0
    for step, length in enumerate(lengths):
        ops.append(_op(0, step, now + 100, length - 100))
        now += length
    calls = [_call(start, 100) for start in (0, 9_000, 10_000, 11_000)]
    assert _rows(ops, host=calls) == [(0, _LOADER, 0.1, 10.0, "stall")]
