"""Where the time of a step goes, and contradictions to the capture's own figures."""

from typing import Any

import pytest

from jumar.profiling.profile import Profile
from jumar.profiling.views.step_split import contradictions, split_view, step_split
from jumar.profiling.views.view import VIEWS, Impossible, Options
from tests.profiling.generated import profile_of


def _op(start: int | None, length: int | None, step: int | None, **more: Any) -> dict[str, Any]:
    row = {"rank": 0, "step": step, "name": "a", "core": "CUDA", "start_ns": start}
    return row | {"duration_ns": length} | more


_MS = 1_000_000
_OPS = [
    _op(100, 100, 0),
    _op(150, 100, 0),
    _op(230, 70, 0, core="COMMUNICATION"),
    _op(290, 40, 0, core="CUDA_MEMCPY"),
    _op(350, 50, 0),
    _op(450, 50, 1),
]


def _millions(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    names = ("start_ns", "duration_ns", "end_ns")
    return [row | {name: _MS * row[name] for name in names if name in row} for row in rows]


def test_parts_of_a_step_are_exact_to_the_nanosecond() -> None:
    marks = [{"rank": 0, "step": 0, "start_ns": 0, "end_ns": 440}]
    assert step_split(profile_of(_OPS, steps=marks)).to_dicts() == [
        {
            "rank": 0,
            "step": 0,
            "start_ns": 100,
            "end_ns": 400,
            "computing_ns": 200,
            "communication_not_overlapped_ns": 50,
            "overlapped_ns": 20,
            "communication_ns": 70,
            "free_ns": 20,
            "copying_ns": 30,
            "preparing_ns": 100,
        },
        {
            "rank": 0,
            "step": 1,
            "start_ns": 450,
            "end_ns": 500,
            "computing_ns": 50,
            "communication_not_overlapped_ns": 0,
            "overlapped_ns": 0,
            "communication_ns": 0,
            "free_ns": 0,
            "copying_ns": 0,
            "preparing_ns": 50,
        },
    ]


def test_time_before_the_first_op_is_unknown_without_a_mark() -> None:
    assert step_split(profile_of(_OPS))["preparing_ns"].to_list() == [None, 50]


def test_steps_are_sorted_by_rank_and_time_and_copies_may_be_missing() -> None:
    ops = [_op(50, 5, 9, rank=1), _op(10, 5, 7, rank=1), _op(30, 5, 8)]
    table = step_split(profile_of(ops))
    assert table.select("rank", "step", "free_ns", "copying_ns").rows() == [
        (0, 8, 0, None),
        (1, 7, 0, None),
        (1, 9, 0, None),
    ]


def _recorded(step: int, **parts: int) -> dict[str, Any]:
    row = {"rank": None, "step": step, "start_ns": step * 400 * _MS, "end_ns": step * 400 * _MS + 1}
    return row | {f"{name}_ns": _MS * length for name, length in parts.items()}


def test_captures_figures_are_shown_next_to_ours() -> None:
    parts = {"computing": 190, "communication_not_overlapped": 55, "free": 21, "preparing": 77}
    steps = [_recorded(0, **parts), _recorded(0, computing=1)]
    table = VIEWS["steps"].make(profile_of(_millions(_OPS), steps=steps), Options())
    assert table.to_dicts() == [
        {
            "rank": 0,
            "step": 0,
            "step_ms": 300.0,
            "computing_ms": 200.0,
            "uncovered_ms": 50.0,
            "overlapped_ms": 20.0,
            "copying_ms": 30.0,
            "free_ms": 20.0,
            "preparing_ms": 77.0,
            "computing-file": 10.0,
            "uncovered-file": -5.0,
            "free-file": -1.0,
        },
        {
            "rank": 0,
            "step": 1,
            "step_ms": 50.0,
            "computing_ms": 50.0,
            "uncovered_ms": 0.0,
            "overlapped_ms": 0.0,
            "copying_ms": 0.0,
            "free_ms": 0.0,
            "preparing_ms": 50.0,
            "computing-file": None,
            "uncovered-file": None,
            "free-file": None,
        },
    ]


def test_without_ops_the_captures_own_figures_are_shown() -> None:
    rows = [
        {"rank": rank, "step": step, "computing_ns": 3 * _MS, "free_ns": _MS}
        | {"communication_not_overlapped_ns": 2 * _MS}
        for rank, step in ((1, 0), (0, 2), (0, 1))
    ]
    table = VIEWS["steps"].make(profile_of(steps=rows), Options())
    columns = ("rank", "step", "computing_ms", "uncovered_ms", "free_ms")
    assert table.select(columns).rows() == [
        (0, 1, 3.0, 2.0, 1.0),
        (0, 2, 3.0, 2.0, 1.0),
        (1, 0, 3.0, 2.0, 1.0),
    ]


@pytest.mark.parametrize("lacks", ["start_ns", "duration_ns"])
def test_ops_without_times_give_no_split(lacks: str) -> None:
    ops = [_op(3, 4, 0, **{lacks: None})]
    with pytest.raises(Impossible) as told:
        split_view(profile_of(ops, steps=[_recorded(0, computing=1)]), Options())
    assert str(told.value) == f"needs ops with start times and durations (column {lacks})"
    with pytest.raises(Impossible) as told:
        split_view(profile_of(steps=[_recorded(0, free=1)]), Options())
    assert str(told.value) == "needs ops with start times and durations"
    assert contradictions(profile_of(ops, steps=[_recorded(0, computing=1)])) == []


def _outside(held: int) -> Profile:
    """A millisecond of ops, of which the given share is in the marked step."""
    ops = [_op(0, held, None), _op(5 * _MS, _MS - held, None)]
    return profile_of(ops, steps=[{"rank": 0, "step": 0, "start_ns": 0, "end_ns": 1000}])


def test_steps_covering_under_a_thousandth_of_the_ops_contradict_them() -> None:
    assert contradictions(_outside(1000)) == []
    (line,) = contradictions(_outside(999))
    assert line.en == (
        "the steps contain 0.001 ms of the 1.000 ms in which ops run; their marks are on another "
        "clock or from another time"
    )
    assert line.zh == (
        "算子共执行 1.000 ms，其中只有 0.001 ms 落在迭代内；迭代标记属于其他时钟或其他时段"
    )


def _told(**parts: int) -> Profile:
    """Two steps of a millisecond, of which each computes 0.6 and communicates 0.3."""
    ops = [
        row
        for step in (0, 1)
        for row in (
            _op(_MS * step, 600_000, step),
            _op(_MS * step + 650_000, 300_000, step, core="COMMUNICATION"),
            _op(_MS * step + 950_000, 50_000, step, core="CUDA_MEMCPY"),
        )
    ]
    names = {"computing": 600_000, "communication_not_overlapped": 300_000, "free": 50_000} | parts
    steps = [
        {"rank": 0, "step": step} | {f"{name}_ns": length for name, length in names.items()}
        for step in (0, 1)
    ]
    return profile_of(ops, steps=steps)


@pytest.mark.parametrize(
    ("part", "near", "far", "said"),
    [
        ("computing", 700_000, 700_001, "computing is 1.200 ms according to the ops, but 1.400 ms"),
        ("computing", 500_000, 499_999, "computing is 1.200 ms according to the ops, but 1.000 ms"),
        (
            "communication_not_overlapped",
            400_000,
            400_001,
            "uncovered communication is 0.600 ms according to the ops, but 0.800 ms",
        ),
        ("free", 150_000, 150_001, "idle time is 0.100 ms according to the ops, but 0.300 ms"),
    ],
)
def test_figures_differing_by_a_tenth_of_the_steps_contradict_each_other(
    part: str, near: int, far: int, said: str
) -> None:
    assert contradictions(_told(**{part: near})) == []
    profile = _told(**{part: far})
    (line,) = contradictions(profile)
    assert line.en == (
        f"{said} in the capture's own step_trace_time; ops are missing or on another clock"
    )
    assert contradictions(profile) is contradictions(profile)


def test_both_kinds_of_contradiction_can_occur_together() -> None:
    profile = _told(computing=0, free=_MS)
    assert [line.zh for line in contradictions(profile)] == [
        "计算按算子为 1.200 ms，按采集自带的 step_trace_time 为 0.000 ms；算子有缺失或时钟不同",
        "空闲按算子为 0.100 ms，按采集自带的 step_trace_time 为 2.000 ms；算子有缺失或时钟不同",
    ]
