"""How collectives spend their time, which rank is late, and what it did until then."""

import warnings
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jumar.profiling.profile import Profile
from jumar.profiling.views.collectives import collective_rows, collectives
from jumar.profiling.views.view import VIEWS, Impossible, Options
from tests.profiling.generated import profile_of

_US = 1000


def _op(rank: int | None, start: int, length: int, **more: Any) -> dict[str, Any]:
    row = {"rank": rank, "step": 0, "name": "a", "type": "Add", "core": "AI_CORE"}
    return row | {"start_ns": start * _US, "duration_ns": length * _US} | more


def _all(rank: int | None, start: int, length: int, **more: Any) -> dict[str, Any]:
    row = {"rank": rank, "step": 0, "name": "all", "group": "world"}
    return row | {"start_ns": start * _US, "elapse_ns": length * _US} | more


def _call(name: str, start: int, length: int, rank: int | None = 1) -> dict[str, Any]:
    row = {"rank": rank, "layer": "op", "name": name}
    return row | {"start_ns": start * _US, "duration_ns": length * _US}


def test_each_rank_has_a_row_longest_first_with_the_last_arrival() -> None:
    known = {"transit_ns": 10 * _US, "wait_ns": 35 * _US, "idle_ns": 5 * _US}
    profile = profile_of(
        [_op(0, 0, 110), _op(0, 140, 5), _op(1, 0, 130), _op(None, 0, 1)],
        collectives=[
            _all(None, 100, 50, **known),
            _all(1, 130, 20, transit_ns=20 * _US, idle_ns=0),
            _all(0, 200, 30, name="other"),
            _all(1, 200, 40, name="other"),
            _all(0, 300, 9, name="alone"),
            _all(0, 300, 0, name="no length"),
            _all(0, 300, 9, name="no start", start_ns=None),
        ],
    )
    table = VIEWS["collectives"].make(profile, Options())
    assert table.columns == [
        *("name", "rank", "step", "elapse_ms", "transit_ms", "wait_ms", "idle_ms"),
        *("uncovered_ms", "late_rank", "late_ms", "late_rank_did"),
    ]
    did = "0.030 ms of it computing Add"
    assert table.rows() == [
        ("all", 0, 0, 0.05, 0.01, 0.035, 0.005, 0.035, 1, 0.03, did),
        ("other", 1, 0, 0.04, None, 0.01, None, 0.04, None, 0.0, ""),
        ("other", 0, 0, 0.03, None, 0.0, None, 0.03, None, 0.0, ""),
        ("all", 1, 0, 0.02, 0.02, None, 0.0, 0.02, 1, 0.03, did),
        ("alone", 0, 0, 0.009, None, None, None, 0.009, None, None, ""),
    ]


def test_ops_serve_as_collectives_without_a_table() -> None:
    sent = {"core": "COMMUNICATION", "name": "all"}
    profile = profile_of([_op(0, 5, 7, **sent), _op(0, 9, 9), _op(1, 6, 5, **sent)])
    rows = collective_rows(profile)
    assert rows.to_dicts() == [
        {
            "rank": rank,
            "step": 0,
            "name": "all",
            "group": None,
            "start_ns": start,
            "elapse_ns": length,
            "transit_ns": None,
            "wait_ns": wait,
            "synchronization_ns": None,
            "idle_ns": None,
            "turn": 0,
            "uncovered_ns": uncovered,
        }
        for rank, start, length, wait, uncovered in (
            (0, 5000, 7000, 2000, 4000),
            (1, 6000, 5000, 0, 5000),
        )
    ]
    bare = collective_rows(profile, uncovered=False)
    assert bare.drop("uncovered_ns").equals(rows.drop("uncovered_ns"))
    assert bare["uncovered_ns"].to_list() == [None, None]
    table = profile_of(collectives=[_all(0, 1, 2)])
    assert collective_rows(table)["uncovered_ns"].to_list() == [None]


