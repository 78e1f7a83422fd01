"""When each step begins and ends, and which ops compute, communicate or copy."""

from typing import Any

import polars as pl
import pytest

from jumar.profiling.profile import DeviceKind, Profile
from jumar.profiling.views.windows import (
    WINDOWS,
    as_spans,
    busy_union,
    communicates,
    communication_spans,
    computing,
    computing_spans,
    computing_union,
    copying_union,
    has_steps,
    is_communication,
    steady,
    step_windows,
    within,
)
from tests.profiling.generated import profile_of


def _op(start: int | None, length: int | None, **more: Any) -> dict[str, Any]:
    row = {"rank": 0, "name": "a", "core": "AI_CORE", "start_ns": start, "duration_ns": length}
    return row | more


@pytest.mark.parametrize(
    ("core", "name", "talks"),
    [
        ("COMMUNICATION", "a", True),
        ("COMMUNICATION", None, True),
        (None, "HCOM_allReduce", True),
        (None, "ncclDevKernel", True),
        (None, "gloo:all_reduce", True),
        (None, "c10d::allreduce_", True),
        (None, "my_hcom_op", False),
        (None, None, False),
        ("AI_CORE", "hcom_allReduce", False),
    ],
)
def test_collective_is_recognised_by_core_or_name(
    core: str | None, name: str | None, talks: bool
) -> None:
    table = profile_of([_op(0, 1, core=core, name=name)]).ops
    assert table.select(is_communication()).to_series().to_list() == [talks]
    assert table.filter(communicates(table)).height == int(talks)
    assert computing(table).height == int(not talks)


def test_copies_and_collectives_do_not_compute() -> None:
    cores = ("AI_CORE", "COMMUNICATION", "CUDA_MEMCPY", "CUDA_MEMSET", None, "CUDA")
    profile = profile_of(
        [_op(10 * place, 5, core=core, rank=None) for place, core in enumerate(cores)]
    )
    assert computing_spans(profile)["start_ns"].to_list() == [0, 40, 50]
    assert communication_spans(profile).rows() == [(0, 10, 15)]
    assert copying_union(profile).rows() == [(0, 20, 25), (0, 30, 35)]
    assert computing_union(profile).rows() == [(0, 0, 5), (0, 40, 45), (0, 50, 55)]
    assert busy_union(profile).rows() == [(0, 0, 5), (0, 10, 15), (0, 40, 45), (0, 50, 55)]


def test_separate_collective_table_counts_if_no_op_is_a_collective() -> None:
    table = [{"rank": 0, "name": "all", "start_ns": 3, "elapse_ns": 7}]
    alone = profile_of([_op(0, 5)], collectives=table)
    assert communication_spans(alone).rows() == [(0, 3, 10)]
    assert busy_union(alone).rows() == [(0, 0, 10)]
    both = profile_of([_op(0, 5, core="COMMUNICATION")], collectives=table)
    assert communication_spans(both).rows() == [(0, 0, 5)]
    none = profile_of([_op(0, 5)])
    assert communication_spans(none).rows() == []
    assert busy_union(none).rows() == [(0, 0, 5)]


def _mark(step: int, start: int | None, end: int | None, rank: int | None = 0) -> dict[str, Any]:
    return {"rank": rank, "step": step, "start_ns": start, "end_ns": end}


_STEPPED = [
    _op(100, 50, step=0),
    _op(120, 10, step=0, rank=None),
    _op(140, 60, step=1),
    _op(300, None, step=1),
    _op(50, 10, step=0, rank=1),
    _op(None, 99, step=5),
    _op(500, 0, step=6),
]


def _windows(profile: Profile) -> list[tuple[int, int, int, int, int]]:
    table = step_windows(profile)
    assert dict(table.schema) == WINDOWS
    return table.rows()


def test_steps_follow_the_device_ops_without_overlap() -> None:
    marks = [_mark(0, 80, 130), _mark(0, 10, 130), _mark(1, 130, 900), _mark(0, 55, 90, rank=1)]
    profile = profile_of(_STEPPED, steps=marks)
    assert _windows(profile) == [
        (0, 0, 80, 100, 140),
        (0, 1, 140, 140, 300),
        (1, 0, 50, 50, 60),
    ]
    assert has_steps(profile)
    unmarked = profile_of(_STEPPED)
    assert _windows(unmarked)[0] == (0, 0, 100, 100, 140)
    assert has_steps(unmarked)


