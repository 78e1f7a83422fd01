"""Steps and ops on different clocks: shifted if a file contains the offset, refused otherwise."""

import json
import sqlite3
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from jumar.profiling import read
from jumar.profiling.advice.gate import gate
from jumar.profiling.advice.todo import todo_table
from jumar.profiling.page import page
from jumar.profiling.profile import OPS_SCHEMA, STEPS_SCHEMA, Missing, Profile
from jumar.profiling.reading.clocks import clock_lag, on_one_clock, on_ops_clock
from jumar.profiling.reading.file_content import FileContent
from jumar.profiling.reading.gathering import combined
from jumar.profiling.views.step_split import contradictions, step_split
from tests.profiling.generated import frame

_ZERO = 5_000_000
"""A tick of 10 ns."""


def _mindspore(folder: Path, *, clock: bool, steps: int = 4, cut: int = 0) -> Path:
    """Steps of 1 ms: 0.6 ms of an op, then 0.3 ms of a collective; ops since their first one."""
    folder.mkdir()
    ops = [
        {
            "name": "Mul-op1",
            "ph": "X",
            "pid": 1,
            "tid": 5,
            "ts": 1000.0 * step,
            "dur": 600.0,
            "args": {
                "type": "Mul",
                "fullname": "Default/Mul-op1",
                "input_0": {"format": "ND", "data_type": "NUMBER_TYPE_FLOAT32", "shape": "4"},
            },
        }
        for step in range(steps)
    ]
    if cut:
        ops[-1]["dur"] = float(cut)
    (folder / "timeline_display_1.json").write_text(json.dumps(ops))
    name = "stream_3_0_AllReduce-op2"
    header = "step_num,start_point,end_point,total,fp_point,bp_point,iteration_interval"
    lines = [f"{header},{name},{name}_start_point,{name}_end_point"]
    for step in range(steps):
        begin = _ZERO + 100_000 * step
        ends = (begin + 100_000, 100_000, begin, begin, 0)
        sends = (30_000, begin + 60_000, begin + 90_000)
        lines.append(",".join(map(str, (step + 1, begin, *ends, *sends))))
    (folder / "step_trace_raw_1_detail_time.csv").write_text("\n".join(lines) + "\n")
    if clock:
        (folder / "min_cycle_counter_1.txt").write_text(f"{_ZERO}.0\n")
    return folder


def test_mindspore_ops_use_the_step_clock_and_collectives_are_not_idle_time(
    tmp_path: Path,
) -> None:
    profile = read(_mindspore(tmp_path / "a", clock=True))
    assert profile.ops["start_ns"].min() == _ZERO * 10
    assert profile.ops["step"].to_list() == [1, 2, 3, 4]
    assert not [gap for gap in profile.missing if "clock" in gap.what]
    rows = {row["key"]: row for row in todo_table(profile).to_dicts()}
    # The last step ends with its op.
    assert rows["uncovered-communication"]["win_ms"] == pytest.approx(0.9 / 4)
    (evidence,) = rows["uncovered-communication"]["evidence"]
    assert evidence.startswith("0.225 ms of communication per step, of which 0.225 ms uncovered")
    assert rows["free"]["win_ms"] == pytest.approx(0.3 / 4)


def test_mindspore_steps_without_a_clock_origin_lose_their_bounds_and_fail_the_gate(
    tmp_path: Path,
) -> None:
    profile = read(_mindspore(tmp_path / "a", clock=False))
    assert [gap.what for gap in profile.missing if "a different clock" in gap.what]
    (measured,) = gate(profile, {"step-ms": 1000})
    assert (measured.value, measured.needs) == (None, "needs steps on the clock of the ops")


def test_truncated_final_step_is_not_averaged(tmp_path: Path) -> None:
    profile = read(_mindspore(tmp_path / "a", clock=True, steps=5, cut=2))
    assert step_split(profile).height == 5
    (measured,) = gate(profile, {"step-ms": 1000})
    # Steps begin where the ops of the one before ended, so the first lasts 0.6 ms of its 1.
    assert measured.value == pytest.approx((0.6 + 3 * 1.0) / 4)


