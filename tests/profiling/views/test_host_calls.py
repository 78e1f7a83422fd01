"""Idle time of the device is explained by what the host was doing at that time."""

from dataclasses import replace
from typing import Any

import polars as pl
import pytest

from jumar.profiling.advice.gate import free_share
from jumar.profiling.advice.todo import step_summary, todo_table
from jumar.profiling.profile import HOST_SCHEMA, OPS_SCHEMA, STEPS_SCHEMA, Profile
from jumar.profiling.views.collectives import collectives
from jumar.profiling.views.host_bound import host_bound
from jumar.profiling.views.host_calls import causes, free_time
from jumar.profiling.views.step_split import step_split
from jumar.profiling.views.view import VIEWS, Options
from tests.profiling.generated import frame, profile_of

MS = 1_000_000
STEP = 300 * MS
HOLE = (20 * MS, 237 * MS)
"""Where the device is idle in each step."""


def _op(step: int, start: int, length: int, **more: Any) -> dict[str, Any]:
    return {
        "rank": 0,
        "step": step,
        "stream": "7",
        "name": "mm",
        "type": "mm",
        "core": "CUDA",
        "start_ns": start,
        "duration_ns": length,
        **more,
    }


def _call(layer: str, name: str, start: int, length: int, **more: Any) -> dict[str, Any]:
    return {
        "rank": 0,
        "thread": "1",
        "layer": layer,
        "name": name,
        "start_ns": start,
        "duration_ns": length,
        **more,
    }


def _profile(*, layer: str = "", name: str = "", correlation: int | None = None) -> Profile:
    """Four steps; the device is idle during one call, inside the training loop."""
    ops: list[dict[str, Any]] = []
    host = [_call("python", "train.py(3): main", 0, 4 * STEP)]
    steps: list[dict[str, Any]] = []
    for step in range(4):
        begin = step * STEP
        steps.append({"rank": 0, "step": step, "start_ns": begin, "end_ns": begin + STEP})
        host.append(_call("mark", f"ProfilerStep#{step}", begin, STEP))
        ops.append(_op(step, begin, HOLE[0]))
        ops.append(_op(step, begin + HOLE[1], STEP - HOLE[1]))
        if name:
            more = {} if correlation is None else {"correlation": correlation + step}
            host.append(_call(layer, name, begin + HOLE[0], HOLE[1] - HOLE[0], **more))
        if correlation is not None:
            copy = {"core": "CUDA_MEMCPY", "kernel": "Memcpy HtoD (Pageable -> Device)"}
            length = HOLE[1] - HOLE[0]
            copy |= {"type": "Memcpy", "correlation": correlation + step}
            ops.append(_op(step, begin + HOLE[0], length, **copy))
    return Profile(
        source="x",
        producer="kineto",
        kind="cuda",
        ops=frame(ops, OPS_SCHEMA),
        steps=frame(steps, STEPS_SCHEMA),
        host=frame(host, HOST_SCHEMA),
    )


@pytest.mark.parametrize("layer", ["mark", "python", "op"])
def test_annotations_frames_and_ops_explain_the_gap_they_cover(layer: str) -> None:
    profile = _profile(layer=layer, name="preprocess")
    first = todo_table(profile).row(0, named=True)
    assert (first["key"], first["win_ms"]) == ("host-work", 217)
    assert first["what"] == "The device is idle 217.000 ms per step while the host is in preprocess"
    chinese = todo_table(profile, Options(language="zh")).row(0, named=True)
    assert chinese["what"] == "host 执行 preprocess 期间，设备每迭代空闲 217.000 ms"
    rows = {row["cause"]: row["free_ms"] for row in host_bound(profile, Options()).to_dicts()}
    assert rows == {"preprocess": 4 * 217, "none of these, or no call recorded": 0}


def test_all_enclosing_loop_explains_no_gap_but_is_still_listed() -> None:
    first = todo_table(_profile()).row(0, named=True)
    assert (first["key"], first["win_ms"]) == ("free", 217)
    (evidence,) = first["evidence"]
    assert "host calls cover 217.000 ms of it" in evidence
    alone = _profile()
    bare = Profile(source="x", producer="kineto", kind="cuda", ops=alone.ops, steps=alone.steps)
    assert todo_table(bare)["evidence"][0].to_list() == ["the profile has no host calls"]