@pytest.mark.parametrize(
    ("copied", "computed", "expected"),
    [
        # Copied ahead during the previous step, next to its ops or overlapping its end.
        (150, 210, [(0, 0, 100, 100, 200), (0, 1, 200, 200, 310)]),
        (199, 210, [(0, 0, 100, 100, 200), (0, 1, 200, 200, 310)]),
        # Its own op starts before the step before has ended.
        (150, 190, [(0, 0, 100, 100, 190), (0, 1, 190, 190, 290)]),
        # Copied after it: the step waits for its batch.
        (200, 240, [(0, 0, 100, 100, 200), (0, 1, 200, 200, 340)]),
        (205, 240, [(0, 0, 100, 100, 200), (0, 1, 200, 205, 340)]),
    ],
)
@pytest.mark.parametrize("core", ["CUDA_MEMCPY", "CUDA_MEMSET"])
def test_batch_copied_ahead_does_not_cut_the_step_before(
    copied: int, computed: int, expected: list[tuple[int, ...]], core: str
) -> None:
    ops = [_op(100, 100, step=0), _op(copied, 20, step=1, core=core)]
    ops.append(_op(computed, 100, step=1))
    beside = [_op(150, 5, step=1, core=core, rank=1), _op(160, 5, step=1, rank=1)]
    windows = [*expected, (1, 1, 150, 150, 165)]
    assert _windows(profile_of([*ops, *beside], kind="cuda")) == windows


def test_batch_copied_ahead_of_a_step_that_outlasts_the_next_begins_no_step() -> None:
    ops = [_op(100, 200, step=0), _op(200, 50, step=1)]
    ops += [_op(260, 20, step=2, core="CUDA_MEMCPY"), _op(310, 50, step=2)]
    assert _windows(profile_of(ops, kind="cuda"))[1:] == [
        (0, 1, 200, 200, 250),
        (0, 2, 250, 300, 360),
    ]


def test_step_of_nothing_but_copies_made_ahead_has_no_time() -> None:
    ops = [_op(100, 100, step=0), _op(150, 20, step=1, core="CUDA_MEMCPY")]
    assert _windows(profile_of(ops, kind="cuda")) == [(0, 0, 100, 100, 200)]


@pytest.mark.parametrize(
    ("others", "begin"),
    [
        # What ran before the first op of the first step ends, at the latest, where that begins.
        ([_op(20, 30), _op(40, 30), _op(60, None)], 80),
        ([_op(20, 65), _op(10, 5)], 85),
        ([_op(20, 500)], 100),
        ([_op(99, None, rank=None)], 99),
        # Neither what starts later nor what ran on another rank is of a step before.
        ([_op(100, 5), _op(130, 5), _op(20, 70, rank=1), _op(None, 90)], 80),
    ],
)
def test_first_step_begins_when_ops_before_it_have_ended(
    others: list[dict[str, Any]], begin: int
) -> None:
    ops = [_op(100, 20, step=3), _op(200, 20, step=4)]
    profile = profile_of([*ops, *others], steps=[_mark(3, 80, 150), _mark(4, 150, 300)])
    assert _windows(profile) == [(0, 3, begin, 100, 120), (0, 4, 120, 200, 220)]
    unmarked = profile_of([*ops, *others])
    assert _windows(unmarked)[0] == (0, 3, 100, 100, 120)


@pytest.mark.parametrize(
    ("kind", "ops", "expected"),
    [
        # On a CPU and where ops name no step, the marks count; a wrong one is left out.
        ("cpu", _STEPPED, [(0, 0, 80, 80, 130), (0, 1, 130, 130, 900)]),
        ("npu", [_op(100, 50)], [(0, 0, 80, 80, 130), (0, 1, 130, 130, 900)]),
        ("npu", [], [(0, 0, 80, 80, 130), (0, 1, 130, 130, 900)]),
        ("cuda", [_op(100, 50, step=7)], [(0, 7, 100, 100, 150)]),
    ],
)
def test_marks_are_used_if_ops_have_no_step(
    kind: DeviceKind, ops: list[dict[str, Any]], expected: list[tuple[int, ...]]
) -> None:
    marks = [_mark(0, 80, 130), _mark(1, 130, 900, rank=None), _mark(2, 20, 20)]
    profile = profile_of(ops, kind=kind, steps=[*marks, _mark(3, None, 50), _mark(4, 50, None)])
    assert _windows(profile) == expected
    assert has_steps(profile)