def test_repeated_name_belongs_to_its_nth_occurrence() -> None:
    rows = [_all(rank, start, 10 * (1 + rank) + start) for rank in (1, 0) for start in (300, 0)]
    more = [
        _all(rank, 50, 30 + rank, **{name: "x"}) for rank in (0, 1) for name in ("group", "name")
    ]
    more += [_all(rank, 50, 40 + rank, step=1) for rank in (0, 1)]
    found = collective_rows(profile_of(collectives=[*rows, *more]), uncovered=False)
    keys = ("rank", "start_ns", "name", "group", "step", "turn", "wait_ns")
    assert sorted(found.select(keys).rows()) == [
        (0, 0, "all", "world", 0, 0, 0),
        (0, 50_000, "all", "world", 1, 0, 0),
        (0, 50_000, "all", "x", 0, 0, 0),
        (0, 50_000, "x", "world", 0, 0, 0),
        (0, 300_000, "all", "world", 0, 1, 0),
        (1, 0, "all", "world", 0, 0, 10_000),
        (1, 50_000, "all", "world", 1, 0, 1_000),
        (1, 50_000, "all", "x", 0, 0, 1_000),
        (1, 50_000, "x", "world", 0, 0, 1_000),
        (1, 300_000, "all", "world", 0, 1, 10_000),
    ]
    assert found["start_ns"].to_list() == sorted(found["start_ns"][:5]) * 2
    assert found["rank"].to_list() == [0] * 5 + [1] * 5


def test_capture_without_collectives_says_so() -> None:
    for profile in (profile_of([_op(0, 1, 1)]), profile_of(collectives=[_all(0, 1, 0)])):
        with pytest.raises(Impossible) as told:
            collective_rows(profile)
        assert str(told.value) == (
            "needs collectives (communication.json, or communication ops); "
            "a run on one device has none"
        )


_SPANS = st.lists(st.tuples(st.integers(0, 1), st.integers(0, 40), st.integers(1, 12)), max_size=8)


@given(_SPANS.filter(bool), _SPANS)
@settings(max_examples=40)
def test_uncovered_time_matches_a_moment_by_moment_count(
    talks: list[tuple[int, int, int]], works: list[tuple[int, int, int]]
) -> None:
    profile = profile_of(
        [_op(rank, start, length) for rank, start, length in works] or [_op(0, 900, 1)],
        collectives=[_all(rank, start, length) for rank, start, length in talks],
    )
    busy = {(rank, at) for rank, start, length in works for at in range(start, start + length)}
    for row in collective_rows(profile).to_dicts():
        start, end = row["start_ns"] // _US, (row["start_ns"] + row["elapse_ns"]) // _US
        bare = sum((row["rank"], at) not in busy for at in range(start, end))
        assert row["uncovered_ns"] == bare * _US


def _late(*ops: dict[str, Any], by: int = 100, **more: Any) -> Profile:
    """Rank 1 is later than rank 0 by the given microseconds."""
    rows = [_all(0, 1_000, 500), _all(1, 1_000 + by, 500 - by)]
    return profile_of([_op(0, 0, 1), *ops], collectives=rows, **more)


def _did(profile: Profile, **more: Any) -> str:
    (text,) = set(collectives(profile, Options(**more))["late_rank_did"].to_list())
    return text


def test_late_rank_is_explained_by_its_longest_activity_until_arrival() -> None:
    # Only what lies between the two begins counts: 40 of the sum's 50 us and 30 of 90.
    ops = [_op(1, 990, 30), _op(1, 1_080, 50), _op(1, 1_020, 39, type="Mul"), _op(0, 1_000, 99)]
    assert _did(_late(*ops)) == "0.040 ms of it computing Add"
    assert _did(_late(*ops), language="zh") == "其中 0.040 ms 计算 Add"
    equal = [_op(1, 1_000, 20, type="Mul"), _op(1, 1_040, 20, type="Add")]
    assert _did(_late(*equal)) == "0.020 ms of it computing Add"
    assert _did(_late(_op(1, 1_000, 20, type=None))) == "0.020 ms of it computing ?"
    # What ends when the first rank came, or begins when the late one did, is beside it.
    assert _did(_late(_op(1, 900, 100), _op(1, 1_100, 50))) == "no ops or calls recorded"
    assert _did(_late(), language="zh") == "没有记录到算子和调用"


def test_call_explains_lateness_unless_it_is_long_or_marks_the_step() -> None:
    def did(*calls: dict[str, Any], ops: tuple[dict[str, Any], ...] = ()) -> str:
        return _did(_late(*ops, host=list(calls)))

    assert (
        did(_call("load", 950, 150), ops=(_op(1, 1_000, 99),)) == "0.100 ms of it in host call load"
    )
    # For equal times the op is named.
    assert did(_call("load", 1_000, 99), ops=(_op(1, 1_000, 99),)) == "0.099 ms of it computing Add"
    assert did(_call("load", 0, 1_999)) == "0.100 ms of it in host call load"
    assert did(_call("main", 0, 2_000)) == "no ops or calls recorded"
    assert did(_call("ProfilerStep#3", 950, 150)) == "no ops or calls recorded"
    assert did(_call("load", 950, 150, rank=0)) == "no ops or calls recorded"
    zh = _did(_late(host=[_call("load", 950, 150)]), language="zh")
    assert zh == "其中 0.100 ms host 执行 load"