def test_copy_from_pageable_memory_blocks_the_host() -> None:
    profile = _profile(layer="runtime", name="cudaMemcpyAsync", correlation=50)
    first = todo_table(profile).row(0, named=True)
    assert (first["key"], first["win_ms"]) == ("pageable-copy", 217)
    assert "pin_memory" in first["change"]
    pinned = profile.ops.with_columns(pl.col("kernel").str.replace("Pageable", "Pinned"))
    others = Profile(
        source="x",
        producer="kineto",
        kind="cuda",
        ops=pinned,
        steps=profile.steps,
        host=profile.host,
    )
    assert "pageable-copy" not in todo_table(others)["key"].to_list()


@pytest.mark.parametrize(
    ("entered", "expected"),
    [
        (5 * MS, "started the step 5.000 ms late"),
        (1 * MS, "4.000 ms of it in host call load"),
    ],
)
def test_late_rank_is_explained_by_its_step_or_its_activity(entered: int, expected: str) -> None:
    ops: list[dict[str, Any]] = []
    host: list[dict[str, Any]] = []
    steps: list[dict[str, Any]] = []
    for rank, late in ((0, 0), (1, entered)):
        steps.append({"rank": rank, "step": 10, "start_ns": late, "end_ns": late + 40 * MS})
        host.append(_call("mark", "ProfilerStep#10", late, 40 * MS, rank=rank))
        # The first rank waits for the other one, and both leave together.
        start, lasted = (15 * MS, 2 * MS) if rank else (10 * MS, 7 * MS)
        reduce = {"name": "ncclAllReduce", "core": "COMMUNICATION"}
        ops.append(_op(10, start, lasted, rank=rank, **reduce))
    host.append(_call("python", "load", 10 * MS, 4 * MS, rank=1))
    profile = Profile(
        source="x",
        producer="kineto",
        kind="cuda",
        ops=frame(ops, OPS_SCHEMA),
        steps=frame(steps, STEPS_SCHEMA),
        host=frame(host, HOST_SCHEMA),
    )
    assert set(collectives(profile, Options())["late_rank_did"]) == {expected}


def test_memory_copies_are_part_of_the_step_and_not_idle_time() -> None:
    profile = _profile(correlation=50)
    pinned = profile.ops.with_columns(pl.col("kernel").str.replace("Pageable", "Pinned"))
    # A copy during computing is hidden, and costs the step nothing.
    covered = pinned.filter(pl.col("kernel").is_not_null()).with_columns(
        start_ns=pl.lit(0, pl.Int64)
    )
    covered = covered.head(1).with_columns(duration_ns=pl.lit(MS, pl.Int64))
    ops = pl.concat([pinned, covered])
    profile = Profile(source="x", producer="kineto", kind="cuda", ops=ops, steps=profile.steps)
    for row in step_split(profile).to_dicts():
        parts = (row["computing_ns"], row["copying_ns"], row["free_ns"])
        assert parts == (83 * MS, 217 * MS, 0)
    table = VIEWS["steps"].make(profile, Options())
    assert table["copying_ms"].to_list() == [217.0] * 4
    assert free_share(profile) == 0
    first = todo_table(profile).row(0, named=True)
    assert (first["key"], first["win_ms"]) == ("memory-copies", 217)
    chinese = todo_table(profile, Options(language="zh")).row(0, named=True)
    assert chinese["what"] == "未被计算掩盖的内存拷贝：每迭代 217.000 ms"


def test_profile_without_copies_has_no_copy_part() -> None:
    assert step_split(_profile())["copying_ns"].to_list() == [None] * 4


def test_call_mostly_overlapping_compute_explains_no_gap() -> None:
    profile = _profile()
    begin = [_call("mark", "forward", step * STEP, 30 * MS) for step in range(4)]
    host = pl.concat([profile.host, frame(begin, HOST_SCHEMA)])
    mostly_busy = Profile(
        source="x", producer="kineto", kind="cuda", ops=profile.ops, steps=profile.steps, host=host
    )
    assert "host-work" not in todo_table(mostly_busy)["key"].to_list()


@pytest.mark.parametrize(
    ("layer", "name", "key"),
    [
        ("runtime", "hipMemcpyWithStream", "pageable-copy"),
        ("runtime", "cudaMemcpy", "pageable-copy"),
        ("cann", "aclrtMemcpy", "pageable-copy"),
        ("runtime", "cuMemcpyDtoH_v2", "pageable-copy"),
        ("runtime", "hipMemcpyAsync", "host-work"),
        ("runtime", "cuMemcpyHtoDAsync_v2", "host-work"),
        ("runtime", "hipStreamSynchronize", "blocking-call"),
    ],
)
def test_call_that_waits_for_the_device_is_not_a_launch(layer: str, name: str, key: str) -> None:
    profile = _profile(layer=layer, name=name)
    first = todo_table(profile).row(0, named=True)
    assert (first["key"], first["win_ms"]) == (key, 217)


