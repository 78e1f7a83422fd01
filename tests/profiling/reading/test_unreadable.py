"""Events and entries without the numbers that they should hold are counted and named."""

import json
from pathlib import Path
from typing import Any

import pytest

from jumar.profiling import read

_KERNEL = {"ph": "X", "cat": "kernel", "pid": 0, "tid": 7, "ts": 5, "dur": 2, "args": {"stream": 7}}
_ASCEND = {"ph": "X", "pid": 3, "tid": 2, "ts": 5, "dur": 2, "args": {"Task Type": "AI_CORE"}}
_PROCESS = {"ph": "M", "name": "process_name", "pid": 3, "args": {"name": "Ascend Hardware"}}
_TIMELINE = {"ph": "X", "pid": 0, "ts": 5, "dur": 2, "args": {"fullname": "a", "type": "b"}}
_TYPES = {
    "ph": "X",
    "pid": 0,
    "ts": 1,
    "dur": 1,
    "args": {"fullname": "c", "input_0": {"data_type": 1}},
}
_HCCL = {
    "ph": "M",
    "name": "thread_name",
    "pid": 1,
    "tid": 1,
    "args": {"name": "Communication Kernel"},
}
_COLLECTIVE = {"ph": "X", "name": "HCCL", "pid": 1, "tid": 1, "ts": 5, "dur": 2}


@pytest.mark.parametrize(
    ("before", "event"),
    [([], _KERNEL), ([_PROCESS], _ASCEND), ([_TYPES], _TIMELINE), ([_HCCL], _COLLECTIVE)],
    ids=["kineto", "ascend", "mindspore", "hccl"],
)
@pytest.mark.parametrize("changed", [{"ts": "soon"}, {"dur": "1,5"}, {"dur": -1}, {"ts": None}])
def test_a_slice_without_a_time_is_left_out_and_named(
    tmp_path: Path, before: list[dict[str, Any]], event: dict[str, Any], changed: dict[str, Any]
) -> None:
    events = [*before, {"name": "whole", **event}, {"name": "lost", **event, **changed}]
    path = tmp_path / "trace.json"
    path.write_text(json.dumps(events))
    whole = read_ops(path)
    path.write_text(json.dumps(events[:-1]))
    assert whole == read_ops(path)
    path.write_text(json.dumps(events))
    ((field, value),) = changed.items()
    name = event.get("name", "lost")
    assert (
        read(path).missing[-1].what
        == f"1 number cannot be read: event '{name}', {field}: '{value}'"
    )


def read_ops(path: Path) -> list[tuple[Any, ...]]:
    return read(path).ops.select("name", "start_ns", "duration_ns").rows()


def test_the_times_and_sizes_of_a_collective_are_named(tmp_path: Path) -> None:
    entry = {
        "Communication Time Info": {"Start Timestamp(us)": "soon", "Elapse Time(ms)": 2.5},
        "Communication Bandwidth Info": {"HCCS": {"Transit Size(MB)": "1,5"}},
    }
    path = tmp_path / "communication.json"
    path.write_text(json.dumps({"step50": {"collective": {"op@1": entry}}}))
    profile = read(path)
    assert profile.collectives["elapse_ns"].to_list() == [2_500_000]
    assert profile.missing[-1].what == (
        "2 numbers cannot be read: op 'op', Start Timestamp(us): 'soon'; "
        "op 'op', Transit Size(MB): '1,5'"
    )