@pytest.mark.parametrize(("late", "entered"), [(80, True), (79, False)])
def test_rank_with_a_late_step_start_is_explained_by_it(late: int, entered: bool) -> None:
    def mark(rank: int | None, start: int | None, step: int = 0) -> dict[str, Any]:
        own = None if start is None else start * _US
        return {"rank": rank, "step": step, "start_ns": own}

    steps = [mark(None, 500), mark(1, 500 + late), mark(1, None), mark(1, 0, step=1), mark(2, 505)]
    text = _did(_late(_op(1, 1_000, 29), steps=steps))
    entered_late = "started the step 0.080 ms late"
    assert text == (entered_late if entered else "0.029 ms of it computing Add")
    zh = _did(_late(_op(1, 1_000, 29), steps=steps), language="zh")
    entered_late = "晚 0.080 ms 进入该迭代"
    assert zh == (entered_late if entered else "其中 0.029 ms 计算 Add")
    others = _did(_late(_op(1, 1_000, 29), steps=[mark(0, 5), mark(2, 90)]))
    assert others == "0.029 ms of it computing Add"


def test_ops_on_several_streams_cover_no_more_than_the_delay() -> None:
    ops = [_op(1, 1_000, 80), {**_op(1, 1_000, 80), "stream": "8"}]
    assert _did(_late(*ops)) == "0.100 ms of it computing Add"


@pytest.mark.filterwarnings("error")
def test_collective_outside_any_step_is_not_explained_by_a_step() -> None:
    rows = [_all(0, 1_000, 500, step=None), _all(1, 1_100, 400, step=None)]
    steps = [{"rank": rank, "step": None, "start_ns": rank * 100 * _US} for rank in (0, 1)]
    profile = profile_of([_op(0, 0, 1), _op(1, 1_000, 30)], collectives=rows, steps=steps)
    assert _did(profile) == "0.030 ms of it computing Add"


def test_highest_of_equally_late_ranks_is_named() -> None:
    rows = [_all(0, 0, 90), _all(2, 10, 80), _all(1, 10, 80)]
    table = collectives(profile_of([_op(0, 0, 1)], collectives=rows), Options())
    assert table["late_rank"].to_list() == [2, 2, 2]
    assert table["late_ns"].to_list() == [10_000] * 3


@pytest.mark.parametrize(
    ("start", "lasted", "late"),
    [
        *((1_500, 200, 500_000), (1_501, 200, None)),
        # By half of 200 us the first rank must last longer, or their clocks differ.
        *((1_200, 400, 200_000), (1_200, 401, None), (1_200, 500, None), (1_000, 600, 0)),
    ],
)
def test_rank_that_no_other_waited_for_is_not_late(
    start: int, lasted: int, late: int | None
) -> None:
    rows = [_all(0, 1_000, 500), _all(1, start, lasted)]
    table = collectives(profile_of([_op(0, 0, 1)], collectives=rows), Options())
    assert table["late_ns"].to_list() == [late] * 2
    assert table["late_rank"].to_list() == [1 if late else None] * 2
    did = "no ops or calls recorded" if late else ""
    assert table["late_rank_did"].to_list() == [did] * 2


def test_late_ranks_are_explained_for_the_fifty_longest_collectives() -> None:
    rows = [
        row
        for number in range(26)
        for row in (
            _all(0, 1_000 * number, 500 - number, name=f"{number}"),
            _all(1, 1_000 * number + 1, 499 - number, name=f"{number}"),
        )
    ]
    table = collectives(profile_of([_op(0, 0, 1)], collectives=rows), Options())
    assert table["late_rank_did"].to_list() == ["no ops or calls recorded"] * 50 + [""] * 2


def test_collectives_raise_no_warnings() -> None:
    profile = profile_of(
        [_op(0, 0, 110), _op(1, 0, 130)], collectives=[_all(0, 100, 50), _all(1, 130, 20)]
    )
    # Not turned into errors: polars drops an exception that its warning raises.
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        rows = collective_rows(profile)
    assert [each.message for each in caught if each.category is UserWarning] == []
    assert rows["uncovered_ns"].to_list() == [40_000, 20_000]
