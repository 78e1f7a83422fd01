"""What findings see of a profile, what they are declared as, and how their texts are filled."""

from functools import partial
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jumar.ground.text import Text
from jumar.profiling.advice import (
    from_communication,
    from_counters,
    from_environment,
    from_host,
    from_ops,
    from_optimizer,
    from_sequences,
    from_vocabulary,
)
from jumar.profiling.advice.finding import FINDINGS, Case, Claim, Finding, carved, ms, untranslated
from jumar.profiling.views.intervals import SPAN
from jumar.profiling.views.view import Options
from tests.profiling.generated import profile_of

DECLARED = {
    "collective-wait": (from_communication, 10, "", "collectives", False),
    "launch-blocking": (from_environment, 14, "", "environment", False),
    "unfused-optimizer": (from_optimizer, 15, "optimizer.fused", "launches", True),
    "data-stall": (from_host, 20, "data.workers", "data", False),
    "blocking-call": (from_host, 21, "training.log_every", "host", False),
    "pageable-copy": (from_host, 21, "", "host", False),
    "collector": (from_host, 22, "", "host", False),
    "launching": (from_host, 23, "training.compile", "launches", False),
    "host-work": (from_host, 24, "", "host", False),
    "memory-copies": (from_host, 24, "", "steps", False),
    "waiting-ops": (from_host, 24, "", "host", False),
    "free": (from_host, 25, "training.compile", "launches", False),
    "ai-cpu": (from_ops, 30, "", "aicpu", True),
    "whole-logits": (from_vocabulary, 35, "", "by-shape", True),
    "fusible-sequence": (from_sequences, 37, "", "fusion", True),
    "format-changes": (from_ops, 40, "training.channels_last", "casts", True),
    "casts": (from_ops, 50, "precision.modify_mixlist", "casts", True),
    "low-clock": (from_ops, 60, "", "frequency", True),
    "wide-types": (from_ops, 70, "precision.mode", "by-dtype", True),
    "scalar-bound": (from_counters, 75, "", "roofline", True),
    "head-room": (from_ops, 80, "", "roofline", True),
    "uncovered-communication": (from_communication, 90, "", "steps", False),
}
"""Module, place, setting, view, and whether ops are claimed: who comes first has the time, and a
finding of another package stands between two of ours."""


def test_findings_have_a_fixed_priority_with_settings_and_views() -> None:
    assert list(FINDINGS) == list(DECLARED)
    for name, (module, *declared) in DECLARED.items():
        one = FINDINGS[name]
        assert [one.order, one.setting, one.view, one.of_ops] == declared
        search = one.search.func if isinstance(one.search, partial) else one.search
        assert search.__module__ == module.__name__
        assert one.certain == (name == "data-stall")


def test_third_party_finding_comes_last_and_is_an_estimate() -> None:
    text = untranslated("x")
    own = Finding(name="own", what=text, change=text, search=lambda _: ())
    assert (own.order, own.setting, own.view, own.of_ops, own.certain) == (
        1000,
        "",
        "",
        False,
        False,
    )
    assert "search" not in repr(own)
    claim = Claim(values={}, spans=pl.DataFrame({"big": [1]}), evidence=())
    assert claim.host_ns == 0
    assert "spans" not in repr(claim)
    for made, name in ((own, "order"), (claim, "host_ns")):
        with pytest.raises(AttributeError):
            setattr(made, name, 3)
    with pytest.raises(TypeError):
        Finding("own", text, text, lambda _: ())  # pyright: ignore[reportCallIssue]
    with pytest.raises(TypeError):
        Claim({}, pl.DataFrame(), ())  # pyright: ignore[reportCallIssue]


def test_times_are_in_milliseconds_and_names_equal_in_both_languages() -> None:
    assert ms(1_234_567) == "1.235 ms"
    assert untranslated("3 x Add") == Text(en="3 x Add", zh="3 x Add")


def _spans(*rows: tuple[int, int, int]) -> pl.DataFrame:
    return pl.DataFrame(rows, schema=SPAN, orient="row")


