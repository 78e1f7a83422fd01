"""Events and entries without the numbers that they should hold are counted and named."""

import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from jumar.ground.errors import UserError
from jumar.profiling import read
from jumar.profiling.profile import Missing
from jumar.profiling.reading.unreadable import Unreadable, span_of

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
def test_slice_without_a_time_is_omitted_and_named(
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


def test_unreadable_times_and_sizes_of_a_collective_are_named(tmp_path: Path) -> None:
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


_OPS = "Op Name,OP Type,Task Type,Task Start Time(us),Task Duration(us)\n"
_STEPS = "Step,Computing,Communication(Not Overlapped),Overlapped,Communication,Free\n"


def test_negative_durations_are_omitted_and_counted_in_every_format(tmp_path: Path) -> None:
    (tmp_path / "op_summary.csv").write_text(f"{_OPS}a,Mul,AI_CORE,1,-3\nb,Mul,AI_CORE,9,2\n")
    (tmp_path / "step_trace_time.csv").write_text(f"{_STEPS}1,-3,0,0,0,4\n2,3,0,0,0,4\n")
    with sqlite3.connect(tmp_path / "x.db") as database:
        database.executescript(
            "CREATE TABLE CANN_API (startNs, endNs, type, name, globalTid, connectionId);"
            "INSERT INTO CANN_API VALUES (5, 1, 1, 1, 1, 1), (5, 8, 1, 1, 1, 2);"
            "CREATE TABLE STRING_IDS (id, value);"
            "INSERT INTO STRING_IDS VALUES (1, 'aclnnAdd');"
        )
    profile = read(tmp_path)
    assert profile.ops["name"].to_list() == ["b"]
    assert profile.steps["step"].to_list() == [2]
    assert profile.host["duration_ns"].to_list() == [3]
    wrong = [gap.what for gap in profile.missing if "negative" in gap.what]
    assert wrong == ["1 step with a negative duration", "1 call with a negative duration"]
    assert "1 row without a name or a duration" in [gap.what for gap in profile.missing]


def test_header_only_table_is_named_next_to_one_with_rows(tmp_path: Path) -> None:
    (tmp_path / "op_summary.csv").write_text(_OPS)
    with pytest.raises(UserError, match="has no rows"):
        read(tmp_path)
    (tmp_path / "step_trace_time.csv").write_text(f"{_STEPS}2,3,0,0,0,4\n")
    (gap,) = read(tmp_path).missing
    assert (Path(gap.file).name, gap.what) == ("op_summary.csv", "has no rows")


def test_settings_next_to_empty_tables_are_not_a_profile(tmp_path: Path) -> None:
    metadata = tmp_path / "profiler_metadata.json"
    metadata.write_text('{"ENV_VARIABLES": {"HCCL_CONNECT_TIMEOUT": "600"}}')
    (tmp_path / "op_summary.csv").write_text(_OPS)
    with pytest.raises(UserError, match="has no rows"):
        read(tmp_path)
    # Whoever names only the settings gets them.
    assert read(metadata).statistics["environment"].height == 1


def test_faults_are_counted_and_the_first_three_of_each_kind_named() -> None:
    unreadable = Unreadable("x.csv")
    assert unreadable.missing() == ()
    for number in range(5):
        unreadable.count_line(number + 2, "is cut")
    for number in range(3):
        unreadable.count_number(lambda number=number: f"field {number}", "y" * 41)
    unreadable.note_end("first")
    unreadable.note_end("second")
    assert unreadable.missing() == (
        Missing(
            file="x.csv",
            what="5 lines dropped: line 2 is cut; line 3 is cut; line 4 is cut; and 2 more",
        ),
        Missing(
            file="x.csv",
            what="3 numbers cannot be read: "
            + "; ".join(f"field {number}: '{'y' * 40}'" for number in range(3)),
        ),
        Missing(file="x.csv", what="the end: first"),
    )


def test_missing_time_is_not_a_fault_and_a_non_numeric_one_is() -> None:
    unreadable = Unreadable("x")
    times = [
        unreadable.nanoseconds(value, "ms", lambda: "here")
        for value in (2.5, None, " N/A ", "", "soon", True)
    ]
    assert times == [2_500_000, None, None, None, None, None]
    (gap,) = unreadable.missing()
    assert gap.what == "2 numbers cannot be read: here: 'soon'; here: 'True'"


def test_slice_durations_may_be_zero_but_not_negative() -> None:
    unreadable = Unreadable("x")
    assert span_of({"ts": -1, "dur": 0}, unreadable) == (-1_000, 0)
    assert span_of({"ts": 1}, unreadable, default_duration=0) == (1_000, 0)
    assert span_of({"ts": 1, "name": "n" * 41}, unreadable) is None
    assert span_of({"dur": 1, "name": "m"}, unreadable, default_duration=0) is None
    (gap,) = unreadable.missing()
    assert gap.what == (
        f"2 numbers cannot be read: event '{'n' * 40}', dur: 'None'; event 'm', ts: 'None'"
    )