def test_host_op_is_work_and_not_a_slow_launch() -> None:
    told = _profile(layer="op", name="aten::upsample_bilinear2d")
    # One step, so that no op lasts half of it; all was launched just before the holes.
    steps = frame(
        [{"rank": 0, "step": 0, "start_ns": 0, "end_ns": 4 * STEP}],
        STEPS_SCHEMA,
    )
    before = (pl.col("start_ns") + pl.col("duration_ns")).shift(1) - 10_000
    ops = told.ops.sort("start_ns").with_columns(
        pl.lit(0, pl.Int64).alias("step"), before.fill_null(0).alias("launch_ns")
    )
    resized = replace(told, ops=ops, steps=steps)
    first = todo_table(resized).row(0, named=True)
    assert (first["key"], first["win_ms"]) == ("host-work", 4 * 217)
    launched = ops.with_columns(launch_ns=pl.col("start_ns") - 100 * MS)
    first = todo_table(replace(resized, ops=launched)).row(0, named=True)
    assert (first["key"], first["win_ms"]) == ("launching", 4 * 217)
    (evidence,) = first["evidence"]
    assert evidence == "4 gaps per step: median 217.000 ms of it in each, at most 217.000 ms"


def test_capture_without_marks_is_reported_as_one_step() -> None:
    assert "average of 4 steady steps" in step_summary(_profile(), Options())
    unmarked = _profile()
    unmarked = replace(
        unmarked,
        ops=unmarked.ops.with_columns(pl.lit(None, pl.Int64).alias("step")),
        steps=unmarked.steps.clear(),
    )
    assert "no steps are marked: the whole capture counts as one" in step_summary(
        unmarked, Options()
    )
    assert "未标出迭代" in step_summary(unmarked, Options(language="zh"))


US = 1000
_KERNELS = ((0, 0, 100), (0, 900, 100), (1, 1_000, 100), (1, 1_900, 100))
"""Step, start and length of the ops of two steps, each of a millisecond, mostly idle."""


def _idle(*calls: dict[str, Any], more: tuple[dict[str, Any], ...] = (), **told: Any) -> Profile:
    """Those steps with calls in microseconds."""
    ops = [_op(step, start * US, length * US) for step, start, length in _KERNELS]
    host = [
        call | {name: call[name] * US for name in ("start_ns", "duration_ns")} for call in calls
    ]
    return profile_of([*ops, *more], kind="cuda", host=host, **told)


def _causes(profile: Profile) -> list[tuple[Any, ...]]:
    def spans_of(table: pl.DataFrame) -> list[tuple[int, float, float]]:
        return [(rank, start / US, end / US) for rank, start, end in table.rows()]

    return [
        (
            *(cause.label.en, cause.kind, cause.calls),
            {rank: longest / US for rank, longest in cause.longest_ns.items()},
            *(spans_of(cause.host), spans_of(cause.alone)),
        )
        for cause in causes(profile)
    ]


def test_calls_a_step_are_the_outermost_ones_in_steady_steps() -> None:
    calls = (
        _call("op", "aten::item", 150, 100, thread="main"),
        _call("op", "aten::_local_scalar_dense", 150, 100, thread="main"),
        _call("op", "aten::_local_scalar_dense", 160, 50, thread="other"),
        _call("op", "aten::item", 240, 50, thread="main"),
        _call("op", "aten::item", 1_990, 20, thread="main"),
        _call("op", "aten::item", 2_000, 700, thread="main"),
    )
    (item,) = (cause for cause in causes(_idle(*calls)) if cause.label.en == "aten::item")
    assert (item.calls, item.steady_calls, item.longest_ns) == ({0: 5}, {0: 4}, {0: 100 * US})
    # Three steps, of which the first is warm-up.
    warm = [_op(2, 2_000 * US, 100 * US), _op(2, 2_600 * US, 100 * US)]
    more = _idle(*calls, more=(*warm, _op(0, -5_000 * US, 100 * US)))
    (item,) = (cause for cause in causes(more) if cause.label.en == "aten::item")
    assert item.steady_calls == {0: 2}