def test_intervals_are_scaled_to_the_saved_share() -> None:
    table = _spans((0, 10, 17), (1, 20, 21), (0, 30, 40))
    assert carved(table, 0.5).rows() == [(0, 10, 13), (0, 30, 35)]
    assert carved(table, 1.5).rows() == table.rows()
    assert carved(table, -1.0).rows() == []
    own = table.with_columns(pl.Series("part", [1.0, 0.9, 0.1]))
    assert carved(own, pl.col("part")).rows() == [(0, 10, 17), (0, 30, 31)]


def _op(start: int, length: int, step: int = 0, **more: Any) -> dict[str, Any]:
    row = {"rank": 0, "step": step, "name": "a", "type": "Add", "core": "CUDA"}
    return row | {"start_ns": start, "duration_ns": length} | more


def _call(layer: str, name: str, start: int, length: int, **more: Any) -> dict[str, Any]:
    row = {"rank": 0, "layer": layer, "name": name}
    return row | {"start_ns": start, "duration_ns": length} | more


_OPS = [
    _op(0, 40),
    _op(30, 30, type="Mul"),
    _op(50, 30, core="COMMUNICATION"),
    _op(80, 10, core="CUDA_MEMCPY"),
    _op(100, 100, 1, rank=None),
    _op(130, 20, 1),
    # Of another rank, which is quicker, and after the last step.
    _op(0, 70, rank=1),
    _op(90, 70, 1, rank=1, core="COMMUNICATION"),
    _op(85, 9, 1, rank=1, core="CUDA_MEMCPY"),
]


def test_case_covers_the_slowest_rank_in_its_steps() -> None:
    case = Case(profile_of(_OPS, kind="cuda"), Options())
    assert (case.rank, case.steps, case.step_ns) == (0, 2, 100.0)
    assert case.windows.select("begin_ns", "start_ns", "end_ns").rows() == [
        (0, 0, 90),
        (90, 100, 200),
    ]
    assert case.step_spans.rows() == [(0, 0, 90), (0, 90, 200)]
    assert case.ops.select("rank", "start_ns", "duration_ns").rows() == [
        (0, 0, 40),
        (0, 30, 30),
        (None, 100, 100),
        (0, 130, 20),
    ]
    found = case.kinds.sort("type").select("type", "count", "duration_ns").rows()
    assert found == [("Add", 3, 160), ("Mul", 1, 30)]
    (add, mul) = (case.kinds.filter(type=kind) for kind in ("Add", "Mul"))
    assert case.ops_of(add)["start_ns"].to_list() == [0, 100, 130]
    assert case.ops_of(mul)["start_ns"].to_list() == [30]
    assert case.computing.rows() == [(0, 0, 60), (0, 100, 200)]
    assert case.concurrent.rows() == [(0, 30, 40), (0, 130, 150)]
    assert case.communicating.rows() == [(0, 50, 80)]
    assert case.uncovered.rows() == [(0, 60, 80)]
    assert case.free.rows() == [(0, 80, 100)]
    assert case.copying.rows() == [(0, 80, 90)]


def test_rows_of_a_case_are_in_its_steps_including_both_ends() -> None:
    case = Case(profile_of(_OPS), Options())
    rows = pl.DataFrame({"rank": [0, None, 0, 0, 1], "start_ns": [0, 200, -1, 201, 50]})
    assert case.in_scope(rows)["start_ns"].to_list() == [0, 200]
    nothing = Case(profile_of(), Options())
    assert (nothing.rank, nothing.steps, nothing.step_ns) == (0, 1, 0.0)
    assert nothing.in_scope(rows).is_empty()
    assert nothing.ops.is_empty()
    alone = Case(profile_of([_op(0, 5, rank=3)]), Options())
    assert (alone.rank, alone.steps) == (3, 1)


def _rank(rank: int, length: int, talks: int = 0) -> list[dict[str, Any]]:
    ops = [_op(0, length - talks, rank=rank)]
    sent = _op(length - talks, talks, rank=rank, core="COMMUNICATION")
    return [*ops, sent] if talks else ops


