"""The lanes of ops on the page's timeline, as data."""

from typing import Any

import pytest

from jumar.profiling.advice.todo import todo
from jumar.profiling.page import timeline as module
from jumar.profiling.page.op_groups import group_ops
from jumar.profiling.page.time_range import TimeRange, time_range_of
from jumar.profiling.page.timeline import timeline
from jumar.profiling.page.todo_intervals import todo_intervals
from jumar.profiling.profile import Profile
from jumar.profiling.views import Options
from tests.profiling.generated import profile_of


def _op(start: int, length: int, stream: str | None = "7", **more: Any) -> dict[str, Any]:
    row = {"rank": 0, "step": 0, "stream": stream, "name": "a", "type": "Add", "core": "AI_CORE"}
    return row | {"start_ns": 1000 + start, "duration_ns": length} | more


def _drawn(profile: Profile, language: Any = "en") -> dict[str, Any]:
    time_range = time_range_of(profile.ops, profile.host)
    return timeline(profile.ops, group_ops(profile.ops), profile, time_range, language)


_OPS = [
    _op(0, 50),
    _op(60, 40, type="Mul"),
    _op(50, 10, core="COMMUNICATION"),
    _op(20, 5, None, rank=None),
    _op(100, 30, step=1, launch_ns=1090),
    _op(10, 70, "3", rank=1),
]


def test_each_stream_is_a_lane_sorted_by_rank() -> None:
    drawn = _drawn(profile_of(_OPS))
    assert drawn["lanes"] == [
        *("rank 0 · ops", "rank 0 · stream 7", "rank 0 · communication 7", "rank 1 · stream 3")
    ]
    assert drawn["ranks"] == [0, 0, 0, 1]
    assert (drawn["span"], drawn["left_out"]) == (130, 0)
    assert drawn["levels"] == [
        {
            "width": 0,
            "lanes": [
                [[20], [5], [0], [], [], [None]],
                [[0, 60, 40], [50, 40, 30], [0, 1, 0], [], [], [None, None, 10]],
                [[50], [10], [2], [], [], [None]],
                [[10], [70], [0], [], [], [None]],
            ],
        }
    ]
    assert drawn["steps"] == [[0, 0, 0, 100], [0, 1, 100, 130], [1, 0, 10, 80]]
    assert (drawn["host"], drawn["memory"]) == (None, {"curves": [], "left_out": 0})


def test_launches_are_omitted_if_unknown() -> None:
    drawn = _drawn(profile_of(_OPS[:3]))
    assert drawn["lanes"] == ["stream 7", "communication 7"]
    assert [lane[5] for lane in drawn["levels"][0]["lanes"]] == [[], []]
    on_cpu = _drawn(profile_of(_OPS[:1], kind="cpu"))
    assert on_cpu["lanes"] == ["thread 7"]


def test_lanes_with_the_most_time_are_drawn_and_the_rest_counted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert module.MAX_LANES == 24
    monkeypatch.setattr(module, "MAX_LANES", 2)
    drawn = _drawn(profile_of(_OPS))
    assert (drawn["lanes"], drawn["left_out"]) == (["rank 0 · stream 7", "rank 1 · stream 3"], 2)
    equal = [
        _op(10 * place, 5, stream, rank=rank)
        for place, (rank, stream) in enumerate([(1, "b"), (1, "a"), (0, "b"), (0, "a")])
    ]
    drawn = _drawn(profile_of(equal))
    assert drawn["lanes"] == ["rank 0 · stream a", "rank 0 · stream b"]


def _many() -> Profile:
    """Five steps, each of seven short ops of 10 ns with as long a gap."""
    ops = [
        _op(1000 * step + 20 * place, 10, "78"[place % 2], step=step)
        for step in range(5)
        for place in range(7)
    ]
    # The third step ends latest, so that it is the longest.
    return profile_of([*ops, _op(2500, 10, step=2)])


@pytest.mark.parametrize(("boxes", "detailed"), [(110, False), (107, True)])
def test_middle_step_is_drawn_completely_if_levels_cannot_hold_all_ops(
    boxes: int, detailed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MAX_BOXES", boxes)
    drawn = _drawn(_many())
    levels = [level for level in drawn["levels"] if "from" in level]
    assert bool(levels) == detailed
    if not detailed:
        return
    (level,) = levels
    # Steps last 130, 1000, 1380, 620 and 1000 ns; the median began at 1130 or 3130 ends so.
    assert (level["from"], level["to"], level["width"]) == (130, 1130, 0)
    assert level["lanes"] == [
        [[1000, 40, 40, 40], [10] * 4, [0] * 4, [], [], []],
        [[1020, 40, 40], [10] * 3, [0] * 3, [], [], []],
    ]


def test_step_with_too_many_ops_is_drawn_at_its_beginning(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "MAX_BOXES", 3)
    monkeypatch.setattr(module, "MAX_IN_DETAIL", 3)
    level = _drawn(_many())["levels"][-1]
    assert (level["from"], level["to"]) == (130, 1060)
    assert [lane[0] for lane in level["lanes"]] == [[1000, 40], [1020]]
    monkeypatch.setattr(module, "MAX_IN_DETAIL", 7)
    level = _drawn(_many())["levels"][-1]
    assert (level["to"], sum(len(lane[0]) for lane in level["lanes"])) == (1130, 7)


def test_at_most_five_hundred_steps_are_marked() -> None:
    ops = [_op(10 * step, 10, step=step) for step in range(501)]
    assert len(_drawn(profile_of(ops))["steps"]) == 500


def test_timeline_spans_the_first_to_the_last_event() -> None:
    ops = profile_of([_op(10, 20), _op(0, 5)]).ops

    def time_range(*calls: tuple[int, int]) -> TimeRange:
        host = [{"start_ns": 1000 + start, "duration_ns": length} for start, length in calls]
        return time_range_of(ops, profile_of(host=host).host)

    assert time_range() == TimeRange(1000, 30)
    assert time_range((5, 5)) == TimeRange(1000, 30)
    assert time_range((-30, 5), (40, 20)) == TimeRange(970, 90)
    assert time_range((-31, 5), (40, 21)) == TimeRange(970, 90)
    assert time_range_of(profile_of([_op(0, 0)]).ops, profile_of().host) == TimeRange(1000, 1)


def test_moments_of_a_line_are_clipped_to_the_shown_range() -> None:
    ops = [_op(0, 1000), _op(1500, 1000), _op(3000, 1000)]
    profile = profile_of(ops, kind="cuda")
    assert [line.finding.name for line in todo(profile)] == ["free"]
    assert todo_intervals(profile, Options(), TimeRange(1000, 4000)) == [
        {"intervals": [[1000, 1500], [2500, 3000]], "count": 2}
    ]
    assert todo_intervals(profile, Options(), TimeRange(2200, 1400)) == [
        {"intervals": [[0, 300], [1300, 1400]], "count": 2}
    ]
    assert todo_intervals(profile, Options(), TimeRange(2500, 1000)) == [
        {"intervals": [], "count": 2}
    ]
    assert todo_intervals(profile_of(), Options(), TimeRange(0, 1)) == []


def test_lane_names_have_at_most_forty_characters() -> None:
    drawn = _drawn(profile_of([_op(0, 5, "x" * 60)]))
    assert drawn["lanes"] == ["stream " + "x" * 32 + "…"]
