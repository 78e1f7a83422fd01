"""Idle time in which the next op waited on the device is no fault of the host."""

from typing import Any

import pytest

from jumar.profiling.advice.todo import todo_table
from jumar.profiling.profile import DeviceKind
from jumar.profiling.views.host_bound import host_bound
from jumar.profiling.views.queued import queued_gaps
from jumar.profiling.views.view import Options
from tests.profiling.generated import profile_of

_US = 1000


def _op(start: int, length: int, launch: int | None, **more: Any) -> dict[str, Any]:
    row = {"rank": 0, "step": 0, "name": "a", "type": "a", "core": "CUDA"}
    row |= {"start_ns": start * _US, "duration_ns": length * _US}
    return row | {"launch_ns": None if launch is None else launch * _US} | more


@pytest.mark.parametrize(
    ("ops", "gaps"),
    [
        # Launched 50 us before the gap from 200 to 300 began, and 49 us.
        ([_op(100, 100, 0), _op(300, 9, 150)], [(0, 200, 300)]),
        ([_op(100, 100, 0), _op(300, 9, 151)], []),
        ([_op(100, 100, 0), _op(300, 9, None)], []),
        # Of ops that start together, each has to have been waiting.
        ([_op(100, 100, 0), _op(300, 9, 150), _op(300, 5, 10)], [(0, 200, 300)]),
        ([_op(100, 100, 0), _op(300, 9, 150), _op(300, 5, 290)], []),
        ([_op(100, 100, 0), _op(300, 9, 150), _op(300, 5, None)], []),
        # A copy neither ends a gap nor fills it; a collective does both.
        ([_op(100, 100, 0), _op(220, 9, 0, core="CUDA_MEMCPY"), _op(300, 9, 150)], [(0, 200, 300)]),
        (
            [_op(100, 100, 0), _op(220, 10, 0, core="COMMUNICATION"), _op(300, 9, 181)],
            [(0, 200, 220)],
        ),
        # Each rank for itself; a missing one is 0.
        ([_op(100, 100, 0, rank=1), _op(300, 9, 150)], []),
        ([_op(100, 100, 0), _op(300, 9, 150, rank=None)], [(0, 200, 300)]),
        ([], []),
    ],
)
def test_gap_is_queued_if_its_next_op_was_launched_well_before(
    ops: list[dict[str, Any]], gaps: list[tuple[int, int, int]]
) -> None:
    found = queued_gaps(profile_of(ops, kind="cuda"))
    assert found.rows() == [(rank, start * _US, end * _US) for rank, start, end in gaps]


@pytest.mark.parametrize("kind", ["npu", "cpu"])
def test_queue_is_unknown_where_launches_may_wait_on_the_host(kind: DeviceKind) -> None:
    assert queued_gaps(profile_of([_op(100, 100, 0), _op(300, 9, 150)], kind=kind)).is_empty()


def _cann(name: str, correlation: int, at: int, **more: Any) -> dict[str, Any]:
    row = {"rank": 0, "layer": "cann", "name": name, "correlation": correlation}
    return row | {"start_ns": at * _US, "duration_ns": _US} | more


@pytest.mark.parametrize(
    ("calls", "is_queued"),
    [
        ([_cann("Node@launch", 7, 150)], True),
        ([_cann("launch", 7, 150)], True),
        ([_cann("launch", 7, 151)], False),
        # Of several calls the last one counts.
        ([_cann("launch", 7, 20), _cann("launch", 7, 190)], False),
        ([_cann("aclrtLaunchKernel", 7, 150)], False),
        ([_cann("launch", 8, 150)], False),
        ([_cann("launch", 7, 150, rank=1)], False),
        ([_cann("launch", 7, 150, rank=None)], True),
        ([_cann("launch", 7, 150, layer="op")], False),
        ([], False),
    ],
)
def test_launch_on_an_npu_is_the_call_of_cann(calls: list[dict[str, Any]], is_queued: bool) -> None:
    # PyTorch put the second op into its own queue long before.
    ops = [_op(100, 100, 0, core="AI_CORE"), _op(300, 9, 10, core="AI_CORE", correlation=7)]
    gaps = queued_gaps(profile_of(ops, kind="npu", host=calls)).rows()
    assert gaps == ([(0, 200 * _US, 300 * _US)] if is_queued else [])


_CALLS = [
    {"rank": 0, "layer": "op", "name": "aten::add", "start_ns": at, "duration_ns": 100 * _US}
    for at in range(0, 1500 * _US, 100 * _US)
]


def _ops(ahead: int) -> list[dict[str, Any]]:
    """Gaps of 300 us, of which a copy fills 120, and of 400 us; ops are launched so long before."""
    return [
        _op(100, 100, 100 - ahead),
        _op(300, 120, 90, core="CUDA_MEMCPY"),
        _op(500, 100, 200 - ahead),
        _op(1000, 100, 600 - ahead),
    ]


@pytest.mark.parametrize(("ahead", "queued"), [(60, True), (40, False)])
def test_host_is_blamed_only_while_no_op_waits_on_the_device(ahead: int, queued: bool) -> None:
    profile = profile_of(_ops(ahead), kind="cuda", host=_CALLS)
    told = {row["key"]: (row["win_ms"], row["evidence"]) for row in todo_table(profile).to_dicts()}
    rows = host_bound(profile, Options()).to_dicts()
    causes = {row["cause"]: row["free_ms"] for row in rows if row["free_ms"]}
    if queued:
        assert told["memory-copies"][0] == pytest.approx(0.12)
        win, evidence = told["waiting-ops"]
        assert win == pytest.approx(0.58)
        assert evidence == [
            "3 gaps per step, the longest 0.400 ms; the host is ahead, so launching faster would "
            "not shorten them"
        ]
        assert not {"free", "launching", "host-work"} & set(told)
        assert causes == {
            "memory copies": pytest.approx(0.12),
            "not the host: the next op waits on the device": pytest.approx(0.58),
        }
    else:
        assert told["launching"][0] == pytest.approx(0.7)
        assert set(causes) == {"launching ops"}