@pytest.mark.parametrize(
    ("ops", "rank"),
    [
        (_rank(0, 99) + _rank(1, 100), 0),
        (_rank(0, 97) + _rank(1, 100), 1),
        (_rank(0, 98) + _rank(1, 100), 0),
        # Of ranks that step together the one that waits longest sets the pace.
        (_rank(0, 100, 10) + _rank(1, 98, 20), 1),
        (_rank(0, 100, 10) + _rank(1, 97, 20), 0),
        (_rank(0, 100, 20) + _rank(1, 100, 20) + _rank(2, 100, 10), 0),
        (_rank(2, 100) + _rank(1, 100), 1),
    ],
)
def test_synchronised_ranks_are_represented_by_the_longest_waiting_one(
    ops: list[dict[str, Any]], rank: int
) -> None:
    assert Case(profile_of(ops), Options()).rank == rank


def test_case_excludes_warm_up() -> None:
    ops = [_op(0, 900), _op(900, 100, 1), _op(1_000, 120, 2), _op(1_120, 101, 3)]
    case = Case(profile_of(ops), Options())
    assert (case.steps, case.step_ns) == (3, 107.0)
    assert case.ops["start_ns"].to_list() == [900, 1_000, 1_120]


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(1, 9)), min_size=1, max_size=12))
@settings(max_examples=40)
def test_overlapping_ops_are_counted_by_moment(ops: list[tuple[int, int]]) -> None:
    case = Case(profile_of([_op(start, length) for start, length in ops]), Options())
    moments = [at for start, length in ops for at in range(start, start + length)]
    found = [at for _, start, end in case.concurrent.rows() for at in range(start, end)]
    assert found == sorted({at for at in moments if moments.count(at) > 1})


def test_each_cause_gets_the_idle_time_not_claimed_earlier() -> None:
    us = 1000
    steps = [
        {"rank": None, "step": 0, "data_ns": 100 * us},
        {"rank": 0, "step": 0, "data_ns": 300 * us},
        {"rank": 1, "step": 1, "data_ns": 50 * us},
        {"rank": 0, "step": 1, "data_ns": 0},
    ]
    ops = [_op(0, 10 * us), _op(900 * us, 100 * us), _op(1_000 * us, 10 * us, 1)]
    ops += [_op(1_900 * us, 100 * us, 1), _op(800 * us, 50 * us, core="COMMUNICATION")]
    host = [
        _call("op", "aten::item", 50 * us, 200 * us),
        _call("op", "aten::equal", 200 * us, 150 * us),
        _call("op", "aten::equal", 790 * us, 120 * us),
        _call("op", "aten::equal", 1_950 * us, 100 * us),
    ]
    case = Case(profile_of(ops, kind="cuda", steps=steps, host=host), Options())
    assert case.augmenting.rows() == [(0, 0, 100 * us)]
    blames, left = case.blames
    assert [blame.cause.label.en for blame in blames] == [
        "aten::item",
        "aten::equal",
        "launching ops",
    ]

    def total(table: pl.DataFrame) -> int:
        return int((table["end_ns"] - table["start_ns"]).sum()) // us

    assert [total(blame.free) for blame in blames] == [150, 160, 0]
    assert [total(blame.host) for blame in blames] == [200, 150 + 120 + 50, 470]
    assert [blame.overlap_ns // us for blame in blames] == [0, 50, 50]
    # Idle are 10 to 800, 850 to 900 and 1010 to 1900, of which 90 are waiting for data.
    assert total(left) == 790 + 50 + 890 - 90 - 310


def test_on_a_cpu_only_loader_calls_count_as_idle() -> None:
    host = [_call("op", "DataLoader", 10, 20), _call("op", "aten::item", 50, 20)]
    blames, left = Case(profile_of([_op(20, 80)], kind="cpu", host=host), Options()).blames
    assert left.rows() == []
    ((cause, on_host, free, beside),) = blames
    assert (cause.kind, beside) == ("data", 0)
    assert on_host.rows() == free.rows() == [(0, 20, 30)]
