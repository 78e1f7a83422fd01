"""What explains the time in which the device is idle, and how far the host launches ahead."""

from typing import Any

import pytest

from jumar.profiling.views.host_bound import host_bound
from jumar.profiling.views.view import VIEWS, Impossible, Options
from tests.profiling.generated import profile_of

_US = 1000
_HOW = "record with activities CPU and NPU (or CUDA), and export the trace"


def _op(start: int, length: int, **more: Any) -> dict[str, Any]:
    row = {"rank": 0, "step": 0, "name": "a", "core": "CUDA"}
    return row | {"start_ns": start * _US, "duration_ns": length * _US} | more


def _call(layer: str, name: str, start: int, length: int, **more: Any) -> dict[str, Any]:
    row = {"rank": 0, "layer": layer, "name": name}
    return row | {"start_ns": start * _US, "duration_ns": length * _US} | more


_OPS = [
    _op(0, 100),
    _op(800, 150, core="COMMUNICATION"),
    _op(900, 100),
    _op(700, 60, core="CUDA_MEMCPY"),
    _op(0, 300, rank=1),
]
_CALLS = [
    _call("op", "enumerate(DataLoader)#x.__next__", 50, 150),
    _call("op", "aten::item", 190, 110),
    _call("op", "aten::item", 200, 100),
    _call("runtime", "cudaStreamSynchronize", 780, 100),
    # Outside of the step.
    _call("runtime", "cudaDeviceSynchronize", 1_000, 500),
]


def test_idle_time_goes_to_the_first_matching_cause_and_the_rest_is_reported() -> None:
    table = VIEWS["host"].make(profile_of(_OPS, kind="cuda", host=_CALLS), Options())
    assert table.columns == [
        *("rank", "cause", "calls", "host_ms", "free_ms", "share_of_free_%"),
        "uncovered_communication_ms",
    ]
    # Free are 700 us: from 100 to 800.
    assert table.rows() == [
        (0, "none of these, or no call recorded", 0, 0.0, 0.42, 60.0, 0.0),
        (0, "waiting for data", 1, 0.15, 0.1, 14.29, 0.0),
        (0, "aten::item", 1, 0.11, 0.1, 14.29, 0.0),
        (0, "memory copies", 0, 0.0, 0.06, 8.57, 0.0),
        (0, "stream synchronisation", 2, 0.1, 0.02, 2.86, 0.08),
        (0, "launching ops", 3, 0.35, 0.0, 0.0, 0.08),
        (1, "none of these, or no call recorded", 0, 0.0, 0.0, 0.0, 0.0),
    ]
    chinese = host_bound(profile_of(_OPS, kind="cuda", host=_CALLS), Options(language="zh"))
    assert chinese["cause"].to_list() == [
        *("其他，或没有记录到调用", "等待数据", "aten::item", "内存拷贝", "流同步", "下发算子"),
        "其他，或没有记录到调用",
    ]


def test_one_nanosecond_of_idle_time_is_fully_attributed() -> None:
    ops = [_op(0, 1), _op(1, 1) | {"start_ns": 1001}]
    table = host_bound(profile_of(ops, host=[_call("op", "x", 5, 1)]), Options())
    rest = table.row(0, named=True)
    assert (rest["free_ms"], rest["share_of_free_%"]) == (1e-6, 100.0)


@pytest.mark.parametrize(
    ("ops", "host", "kind", "said"),
    [
        (_OPS, _CALLS, "cpu", "needs ops on a device separate from the host"),
        (_OPS, [], "npu", f"needs host calls (trace); {_HOW}"),
        (
            *(_OPS, [_CALLS[0] | {"start_ns": None}], "npu"),
            f"needs host calls (trace) (column start_ns); {_HOW}",
        ),
        ([], _CALLS, "npu", "needs ops with start times"),
        (
            *([_op(0, 5) | {"start_ns": None}], _CALLS, "npu"),
            "needs ops with start times (column start_ns)",
        ),
        ([_op(0, 0)], _CALLS, "npu", "needs ops with start times and durations"),
    ],
)
def test_missing_parts_are_named(
    ops: list[dict[str, Any]], host: list[dict[str, Any]], kind: Any, said: str
) -> None:
    with pytest.raises(Impossible) as told:
        host_bound(profile_of(ops, kind=kind, host=host), Options())
    assert str(told.value) == said


def test_host_device_queue_is_reported_per_rank() -> None:
    def op(launch: int | None, start: int | None, length: int, **more: Any) -> dict[str, Any]:
        row = {"launch_ns": None if launch is None else launch * _US}
        return (
            _op(start or 0, length) | ({} if start is not None else {"start_ns": None}) | row | more
        )

    ops = [
        op(24, 33, 30),
        op(0, 10, 10, rank=None),
        op(2, 25, 5),
        op(55, 58, 10),
        op(None, 58, 10),
        op(3, None, 10),
        op(0, 0, 10, rank=1),
        op(1, 10, 10, rank=1),
        op(12, 21, 10, rank=1),
    ]
    table = VIEWS["launches"].make(profile_of(ops), Options())
    assert table.rows() == [
        # At 10 and 25 one more op is launched than has started; at 33 and 58 none.
        (0, 4, 0.0095, 0.023, 0.5, 1, 50.0, 0.003, 0.008),
        (1, 3, 0.009, 0.009, 0.0, 0, 100.0, 0.0005, 0.001),
    ]
    assert table.columns == [
        *("rank", "ops", "delay_p50_ms", "delay_p95_ms", "queue_p50", "queue_max"),
        *("queue_empty_%", "gap_p50_ms", "gaps_ms"),
    ]
    third = [op(0, 1, 1), op(0, 2, 1), op(0, 3, 1)]
    row = VIEWS["launches"].make(profile_of(third), Options()).row(0, named=True)
    assert (row["queue_p50"], row["queue_max"], row["queue_empty_%"]) == (1.0, 2, 33.3)


def test_ops_without_launch_or_start_have_no_queue() -> None:
    needs = "needs the launch time of each op (flows of the trace)"
    for ops, said in (
        ([], f"{needs}; {_HOW}"),
        ([_op(0, 1)], f"{needs} (column launch_ns); {_HOW}"),
        (
            [_op(0, 1) | {"launch_ns": 3, "start_ns": None}],
            f"needs start times of launched ops; {_HOW}",
        ),
    ):
        with pytest.raises(Impossible) as told:
            VIEWS["launches"].make(profile_of(ops), Options())
        assert str(told.value) == said