_OPS = "Op Name,OP Type,Task Type,Task Start Time(us),Task Duration(us)\n"
_SHIFT_US = 1_700_000_000_000_000


def _two_clocks(folder: Path, *, jitter: int = 0) -> Path:
    """Ops since the start of the machine, and the same with steps since 1970 in a database."""
    folder.mkdir()
    starts = [1_000_000 + 100 * number for number in range(6)]
    rows = [f"a{start},Mul,AI_CORE,{start}.000,40\n" for start in starts]
    (folder / "op_summary.csv").write_text(_OPS + "".join(rows))
    with sqlite3.connect(folder / "x.db") as database:
        database.executescript(
            "CREATE TABLE STEP_TIME (id, startNs, endNs);"
            "CREATE TABLE STRING_IDS (id, value);"
            "CREATE TABLE TASK (startNs, endNs, deviceId, connectionId, globalTaskId, globalPid,"
            " taskType, contextId, streamId, taskId, modelId);"
            "CREATE TABLE COMPUTE_TASK_INFO (name, globalTaskId, blockDim, mixBlockDim, taskType,"
            " opType, inputFormats, inputDataTypes, inputShapes, outputFormats, outputDataTypes,"
            " outputShapes, attrInfo);"
            "INSERT INTO STRING_IDS VALUES (1, 'Mul'), (2, 'AI_CORE'), (3, 'a');"
        )
        for number, start in enumerate(starts):
            begin = (start + _SHIFT_US + (jitter if number == 3 else 0)) * 1000
            row: tuple[Any, ...] = (begin, begin + 40_000, 0, -1, number, 0, 2, 0, 1, number, 0)
            database.execute(f"INSERT INTO TASK VALUES ({','.join('?' * 11)})", row)
            info = (3, number, 8, 0, 2, 1, 3, 3, 3, 3, 3, 3, 3)
            database.execute(f"INSERT INTO COMPUTE_TASK_INFO VALUES ({','.join('?' * 13)})", info)
        for step in range(3):
            begin = (1_000_000 + _SHIFT_US + 200 * step) * 1000
            values = (step + 1, begin, begin + 200_000)
            database.execute("INSERT INTO STEP_TIME VALUES (?, ?, ?)", values)
    return folder


def test_steps_are_shifted_by_the_offset_between_equal_ops_in_two_files(tmp_path: Path) -> None:
    profile = read(_two_clocks(tmp_path / "a"))
    (gap,) = (gap for gap in profile.missing if "clock" in gap.what)
    assert "shifted by 1700000000.000000 s, the offset between the same ops" in gap.what
    assert profile.ops["step"].to_list() == [1, 1, 2, 2, 3, 3]
    assert profile.steps["start_ns"].min() == 1_000_000_000
    assert gate(profile, {"step-ms": 1})[0].value == pytest.approx((0.14 + 0.2 + 0.2) / 3, abs=0.01)


def test_inconsistent_op_offsets_shift_nothing(tmp_path: Path) -> None:
    profile = read(_two_clocks(tmp_path / "a", jitter=7))
    (gap,) = (gap for gap in profile.missing if "clock" in gap.what)
    assert "all ops are treated as one step" in gap.what
    assert gate(profile, {"step-ms": 1})[0].value is None


def test_steps_without_ops_are_a_contradiction_on_the_page_and_in_the_gate() -> None:
    op = {"rank": 0, "name": "a", "type": "Mul", "core": "CPU", "duration_ns": 1000}
    ops = [{**op, "start_ns": 10_000 * number} for number in range(9)]
    step = {"rank": 0, "step": 1, "start_ns": 41_500, "end_ns": 49_000}
    profile = Profile(
        source="x",
        producer="x",
        kind="cpu",
        ops=frame(ops, OPS_SCHEMA),
        steps=frame([step], STEPS_SCHEMA),
    )
    (line,) = contradictions(profile)
    assert "the steps contain 0.000 ms of the 0.009 ms in which ops run" in line.en
    assert line.en in page(profile)
    (measured,) = gate(profile, {"step-ms": 1})
    assert measured.value is None
    assert "figures that agree" in measured.needs


