"""Host calls, memory and places of findings on the timeline."""

from dataclasses import replace
from typing import Any

import polars as pl
import pytest

from jumar.profiling.advice.todo import todo
from jumar.profiling.page import host_lanes as lanes_module
from jumar.profiling.page.host_lanes import host_lanes
from jumar.profiling.page.memory_curve import memory_curves
from jumar.profiling.page.time_range import TimeRange, time_range_of
from jumar.profiling.page.todo_intervals import todo_intervals
from jumar.profiling.profile import HOST_SCHEMA, Profile
from jumar.profiling.views import Options
from tests.profiling.generated import EPOCH_NS, frame, training


def _call(name: str, start: int, duration: int, **more: Any) -> dict[str, Any]:
    row = {"rank": 0, "thread": "1", "layer": "op", "name": name}
    return row | {"start_ns": EPOCH_NS + start, "duration_ns": duration} | more


def _with_calls(*calls: dict[str, Any]) -> Profile:
    return replace(training(steps=2), host=frame(calls, HOST_SCHEMA))


def _boxes(host: dict[str, Any], lane: int) -> list[tuple[str, int, int]]:
    """Name, start and length of the boxes of a lane, at the finest level."""
    steps, lengths, labels, *_ = host["levels"][-1]["lanes"][lane]
    at, boxes = 0, []
    for step, length, label in zip(steps, lengths, labels, strict=True):
        at += step
        boxes.append((host["names"][label], at, length))
    return boxes


def test_host_calls_have_a_lane_per_depth_and_thread() -> None:
    profile = _with_calls(
        _call("outer", 0, 900),
        _call("inner", 100, 300),
        _call("innermost", 100, 50),
        _call("second", 500, 100),
        _call("elsewhere", 0, 40, thread="2"),
    )
    host = host_lanes(profile, TimeRange(EPOCH_NS, 20_000_000), None, "en")
    assert host is not None
    assert host["lanes"] == ["host thread 1", "", "", "host thread 2"]
    assert _boxes(host, 0) == [("outer", 0, 900)]
    assert _boxes(host, 1) == [("inner", 100, 300), ("second", 500, 100)]
    assert _boxes(host, 2) == [("innermost", 100, 50)]
    assert _boxes(host, 3) == [("elsewhere", 0, 40)]


def test_timeline_includes_calls_around_the_ops_but_not_from_other_times() -> None:
    profile = training(steps=2)
    assert time_range_of(profile.ops, profile.host) == TimeRange(EPOCH_NS, 20_000_000)
    near = frame([_call("before", -3000, 10), _call("after", 20_000_000, 500)], HOST_SCHEMA)
    assert time_range_of(profile.ops, near) == TimeRange(EPOCH_NS - 3000, 20_003_500)
    far = frame([_call("other clock", -EPOCH_NS, 10)], HOST_SCHEMA)
    assert time_range_of(profile.ops, far) == TimeRange(EPOCH_NS - 20_000_000, 40_000_000)


def test_longest_calls_are_shown_and_the_rest_counted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(lanes_module, "MAX_CALLS", 2)
    profile = _with_calls(*(_call(f"call{n}", 1000 * n, 100 - n) for n in range(5)))
    host = host_lanes(profile, TimeRange(EPOCH_NS, 20_000_000), None, "en")
    assert host is not None
    assert host["left_out"] == 3
    assert [name for name, _, _ in _boxes(host, 0)] == ["call0", "call1"]