def test_each_host_moment_has_its_most_specific_cause() -> None:
    copy = _op(0, 500 * US, 1, core="CUDA_MEMCPY", kernel="Memcpy (Pageable -> Device)")
    profile = _idle(
        _call("op", "enumerate(DataLoader)#x.__next__", 100, 100),
        _call("mark", "data", 150, 110),
        _call("op", "aten::item", 250, 100),
        _call("op", "aten::_local_scalar_dense", 260, 60, rank=None),
        _call("op", "aten::item", 1_500, 7, rank=1),
        _call("runtime", "cudaMemcpyAsync", 340, 60, correlation=7),
        _call("runtime", "cudaMemcpy", 390, 60),
        _call("cann", "aclrtSynchronizeStream", 440, 40),
        _call("mark", "gc", 470, 30),
        _call("op", "aten::add", 490, 70),
        _call("dequeue", "x", 560, 40),
        _call("python", "resize", 640, 60),
        _call("op", "aten::mul", 600, 0),
        more=(copy | {"correlation": 7, "rank": None},),
    )
    assert _causes(profile) == [
        ("waiting for data", "data", {0: 2}, {0: 110}, [(0, 100, 260)], [(0, 100, 260)]),
        (
            *("aten::item", "blocking", {0: 1, 1: 1}, {0: 100, 1: 7}),
            *([(0, 250, 350), (1, 1_500, 1_507)], [(0, 260, 350), (1, 1_500, 1_507)]),
        ),
        ("copies of pageable memory", "copy", {0: 1}, {0: 60}, [(0, 340, 400)], [(0, 350, 400)]),
        ("synchronous copies", "copy", {0: 1}, {0: 60}, [(0, 390, 450)], [(0, 400, 450)]),
        ("stream synchronisation", "blocking", {0: 1}, {0: 40}, [(0, 440, 480)], [(0, 450, 480)]),
        ("garbage collection", "collector", {0: 1}, {0: 30}, [(0, 470, 500)], [(0, 480, 500)]),
        # Every call is inside one that launches, including those with a cause.
        (
            *("launching ops", "launching", {0: 7, 1: 1}, {0: 100, 1: 7}),
            *(
                [(0, 100, 200), (0, 250, 480), (0, 490, 600), (1, 1_500, 1_507)],
                [(0, 500, 600)],
            ),
        ),
        ("resize", "covering", {0: 1}, {0: 60}, [(0, 640, 700)], [(0, 640, 700)]),
    ]
    assert causes(profile) is causes(profile)


@pytest.mark.parametrize(
    ("layer", "name", "label"),
    [
        ("op", "aten::is_nonzero", "aten::is_nonzero"),
        ("op", "aten::nonzero_numpy", "aten::nonzero"),
        ("op", "aten::argwhere", "aten::nonzero"),
        ("op", "aten::masked_select", "aten::masked_select"),
        ("op", "aten::_unique2", "aten::unique"),
        ("op", "aten::unique_dim", "aten::unique"),
        ("op", "aten::equal", "aten::equal"),
        ("op", "aten::numpy", "stream synchronisation"),
        ("runtime", "cudaEventSynchronize", "stream synchronisation"),
        ("runtime", "hipMemcpy2D", "synchronous copies"),
        ("op", "cudaMemcpy", "launching ops"),
        ("op", "aten::item_", "launching ops"),
        ("runtime", "cuMemcpyHtoDAsync_v2", "launching ops"),
        ("mark", "get_next", "waiting for data"),
        ("op", "data_wait", "waiting for data"),
        ("mark", "database", "database"),
        ("mark", "Garbage", "garbage collection"),
        ("python", "gc", "gc"),
        ("python", "DataLoader", "DataLoader"),
    ],
)
def test_cause_of_a_call_follows_from_name_and_layer(layer: str, name: str, label: str) -> None:
    found = _causes(_idle(_call(layer, name, 300, 50)))
    assert found[0][0] == label
    assert {cause[0] for cause in found[1:]} <= {"launching ops"}


@pytest.mark.parametrize(
    ("change", "found"),
    [
        ({}, True),
        ({"core": "CUDA_MEMSET"}, True),
        ({"core": "CUDA"}, False),
        ({"kernel": "Memcpy HtoD (Pinned -> Device)"}, False),
        ({"kernel": None}, False),
        ({"correlation": 8}, False),
        ({"correlation": None}, False),
        ({"rank": 1}, False),
    ],
)
def test_pageable_copy_is_recognised_by_the_copy_it_launched(
    change: dict[str, Any], found: bool
) -> None:
    copy = _op(0, 500 * US, 1, core="CUDA_MEMCPY", kernel="Memcpy (PAGEABLE -> Device)")
    copy |= {"correlation": 7} | change
    profile = _idle(_call("runtime", "cudaMemcpyAsync", 340, 60, correlation=7), more=(copy,))
    assert ("copies of pageable memory" in [cause[0] for cause in _causes(profile)]) == found
    of_op = _idle(_call("op", "cudaMemcpyAsync", 340, 60, correlation=7), more=(copy,))
    assert "copies of pageable memory" not in [cause[0] for cause in _causes(of_op)]