def _ops(*spans: tuple[int | None, int | None]) -> pl.DataFrame:
    schema = {"start_ns": pl.Int64, "duration_ns": pl.Int64}
    return pl.DataFrame(spans, schema=schema, orient="row")


def _steps(*marks: tuple[int, int, int]) -> pl.DataFrame:
    return pl.DataFrame(marks, schema=["step", "start_ns", "end_ns"], orient="row")


@pytest.mark.parametrize(("shift", "apart"), [(0, False), (150, False), (151, True)])
@pytest.mark.parametrize("later", [True, False])
def test_steps_are_on_another_clock_if_the_gap_exceeds_both_extents(
    shift: int, apart: bool, later: bool
) -> None:
    # Ops last from 1000 to 1100, steps together 50 ns.
    ops = _ops((1000, 40), (1060, 40))
    first = 1100 + shift if later else 1000 - shift - 50
    steps = _steps((1, first, first + 20), (2, first + 20, first + 50))
    found, gaps = on_one_clock(ops, steps, [FileContent(file="marks", kind="k", steps=steps)])
    if not apart:
        assert (found is steps, gaps) == (True, [])
        return
    assert found.rows() == [(1, None, None), (2, None, None)]
    assert found.columns == steps.columns
    what = "steps: their marks are on a different clock from the ops; all ops are"
    assert gaps == [
        Missing(file="marks", what=f"{what} treated as one step", needed_for=("step split", "gate"))
    ]


def test_marks_from_another_file_are_used_for_the_ops() -> None:
    ops, steps = _ops((1000, 100)), _steps((1, 90_000, 90_050), (2, 90_050, 90_100))
    ended = FileContent(file="ended", kind="k", steps=_steps((1, 900, 1000)))
    begins = FileContent(file="begins", kind="k", steps=_steps((1, 1100, 1200)))
    others = FileContent(file="others", kind="k", steps=_steps((7, 1000, 1100)))
    good = FileContent(
        file="good", kind="k", steps=_steps((2, 1000, 1050), (2, 1, 2), (1, 950, 1001))
    )
    unmarked = FileContent(file="x", kind="k", steps=pl.DataFrame({"step": [1]}))
    contents = [FileContent(file="none", kind="k"), unmarked, ended, begins, others, good]
    found, gaps = on_one_clock(ops, steps, contents)
    assert found.rows() == [(1, 950, 1001), (2, 1000, 1050)]
    what = "steps: their marks are on a different clock from the ops; the marks of this"
    assert gaps == [Missing(file="good", what=f"{what} file are used")]
    # Those of other steps, or that only touch the ops, are of no use.
    bare, gaps = on_one_clock(ops, steps, contents[:-1])
    assert bare["start_ns"].to_list() == [None, None]
    assert gaps[0].file == "steps"


@pytest.mark.parametrize(
    ("off", "longer", "sure"),
    [(0, 0, True), (1000, 1000, True), (1001, 0, False), (0, 1001, False), (-1001, 0, False)],
)
def test_marks_are_shifted_if_all_op_offsets_are_equal(off: int, longer: int, sure: bool) -> None:
    shift = 5_000_000_000
    ops = _ops((20_000, 500), (30_000, 600), (None, 5), (10_000, 400))
    theirs = _ops(
        (shift + 30_000 + off, 600), (shift + 10_000, 400), (shift + 20_000, 500 + longer)
    )
    steps = _steps((1, shift + 9_000, shift + 40_000))
    content = FileContent(file="db", kind="sqlite", ops=theirs, steps=steps)
    lacking = [
        FileContent(file="a", kind="x", ops=theirs),
        FileContent(file="b", kind="x", ops=theirs[:2], steps=steps),
        FileContent(file="c", kind="x", ops=theirs.clear(), steps=steps),
        FileContent(file="d", kind="x", ops=theirs, steps=_steps((1, 1, 2))),
        FileContent(
            file="e", kind="x", ops=theirs, steps=_steps((9, shift + 9_000, shift + 40_000))
        ),
    ]
    found, gaps = on_one_clock(ops, steps, [*lacking, content])
    assert found.rows() == [(1, 9_000, 40_000) if sure else (1, None, None)]
    if sure:
        what = "steps: their marks are on a different clock from the ops; shifted by"
        what += " 5.000000 s, the offset between the same ops"
        assert gaps == [Missing(file="db", what=what)]