def test_omitted_threads_are_counted_and_stay_in_the_call_tree(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(lanes_module, "MAX_THREADS", 1)
    profile = _with_calls(_call("a", 0, 10), _call("b", 20, 10), _call("c", 0, 500, thread="2"))
    host = host_lanes(profile, TimeRange(EPOCH_NS, 20_000_000), None, "en")
    assert host is not None
    assert (host["lanes"], host["threads_left_out"]) == (["host thread 1"], 1)
    assert [tree[:2] for tree in host["tree"]] == [["host thread 2", 500], ["host thread 1", 20]]


def test_calls_too_deep_to_draw_are_counted_and_stay_in_the_call_tree(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(lanes_module, "MAX_LEVELS", 2)
    profile = _with_calls(_call("a", 0, 90), _call("b", 10, 60), _call("c", 20, 30))
    host = host_lanes(profile, TimeRange(EPOCH_NS, 20_000_000), None, "en")
    assert host is not None
    assert (len(host["lanes"]), host["too_deep"]) == (2, 1)
    [[_, _, _, [[_, _, _, [[_, total, _, [inner]]]]]]] = host["tree"]
    assert (total, inner[1]) == (60, 30)


def test_omitted_memory_curves_are_counted() -> None:
    record = pl.DataFrame(
        {
            "component": [f"part {number}" for number in range(11) for _ in range(2)],
            "timestamp_ns": [EPOCH_NS + at for _ in range(11) for at in (0, 100)],
            "total_allocated_bytes": [1] * 22,
        }
    )
    profile = replace(training(steps=2), statistics={"memory_record": record})
    drawn = memory_curves(profile, TimeRange(EPOCH_NS, 20_000_000), "en")
    assert (len(drawn["curves"]), drawn["left_out"]) == (8, 3)


def test_detailed_step_has_every_call_even_if_levels_merge_some(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(lanes_module, "_MAX_BOXES", 5)
    profile = _with_calls(*(_call("short", 1000 * n, 10) for n in range(400)))
    host = host_lanes(profile, TimeRange(EPOCH_NS, 20_000_000), (100_000, 200_000), "en")
    assert host is not None
    assert host["levels"][0]["width"] > 0
    detail = host["levels"][-1]
    assert (detail["from"], detail["to"], detail["width"]) == (100_000, 200_000, 0)
    assert len(detail["lanes"][0][0]) == 100


def test_memory_curve_keeps_its_peaks_with_any_number_of_points() -> None:
    count = 50_000
    held = pl.Series([7] * count)
    held[31_234] = 9_000
    record = pl.DataFrame(
        {
            "timestamp_ns": pl.int_range(count, eager=True) * 400 + EPOCH_NS,
            "total_allocated_bytes": held,
            "total_reserved_bytes": pl.Series([10_000] * count),
        }
    )
    profile = replace(training(steps=2), statistics={"memory_record": record})
    [curve] = memory_curves(profile, TimeRange(EPOCH_NS, 20_000_000), "en")["curves"]
    assert len(curve["at"]) < 3000
    assert max(curve["allocated"]) == 9_000
    at = sum(curve["at"][: curve["allocated"].index(9_000) + 1])
    assert at == 31_234 * 400
    assert set(curve["reserved"]) == {10_000}


def test_to_do_line_links_to_its_longest_moments() -> None:
    profile = training(steps=4, casts=2, loader_ns=5_000_000)
    lines = todo(profile)
    shown = todo_intervals(profile, Options(), TimeRange(EPOCH_NS, 70_000_000))
    assert len(shown) == len(lines)
    [stalls] = [
        place["intervals"]
        for place, line in zip(shown, lines, strict=True)
        if line.finding.name == "data-stall"
    ]
    step = 5_000_000 + 10_000_000 + 2 * 200_000
    assert stalls == [[step * number, step * number + 5_000_000] for number in range(4)]
    for line in shown:
        assert line["intervals"] == sorted(line["intervals"])
        assert line["count"] >= len(line["intervals"]) > 0


def test_page_has_all_call_data_it_needs() -> None:
    profile = replace(
        training(steps=1, ranks=2),
        host=frame(
            [
                _call("load", 100, 50, rank=1, thread="b"),
                _call("load", 0, 300, layer="python"),
                _call("add", 10, 40),
                _call("add", 100, 60),
                _call("late", 900, 500),
                _call("early", -50, 60, rank=None, thread=None),
                _call("outside", 1_000, 5),
                _call("unknown", 5, 1) | {"name": None, "layer": None, "thread": "c"},
            ],
            HOST_SCHEMA,
        ),
    )
    host = host_lanes(profile, TimeRange(EPOCH_NS, 1_000), None, "en")
    assert host == {
        "lanes": [
            *("rank 0 · host thread 1", "", "rank 0 · host thread", "rank 0 · host thread c"),
            "rank 1 · host thread b",
        ],
        "ranks": [0, 0, 0, 0, 1],
        "levels": [
            {
                "width": 0,
                "lanes": [
                    [[0, 900], [300, 100], [0, 2], [], [], []],
                    [[10, 90], [40, 60], [1, 1], [], [], []],
                    [[0], [10], [4], [], [], []],
                    [[5], [1], [5], [], [], []],
                    [[100], [50], [3], [], [], []],
                ],
            }
        ],
        "names": ["load", "add", "late", "load", "early", ""],
        "layers": ["python", "op", "op", "op", "op", ""],
        "counts": [1, 2, 1, 1, 1, 1],
        "tree": [
            ["rank 0 · host thread 1", 400, 0, [[0, 300, 1, [[1, 100, 2, []]]], [2, 100, 1, []]]],
            ["rank 1 · host thread b", 50, 0, [[3, 50, 1, []]]],
            ["rank 0 · host thread", 10, 0, [[4, 10, 1, []]]],
            ["rank 0 · host thread c", 1, 0, [[5, 1, 1, []]]],
        ],
        "left_out": 0,
        "too_deep": 0,
        "threads_left_out": 0,
    }
    assert host_lanes(_with_calls(), TimeRange(EPOCH_NS, 1_000), None, "en") is None
    one = host_lanes(
        _with_calls(_call("a", 0, 5, thread="t" * 60)), TimeRange(EPOCH_NS, 9), None, "en"
    )
    assert one is not None
    assert one["lanes"] == ["host thread " + "t" * 27 + "…"]


def test_rare_names_are_merged_by_their_layer(monkeypatch: pytest.MonkeyPatch) -> None:
    assert (lanes_module.MAX_CALLS, lanes_module.MAX_THREADS) == (300_000, 8)
    assert (lanes_module.MAX_LEVELS, lanes_module._MAX_NAMES) == (16, 3000)  # pyright: ignore
    monkeypatch.setattr(lanes_module, "_MAX_NAMES", 2)
    calls = [_call(name, 100 * place, 50 - place) for place, name in enumerate("abcd")]
    calls += [_call("e", 500, 9, layer="cann"), _call("x" * 200, 600, 90)]
    host = host_lanes(_with_calls(*calls), TimeRange(EPOCH_NS, 1_000), None, "en")
    assert host is not None
    assert host["names"] == ["x" * 119 + "…", "a", "…", "…"]
    assert (host["layers"], host["counts"]) == (["op", "op", "op", "cann"], [1, 1, 3, 1])


def test_step_with_too_many_calls_is_detailed_at_its_beginning(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(lanes_module, "_MAX_BOXES", 5)
    monkeypatch.setattr(lanes_module, "_MAX_IN_DETAIL", 7)
    profile = _with_calls(*(_call("short", 1000 * n, 10) for n in range(400)))

    def detail(low: int, high: int) -> tuple[int, int, int]:
        host = host_lanes(profile, TimeRange(EPOCH_NS, 20_000_000), (low, high), "en")
        assert host is not None
        level = host["levels"][-1]
        return level["from"], level["to"], len(level["lanes"][0][0])

    assert detail(100_000, 110_000) == (100_000, 107_000, 7)
    assert detail(100_000, 107_000) == (100_000, 107_000, 7)
    # A call that ends where the step begins, or begins where it ends, is not in it.
    assert detail(100_010, 103_000) == (100_010, 103_000, 2)
    assert detail(100_009, 103_001) == (100_009, 103_001, 4)
    monkeypatch.setattr(lanes_module, "_MAX_BOXES", 5_000)
    host = host_lanes(profile, TimeRange(EPOCH_NS, 20_000_000), (100_000, 110_000), "en")
    assert host is not None
    assert "from" not in host["levels"][-1]