@pytest.mark.parametrize(("length", "kind"), [(499, "launching"), (500, "covering")])
def test_call_lasting_half_a_step_is_not_a_launch(length: int, kind: str) -> None:
    assert [cause[1] for cause in _causes(_idle(_call("runtime", "x", 200, length)))] == [kind]


@pytest.mark.parametrize(
    ("length", "launch", "layer", "kind"),
    [
        (199, 190, "op", "launching"),
        (200, 199, "op", "covering"),
        (200, 200, "op", "launching"),
        (200, 400, "op", "launching"),
        (200, 401, "op", "covering"),
        (200, 199, "runtime", "launching"),
        (200, None, "op", "launching"),
    ],
)
def test_op_without_launches_for_long_counts_as_host_compute(
    length: int, launch: int | None, layer: str, kind: str
) -> None:
    launched = _op(0, 950 * US, 1, launch_ns=None if launch is None else launch * US, rank=None)
    profile = _idle(_call(layer, "aten::resize", 200, length, rank=None), more=(launched,))
    assert [cause[1] for cause in _causes(profile)] == [kind]
    other = _op(0, 950 * US, 1, launch_ns=250 * US, rank=1)
    beside = _idle(_call(layer, "aten::resize", 200, length), more=(launched, other))
    assert [cause[1] for cause in _causes(beside)] == [
        "covering" if layer == "op" and length == 200 and launch not in (200, 400) else "launching"
    ]


@pytest.mark.parametrize(
    ("calls", "expected"),
    [
        # Of calls that explain about as much, the shorter; little is then left of the other.
        ([("outer", 100, 800), ("inner", 100, 760)], ["inner"]),
        ([("outer", 100, 800), ("inner", 100, 759)], ["outer"]),
        ([("b", 100, 50), ("a", 100, 50)], ["a"]),
        # Half of a call must be idle time.
        ([("half", 0, 200)], ["half"]),
        ([("less", -2, 202)], []),
        # Calls as long as a step lie over everything.
        ([("long", 100, 899)], ["long"]),
        ([("long", 100, 900)], []),
        ([("ProfilerStep#4", 200, 300)], []),
        ([("twice", 100, 300), ("twice", 1_200, 400), ("once", 500, 250)], ["twice", "once"]),
        (
            [(name, 100 + 100 * place, 90 - 10 * place) for place, name in enumerate("abcdef")],
            [*"abcd"],
        ),
    ],
)
def test_calls_overlapping_idle_time_explain_it(
    calls: list[tuple[str, int, int]], expected: list[str]
) -> None:
    profile = _idle(*(_call("python", name, start, length) for name, start, length in calls))
    assert [cause[0] for cause in _causes(profile)] == expected
    assert {cause[1] for cause in _causes(profile)} <= {"covering"}


def test_on_a_cpu_nothing_is_idle_and_without_ops_calls_of_any_length_are_launches() -> None:
    calls = (_call("python", "x", 200, 50), _call("op", "aten::add", 200, 9_000))
    assert [cause[1] for cause in _causes(replace(_idle(*calls), kind="cpu"))] == []
    alone = replace(_idle(*calls), kind="cpu", ops=_idle().ops.clear())
    assert _causes(alone) == [
        ("launching ops", "launching", {0: 1}, {0: 9_000}, [(0, 200, 9_200)], [(0, 200, 9_200)])
    ]


def test_device_is_free_if_neither_computing_nor_communicating() -> None:
    sent = _op(0, 300 * US, 50 * US, core="COMMUNICATION")
    copied = _op(0, 400 * US, 50 * US, core="CUDA_MEMCPY")
    windows = pl.DataFrame(
        {"rank": [0, 1], "start_ns": [50 * US, 0], "end_ns": [950 * US, 10]},
        schema_overrides={"rank": pl.Int32},
    )
    assert free_time(_idle(more=(sent, copied)), windows).rows() == [
        (0, 100 * US, 300 * US),
        (0, 350 * US, 900 * US),
        (1, 0, 10),
    ]
