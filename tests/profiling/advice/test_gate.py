"""The gate measures what it limits, and what cannot be measured does not pass."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from jumar.ground.errors import UserError
from jumar.profiling import read
from jumar.profiling.advice.gate import MEASURES, Measured, gate
from jumar.profiling.profile import OPS_SCHEMA, Missing, Profile, empty
from jumar.profiling.views.view import LEVEL_1
from tests.profiling.generated import BUSY_NS, profile_of, training


def test_each_measure_gives_the_known_number() -> None:
    told = training(
        steps=4,
        ranks=2,
        straggler=1,
        late_ns=1_000_000,
        casts=5,
        format_changes=5,
        ai_cpu_ns=500_000,
    )
    computing = BUSY_NS + 1_000_000 + 1_500_000 + 500_000
    both = 2 * computing + 1_000_000
    step = computing + 1_000_000 + 1_000_000
    expected = {
        "step-ms": step / 1e6,
        "aicpu-share": 100 * 1_000_000 / both,
        "cast-share": 100 * 2_000_000 / both,
        "format-share": 100 * 3_000_000 / both,
        "free-share": 0.0,
        "uncovered-share": 100 * 3_000_000 / (2 * step),
        "rank-spread": round(100 * 1_000_000 / computing, 2),
    }
    found = gate(told, dict.fromkeys(MEASURES, 50.0))
    assert {row.name: row.value for row in found} == pytest.approx(expected)
    assert all(row.kept for row in found)


def test_limits_are_inclusive() -> None:
    told = training(steps=3)
    assert gate(told, {"step-ms": BUSY_NS / 1e6})[0].kept
    assert not gate(told, {"step-ms": BUSY_NS / 1e6 - 0.001})[0].kept


@pytest.mark.parametrize("name", sorted(MEASURES))
def test_unmeasurable_limit_fails(name: str) -> None:
    nothing = Profile(source="x", producer="x", kind="cpu", ops=empty(OPS_SCHEMA))
    (row,) = gate(nothing, {name: 1e9})
    assert not row.kept
    assert row.needs.startswith("needs ")


@pytest.mark.parametrize("limit", [-1.0, float("nan"), float("inf")])
def test_limit_is_a_number(limit: float) -> None:
    with pytest.raises(UserError, match="not a valid limit"):
        gate(training(steps=1), {"step-ms": limit})


def _op(rank: int, length: int, step: int = 0, **more: Any) -> dict[str, Any]:
    row = {"rank": rank, "step": step, "name": "a", "type": "Add", "core": "AI_CORE"}
    return row | {"start_ns": 1_000_000 * step, "duration_ns": length} | more


def test_each_measure_names_what_it_needs() -> None:
    timeless = profile_of([_op(0, 5, type=None, core=None, start_ns=None)])
    bare = {row.name: row.needs for row in gate(timeless, dict.fromkeys(MEASURES, 1.0))}
    two = "needs at least two ranks; pass the folders of all ranks"
    assert bare == {
        "step-ms": "needs ops with start times, or steps",
        "aicpu-share": f"needs the core of each op; {LEVEL_1}",
        "cast-share": f"needs the type of each op; {LEVEL_1}",
        "format-share": f"needs the type of each op; {LEVEL_1}",
        "free-share": "needs ops with start times",
        "uncovered-share": "needs ops with start times",
        "rank-spread": two,
    }
    (row,) = gate(profile_of([_op(0, 5)], kind="cpu"), {"free-share": 0.0})
    assert row == Measured(
        name="free-share",
        unit="%",
        limit=0.0,
        value=None,
        needs="needs ops on a device separate from the host",
    )
    with pytest.raises(AttributeError):
        row.value = 0.0  # pyright: ignore[reportAttributeAccessIssue]
    with pytest.raises(TypeError):
        Measured("free-share", "%", 0.0, 0.0)  # pyright: ignore[reportCallIssue]


def test_steps_on_another_clock_are_not_measured() -> None:
    def needs(profile: Profile) -> dict[str, str]:
        names = ("step-ms", "free-share", "uncovered-share", "cast-share")
        return {row.name: row.needs for row in gate(profile, dict.fromkeys(names, 100.0))}

    other = {"rank": 0, "step": 0, "start_ns": -50_000, "end_ns": -40_000}
    lost = profile_of([_op(0, 5)], missing=(Missing(file="x", what="y", needed_for=("gate",)),))
    kept = profile_of([_op(0, 5)], missing=(Missing(file="x", what="y", needed_for=("other",)),))
    apart = profile_of([_op(0, 5) | {"step": None}], steps=[other])
    measured = ("step-ms", "free-share", "uncovered-share")
    assert needs(kept) == dict.fromkeys((*measured, "cast-share"), "")
    assert needs(lost) == {
        **dict.fromkeys(measured, "needs steps on the clock of the ops"),
        "cast-share": "",
    }
    said = (
        "needs figures that agree: the steps contain 0.000 ms of the 0.000 ms in which ops run; "
        "their marks are on another clock or from another time"
    )
    assert needs(apart) == {**dict.fromkeys(measured, said), "cast-share": ""}


def test_slowest_rank_and_its_steady_steps_are_measured() -> None:
    lengths = (900_000, 100_000, 110_000, 120_000)
    ops = [_op(0, length, step) for step, length in enumerate((100_000, 100_000, 100_000))]
    ops += [
        _op(1, length, step) | {"start_ns": sum(lengths[:step])}
        for step, length in enumerate(lengths)
    ]
    (row,) = gate(profile_of(ops), {"step-ms": 0.0})
    # A step of rank 0 ends a millisecond after the one before, but for the first.
    assert row.value == pytest.approx((0.1 + 1.0 + 1.0) / 3)
    (row,) = gate(profile_of(ops[3:]), {"step-ms": 0.0})
    assert row.value == pytest.approx(0.11)


def test_shares_are_relative_to_compute_time() -> None:
    ops = [
        _op(0, 10, type="Cast", core="AI_CPU"),
        _op(0, 20, type="TransData"),
        _op(0, 70, core=None),
        _op(0, 900, core="COMMUNICATION"),
        _op(0, 900, type="Cast", core="CUDA_MEMCPY"),
    ]
    names = ("aicpu-share", "cast-share", "format-share")
    found = gate(profile_of(ops), dict.fromkeys(names, 10.0))
    assert [(row.value, row.kept) for row in found] == [(10.0, True), (10.0, True), (20.0, False)]
    nothing = gate(profile_of([_op(0, 0, type="Cast", core="AI_CPU")]), dict.fromkeys(names, 0.0))
    assert [row.value for row in nothing] == [0.0, 0.0, 0.0]
    tiny = gate(profile_of([_op(0, 1, type="Cast", core="AI_CPU")]), dict.fromkeys(names, 0.0))
    assert [row.value for row in tiny] == [100.0, 100.0, 0.0]


def test_idle_and_uncovered_time_are_shares_of_all_steps() -> None:
    ops = [_op(0, 100), _op(0, 200) | {"start_ns": 300}, _op(0, 100, core="COMMUNICATION")]
    ops[2] |= {"start_ns": 50}
    ops += [_op(0, 500, 1)]
    found = gate(profile_of(ops), {"free-share": 100.0, "uncovered-share": 100.0})
    # Steps of 500 each: idle from 150 to 300, and 50 of communication alone.
    assert [row.value for row in found] == [15.0, 5.0]


@pytest.mark.parametrize("name", ["step-ms", "cast-share"])
def test_wrong_limit_is_reported_with_its_option(name: str) -> None:
    with pytest.raises(UserError) as told:
        gate(profile_of(), {name: -0.5})
    assert str(told.value) == f"--max-{name}: -0.5 is not a valid limit\n  Give 0 or more."
    assert gate(profile_of([_op(0, 5)]), {"cast-share": 0.0})[0].kept


LINES = "2 lines dropped: line 7 has 2 of 3 fields; line 8 has 1 of 3 fields"
INCOMPLETE = "the end: the last line, 8, is incomplete"


@pytest.mark.parametrize(
    ("kind", "gaps", "needs"),
    [
        ("kineto", ("the end: truncated",), "all of a.x; it ends in the middle"),
        (
            "op_summary",
            ("the end: cannot be decompressed to the end: x",),
            "all of a.x; it ends in the middle",
        ),
        ("mindspore_timeline", ("the end: truncated",), "all of a.x; it ends in the middle"),
        ("step_trace_time", (LINES, INCOMPLETE), "all of a.x; it ends in the middle"),
        ("kernel_details", (LINES,), "all lines of a.x; incomplete ones were dropped"),
        (
            "op_summary",
            ("the end: the last line has no line break, so its last field may be",),
            "",
        ),
        ("operator_memory", ("the end: truncated",), ""),
        ("operator_memory", (LINES,), ""),
        ("kineto", ("events of unsupported categories: x 2",), ""),
    ],
)
def test_nothing_is_measured_in_an_incomplete_file(
    kind: str, gaps: tuple[str, ...], needs: str
) -> None:
    missing = tuple(Missing(file="a.x", what=what) for what in gaps)
    for name in MEASURES:
        profile = replace(training(steps=3, ranks=2), files=(("a.x", kind),), missing=missing)
        (row,) = gate(profile, {name: 1e9})
        assert (row.value is None) == bool(needs)
        assert row.needs == (f"needs {needs}" if needs else "")


ROW = "0,{},Add,AI_CORE,{}.5,2.5,0,0.25\n"
TABLE = (
    "Step Id,Name,Type,Accelerator Core,Start Time(us),Duration(us),Wait Time(us),aic_mac_ratio\n"
)


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_table_truncated_within_a_line_is_not_measured(tmp_path: Path, newline: str) -> None:
    text = TABLE + ROW.format("a", 1) + ROW.format("b", 9) + ROW.format("c", 20)
    content = text.replace("\n", newline).encode()
    file = tmp_path / "kernel_details.csv"
    last = len(content) - len(ROW.format("c", 20).replace("\n", newline))
    measured: list[int] = []
    for size in range(last, len(content) + 1):
        file.write_bytes(content[:size])
        (row,) = gate(read(file), {"step-ms": 1.0})
        assert row.needs in ("", f"needs all of {file}; it ends in the middle")
        measured += [size - last] if row.kept else []
    # Undetectable: a cut between two lines, one after a shorter number, and one after the line's
    # last character.
    whole = len(content) - last
    digits = whole - len(newline)
    assert measured == [0, digits - 3, digits - 1, *range(digits, whole + 1)]


def test_table_whose_middle_lost_a_line_is_not_measured(tmp_path: Path) -> None:
    file = tmp_path / "kernel_details.csv"
    file.write_text(TABLE + ROW.format("a", 1) + "0,b,Add\n" + ROW.format("c", 20))
    (row,) = gate(read(file), {"step-ms": 1.0})
    assert row.needs == f"needs all lines of {file}; incomplete ones were dropped"