def test_without_marks_a_cpu_uses_the_steps_of_its_ops() -> None:
    assert _windows(profile_of(_STEPPED, kind="cpu"))[0] == (0, 0, 100, 100, 140)


def test_everything_is_one_step_if_none_is_marked() -> None:
    profile = profile_of([_op(100, 50), _op(300, None), _op(40, 5, rank=1), _op(None, 3)])
    assert _windows(profile) == [(0, 0, 100, 100, 300), (1, 0, 40, 40, 45)]
    assert not has_steps(profile)
    assert has_steps(profile_of([_op(1, 1), _op(2, 1, step=3)]))
    assert not has_steps(profile_of([_op(1, 1)], steps=[_mark(0, None, 5)]))
    assert has_steps(profile_of([_op(1, 1)], steps=[_mark(0, 1, 5)]))


def _lasting(*lengths: int, rank: int = 0) -> pl.DataFrame:
    rows: list[tuple[int, int, int, int, int]] = []
    now = 1000
    for step, length in enumerate(lengths):
        rows.append((rank, step, now, now + 1, now + length))
        now += length
    return pl.DataFrame(rows, schema=WINDOWS, orient="row")


@pytest.mark.parametrize(
    ("lengths", "kept"),
    [
        ((99, 10), [0, 1]),
        ((99, 1), [0, 1]),
        ((99, 10, 10), [1, 2]),
        ((15, 10, 10), [0, 1, 2]),
        ((16, 10, 10), [1, 2]),
        ((10, 99, 10, 10), [0, 1, 2, 3]),
        ((99, 99, 99, 10, 10, 10), [3, 4, 5]),
        # At most half of them is warm-up.
        ((99, 99, 99, 99, 10, 10, 10), [3, 4, 5, 6]),
        # Of the later half the median, of two the longer.
        ((45, 10, 20, 30), [0, 1, 2, 3]),
        ((46, 10, 20, 30), [1, 2, 3]),
        # A last step that is cut.
        ((10, 10, 5), [0, 1, 2]),
        ((10, 10, 4), [0, 1]),
        ((10, 4), [0, 1]),
        ((10,), [0]),
    ],
)
def test_steady_steps_exclude_warm_up_and_a_truncated_end(
    lengths: tuple[int, ...], kept: list[int]
) -> None:
    assert steady(_lasting(*lengths))["step"].to_list() == kept
    both = pl.concat([_lasting(*lengths), _lasting(50, 50, 50, rank=1)])
    assert steady(both).select("rank", "step").rows() == [
        *((0, step) for step in kept),
        *((1, step) for step in range(3)),
    ]


def test_zero_steps_give_no_steady_steps() -> None:
    assert steady(_lasting()).rows() == []


def test_windows_are_filled_from_their_start() -> None:
    windows = pl.DataFrame(
        [(0, 0, 0, 10, 20), (0, 1, 20, 25, 40), (1, 0, 0, 0, 9)], schema=WINDOWS, orient="row"
    )
    filled = pl.DataFrame(
        {"rank": [0, 0, 0], "start_ns": [2, 8, 22], "end_ns": [5, 12, 50]},
        schema_overrides={"rank": pl.Int32},
    )
    assert within(windows, filled).to_list() == [2, 15, 0]
    assert as_spans(windows).rows() == [(0, 0, 20), (0, 20, 40), (1, 0, 9)]


@pytest.mark.parametrize("asked", [computing_union, communication_spans, copying_union, busy_union])
def test_shared_intermediate_results_are_computed_once(asked: Any) -> None:
    profile = profile_of([_op(0, 5), _op(9, 5, core="COMMUNICATION")])
    assert asked(profile) is asked(profile)
