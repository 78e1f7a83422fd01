"""An optimizer that updates one parameter after the other is named, and no other is."""

from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from jumar.profiling import read
from jumar.profiling.advice.todo import Advice, todo
from jumar.profiling.profile import HOST_SCHEMA, OPS_SCHEMA, Profile
from tests.profiling.generated import frame, training

OP_NS, GAP_NS = 4_000, 6_000


def _updating(*types: str, parameters: int = 10, mark: str = "Optimizer.step#Adam.step") -> Profile:
    """Two steps, after each of which every parameter gets an op of each type, with gaps."""
    profile = training(steps=2)
    rows, marks = [], []
    late = 2_000_000
    for step, ends in enumerate(profile.steps["end_ns"]):
        begin = at = ends + step * late
        marks.append(_mark(mark, at - 20_000, 10_000))
        for number in range(parameters * len(types)):
            name = types[number % len(types)]
            rows.append(_op(name, step, at, launch_ns=begin - 19_000 + number))
            at += OP_NS + GAP_NS
    shifted = pl.col("start_ns") + pl.when(pl.col("step") == 1).then(late).otherwise(0)
    ops = pl.concat([profile.ops.with_columns(shifted), frame(rows, OPS_SCHEMA)]).sort("start_ns")
    steps = profile.steps.clear()
    return replace(profile, ops=ops, steps=steps, host=frame(marks, HOST_SCHEMA))


def _op(name: str, step: int, at: int, **more: int) -> dict[str, object]:
    row = {"rank": 0, "step": step, "stream": "2", "name": f"{name}_1", "type": name}
    return row | {"core": "AI_VECTOR_CORE", "start_ns": at, "duration_ns": OP_NS} | more


def _mark(name: str, start: int, duration: int) -> dict[str, object]:
    row = {"rank": 0, "thread": "1", "layer": "op", "name": name}
    return row | {"start_ns": start, "duration_ns": duration}


def _finding(profile: Profile) -> Advice | None:
    lines = [line for line in todo(profile) if line.finding.name == "unfused-optimizer"]
    assert len(lines) < 2
    return lines[0] if lines else None


def test_saving_is_half_of_the_updates_ops_and_all_gaps() -> None:
    line = _finding(_updating("Mul", "Add", "Sqrt"))
    assert line is not None
    ops = 30
    assert line.saving_ns == pytest.approx(ops * OP_NS / 2 + (ops - 1) * GAP_NS)
    assert line.claim.values == {"count": "30", "call": "Adam.step"}
    evidence = [text.en for text in line.claim.evidence]
    assert evidence == [
        "30 ops per step, 0.120 ms of ops and 0.174 ms in which the device waits for the next one",
        "Add x 10, Mul x 10, Sqrt x 10",
    ]


@pytest.mark.parametrize(
    "profile",
    [
        _updating("ForeachAddList", "ForeachMulScalar", "ForeachSqrt"),
        _updating("ApplyAdamD"),
        _updating("Mul", "Add", parameters=9),
        _updating("Mul", "Add", "Sqrt", mark="forward"),
        _updating(*(f"Type{number}" for number in range(10)), parameters=3),
        training(steps=3),
    ],
    ids=["foreach", "applied at once", "few", "not an update", "no repetition", "no marks"],
)
def test_other_updates_are_ignored(profile: Profile) -> None:
    assert _finding(profile) is None


def test_ops_launched_after_the_update_do_not_belong_to_it() -> None:
    profile = _updating("Mul", "Add", "Sqrt")
    late = pl.when(pl.col("launch_ns").is_not_null()).then(pl.col("launch_ns") + 10_000_000)
    assert _finding(replace(profile, ops=profile.ops.with_columns(launch_ns=late))) is None


def test_real_step_of_adam_on_an_npu_has_80_ops(shared: Path) -> None:
    line = _finding(read(shared / "data/msprof/torch_npu_2024_trace"))
    assert line is not None
    assert line.claim.values == {"count": "80", "call": "Adam.step"}
    # 44.83 + 21.38 + 23.57 + 21.20 + 24.94 + 49.25 + 44.46 us of ops, by the trace's own events.
    assert "0.230 ms of ops" in line.claim.evidence[0].en


def test_real_foreach_update_is_no_finding(shared: Path) -> None:
    assert _finding(read(shared / "data/msprof/torch_npu_level1_2rank")) is None


@pytest.mark.parametrize(
    ("types", "parameters", "found"),
    [(2, 10, True), (5, 4, True), (19, 1, False), (7, 3, False), (1, 19, False), (1, 20, True)],
)
def test_twenty_ops_with_one_per_parameter_count_as_many(
    types: int, parameters: int, found: bool
) -> None:
    names = [f"T{chr(65 + number)}" for number in range(types)]
    assert (_finding(_updating(*names, parameters=parameters)) is not None) == found


def test_update_lists_its_six_most_frequent_ops_per_step() -> None:
    names = ("B", "A", "C", "D", "E", "F", "G" * 50)
    line = _finding(_updating(*names, "B", parameters=5, mark="Optimizer.step#" + "x" * 80))
    assert line is not None
    assert line.claim.values == {"count": "40", "call": "x" * 59 + "…"}
    assert line.claim.evidence[1].en == "B x 10, A x 5, C x 5, D x 5, E x 5, F x 5"
    assert line.claim.evidence[1].zh == line.claim.evidence[1].en
    assert line.claim.evidence[0].zh == (
        "每迭代 40 个算子：执行 0.160 ms，设备等待下一个算子 0.234 ms"
    )
    long = _finding(_updating("G" * 50, parameters=20))
    assert long is not None
    assert long.claim.evidence[1].en == "G" * 39 + "… x 20"


def test_op_belongs_to_the_update_that_launched_it() -> None:
    profile = _updating("Mul", parameters=20)
    (start,) = set(profile.host["start_ns"].head(1))
    end = start + 10_000

    def launched(at: int) -> bool:
        first = (pl.col("launch_ns").is_not_null()) & (pl.col("step") == 0)
        own = pl.when(first).then(at).otherwise(pl.col("launch_ns")).alias("launch_ns")
        line = _finding(replace(profile, ops=profile.ops.with_columns(own)))
        return line is not None and line.claim.values["count"] == "20"

    assert [launched(at) for at in (start - 1, start, end - 1, end)] == [False, True, True, False]


def test_foreach_ops_among_others_are_not_counted() -> None:
    line = _finding(_updating("Mul", "ForeachAdd", "Sqrt", "MultiTensorScale", parameters=12))
    assert line is not None
    assert line.claim.values["count"] == "24"
    assert line.claim.evidence[1].en == "Mul x 12, Sqrt x 12"