def test_steps_or_ops_without_times_are_unchanged() -> None:
    steps = _steps((1, 90_000, 90_050))
    for ops in (_ops().select("duration_ns"), _ops(), _ops((None, 3)), _ops((5, None))):
        assert on_one_clock(ops, steps, []) == (steps, [])
    for bare in (steps.drop("end_ns"), steps.drop("step"), steps.clear()):
        assert on_one_clock(_ops((5, 1)), bare, []) == (bare, [])


def test_calls_launches_and_collectives_move_with_the_step_marks() -> None:
    shift = 5_000_000_000
    schema = {"start_ns": pl.Int64, "duration_ns": pl.Int64, "launch_ns": pl.Int64}
    rows = [(shift + 10_000, 400, shift + 9_100), (shift + 20_000, 500, shift + 9_200)]
    traced = pl.DataFrame(rows, schema=schema, orient="row").with_columns(
        pl.lit(7).alias("correlation"), pl.lit("a").alias("name")
    )
    ops = _ops((10_000, 400), (20_000, 500)).with_columns(pl.lit("a").alias("name"))
    host = pl.DataFrame({"name": ["load"], "start_ns": [shift + 12_000], "duration_ns": [5_000]})
    sums = pl.DataFrame({"name": ["sum"], "start_ns": [shift + 20_000], "elapse_ns": [500]})
    steps = _steps((1, shift + 9_000, shift + 40_000))
    trace = FileContent(file="t", kind="trace", ops=traced, steps=steps, host=host)
    table = FileContent(file="k", kind="kernel_details", ops=ops)
    profile = combined(
        "x", {"x": [table, trace, FileContent(file="c", kind="c", collectives=sums)]}
    )
    assert profile.steps.select("start_ns", "end_ns").rows() == [(9_000, 40_000)]
    launched = profile.ops.select("step", "start_ns", "launch_ns", "correlation").rows()
    assert launched == [(1, 10_000, 9_100, 7), (1, 20_000, 9_200, 7)]
    assert profile.host["start_ns"].to_list() == [12_000]
    assert profile.collectives["start_ns"].to_list() == [20_000]


def test_only_a_common_shift_of_all_marks_is_a_lag() -> None:
    before, none = _steps((1, 900, 950), (2, 950, 990)), _steps((1, 0, 1)).clear()
    assert clock_lag(before, _steps((2, 250, 290), (1, 200, 250), (3, 1, 2))) == 700
    assert clock_lag(before, _steps((1, 200, 250), (2, 251, 290))) == 0
    for unclear in (before, none, _steps((9, 200, 250))):
        assert clock_lag(before, unclear) == 0
    assert clock_lag(before.drop("start_ns"), before) == 0


def test_what_is_beside_the_ops_or_never_will_be_stays() -> None:
    ops = _ops((1_000, 400), (2_000, 500))
    far, near = (pl.DataFrame({"start_ns": [start]}) for start in (8_500, 2_500))
    assert on_ops_clock(far, ops, 6_000).rows() == [(2_500,)]
    for table, lag in ((far, 0), (near, 1_000), (far, 5_999), (far, 7_501), (ops[:0], 6_000)):
        assert on_ops_clock(table, ops, lag) is table
    assert on_ops_clock(pl.DataFrame({"name": ["a"]}), ops, 5).columns == ["name"]
