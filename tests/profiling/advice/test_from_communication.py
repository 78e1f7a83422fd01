"""Collectives as advice: waiting for ranks, and transfers that nothing covers."""

from typing import Any

import pytest

from jumar.profiling.advice.finding import Case
from jumar.profiling.advice.from_communication import transfers, waiting
from jumar.profiling.profile import Profile
from jumar.profiling.views.view import Options
from tests.profiling.generated import profile_of

_US = 1000


def _op(rank: int, start: int, length: int, core: str = "CUDA", **more: Any) -> dict[str, Any]:
    row = {"rank": rank, "step": 0, "name": "a", "type": "Add", "core": core}
    return row | {"start_ns": start * _US, "duration_ns": length * _US} | more


def _all(rank: int, start: int, length: int, **more: Any) -> dict[str, Any]:
    row = {"rank": rank, "step": 0, "name": "all", "start_ns": start * _US}
    parts = {
        f"{name}_ns": more.pop(name) * _US for name in ("wait", "idle", "transit") if name in more
    }
    return row | {"elapse_ns": length * _US} | parts | more


def _claim(profile: Profile, **more: Any) -> tuple[Any, list[str], list[tuple[int, int]]]:
    (claim,) = waiting(Case(profile, Options(**more)))
    language = more.get("language", "en")
    spans = [(start // _US, end // _US) for _, start, end in claim.spans.rows()]
    return claim.values, [line.in_language(language) for line in claim.evidence], spans


def test_waiting_share_of_uncovered_collectives_is_saved() -> None:
    rows = [
        _all(0, 100, 100, wait=30, idle=20, transit=50),
        # Begins within the first: from there on its own share counts.
        _all(0, 140, 20, wait=20, name="second"),
        _all(0, 300, 50, idle=40, name="third"),
        _all(0, 400, 10, transit=10, name="no wait"),
        _all(0, 600, 30, wait=10, name="fourth"),
        _all(1, 100, 9, wait=9),
    ]
    sent = [
        _op(0, row["start_ns"] // _US, row["elapse_ns"] // _US, "COMMUNICATION") for row in rows[:5]
    ]
    profile = profile_of([_op(0, 0, 100), _op(0, 310, 20), _op(0, 700, 9), *sent], collectives=rows)
    values, evidence, spans = _claim(profile)
    assert values == {"name": "all", "lasts": "0.100 ms", "still": "0.050 ms"}
    assert spans == [(100, 120), (140, 160), (160, 200), (300, 308), (330, 346), (600, 610)]
    assert evidence == [
        "rank 0: all 0.100 ms: 0.050 ms transfer, 0.030 ms wait, 0.020 ms idle",
        "rank 0: third 0.050 ms: 0.040 ms idle",
        "rank 0: fourth 0.030 ms: 0.010 ms wait",
    ]
    _, chinese, _ = _claim(profile, language="zh")
    assert chinese[0] == "卡 0：all 0.100 ms：传输 0.050 ms，等待 0.030 ms，空闲 0.020 ms"


def test_no_saving_is_claimed_without_waiting_or_uncovered_communication() -> None:
    sent = _op(0, 100, 50, "COMMUNICATION")
    for ops, rows in (
        ([_op(0, 0, 100)], []),
        ([_op(0, 0, 100), sent], [_all(0, 100, 50, transit=50, wait=0)]),
        ([_op(0, 0, 200), sent], [_all(0, 100, 50, wait=20)]),
        ([_op(0, 0, 200)], [_all(0, 100, 50, wait=20)]),
    ):
        case = Case(profile_of(ops, collectives=rows), Options())
        assert list(waiting(case)) == []
    assert list(transfers(Case(profile_of([_op(0, 0, 200), sent]), Options()))) == []


def _two(late: int, **more: Any) -> Profile:
    """A collective of two ranks, to which rank 1 comes so many nanoseconds later."""
    rows = [_all(0, 100, 200, wait=100), _all(1, 100, 100, transit=100)]
    rows[1]["start_ns"] += late
    ops = [_op(0, 0, 100), _op(0, 100, 200, "COMMUNICATION"), _op(0, 300, 1)]
    ops += [_op(1, 0, 110, type="Pad"), _op(1, 110, 191, "COMMUNICATION")]
    return profile_of(ops, kind="cuda", collectives=rows, **more)


@pytest.mark.parametrize("late", [50_000, 50_001])
def test_late_rank_is_named_from_fifty_microseconds(late: int) -> None:
    _, evidence, _ = _claim(_two(late))
    _, chinese, _ = _claim(_two(late), language="zh")
    first = "rank 0: all 0.200 ms: 0.100 ms wait"
    said = "rank 1 entered all 0.050 ms after the first rank: 0.010 ms of it computing Pad"
    assert evidence == ([first, said] if late > 50_000 else [first])
    assert chinese[1:] == (
        ["卡 1 比最早的卡晚 0.050 ms 进入 all：其中 0.010 ms 计算 Pad"] if late > 50_000 else []
    )


def test_unrecorded_participating_ranks_are_named() -> None:
    links = [
        {"rank": 0, "source": source, "destination": destination}
        for source, destination in ((0, 5), (1, 0), (None, None), (7, 3))
    ]
    _, evidence, _ = _claim(_two(0, links=links))
    assert evidence[1:] == [
        "ranks 3, 5, 7 also take part but are not in this profile; while all profiled ranks are "
        "idle, the late rank is one of the missing ones"
    ]
    alone = [_op(0, 0, 100), _op(0, 100, 50, "COMMUNICATION")]
    one = profile_of(alone, collectives=[_all(0, 100, 50, wait=9)], links=links)
    assert len(_claim(one)[1]) == 1


def test_blocking_host_call_is_named_above_a_twentieth() -> None:
    def call(name: str, start: int, length: int) -> dict[str, Any]:
        row = {"rank": 0, "layer": "op", "name": name}
        return row | {"start_ns": start * _US, "duration_ns": length * _US}

    def said(*calls: dict[str, Any], **more: Any) -> list[str]:
        return _claim(_two(0, host=list(calls)), **more)[1][1:]

    stood = "meanwhile the host spent {} per step in {}"
    assert said(call("aten::item", 150, 10)) == []
    assert said(call("aten::item", 90, 21)) == [stood.format("0.011 ms", "aten::item")]
    assert said(call("aten::item", 150, 11), language="zh") == [
        "其间 host 每迭代在 aten::item 中阻塞 0.011 ms"
    ]
    assert said(call("gc", 150, 90), call("DataLoader", 250, 20)) == []
    names = ("aten::item", "aten::is_nonzero", "aten::equal")
    several = [call(name, 120 + 40 * place, 30) for place, name in enumerate(names)]
    assert said(*several) == [stood.format("0.030 ms", name) for name in names[:2]]


def test_transfers_are_reported_per_step_with_the_uncovered_part() -> None:
    ops = [_op(0, 0, 100), _op(0, 80, 50, "COMMUNICATION"), _op(0, 200, 50)]
    ops += [_op(0, 300, 100, step=1), _op(0, 400, 21, "COMMUNICATION", step=1)]
    (claim,) = transfers(Case(profile_of(ops), Options()))
    assert claim.values == {"bare": "0.025 ms"}
    assert [row[1:] for row in claim.spans.rows()] == [(100_000, 130_000), (400_000, 421_000)]
    assert claim.evidence[0].en == (
        "0.035 ms of communication per step, of which 0.025 ms uncovered (waiting is counted "
        "separately)"
    )
