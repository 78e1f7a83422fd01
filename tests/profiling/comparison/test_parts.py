"""The parts of a comparison add up to the difference, for any profiles."""

import time
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jumar.profiling.comparison import PART_TITLES, Comparison, compare, compare_prepared, prepare
from jumar.profiling.profile import OPS_SCHEMA, STEPS_SCHEMA, Missing, Profile
from jumar.profiling.views import Impossible
from tests.profiling.generated import MATMUL_NS, VECTOR_NS, frame, training

_TYPES = ("MatMulV2", "Add", "Cast", "TransData", "hcom_allReduce_", "copy_", "Softmax")
_CORES = {"hcom_allReduce_": "COMMUNICATION", "copy_": "CUDA_MEMCPY"}


@st.composite
def profiles(draw: st.DrawFn) -> Profile:
    """Ops that overlap, touch, have no length, run on several streams and into the next step."""
    rows = []
    for task in range(draw(st.integers(1, 24))):
        kind = draw(st.sampled_from(_TYPES))
        dtype = draw(st.sampled_from(("FLOAT", "FLOAT16", None)))
        rows.append(
            {
                "rank": 0,
                "step": draw(st.integers(0, 2)),
                "stream": draw(st.sampled_from("12")),
                "task": task,
                "name": f"{kind}{task}",
                "type": kind,
                "core": _CORES.get(kind, "AI_CORE"),
                "start_ns": 1_700_000_000_000_000_000 + draw(st.integers(0, 120)),
                "duration_ns": draw(st.integers(0, 40)),
                "input_shapes": draw(st.sampled_from(("2,3", "4,5;6"))),
                "input_types": dtype,
                "output_types": dtype,
            }
        )
    return Profile(source="drawn", producer="jumar", kind="npu", ops=frame(rows, OPS_SCHEMA))


@given(profiles(), profiles())
@settings(max_examples=60)
def test_parts_add_up_to_the_difference_to_the_nanosecond(before: Profile, after: Profile) -> None:
    try:
        found = compare(before, after)
    except Impossible:
        return
    assert sum(part.delta_ns for part in found.parts) == found.delta_ns
    assert sum(part.before_ns for part in found.parts) == found.before_ns
    assert sum(part.after_ns for part in found.parts) == found.after_ns
    assert int(found.changes["delta_ns"].sum()) == found.delta_ns
    assert all(part.faster_ns + part.slower_ns == part.delta_ns for part in found.parts)
    for side in (found.before, found.after):
        for step in side.steps:
            assert step.duration_ns - step.own_ns.sum() == sum(step.waits.values())
            assert (step.own_ns >= 0).all()


@given(profiles())
@settings(max_examples=20)
def test_profile_does_not_differ_from_itself(profile: Profile) -> None:
    try:
        side = prepare(profile)
    except Impossible:
        return
    found = compare_prepared(side, side)
    assert not (found.changes["delta_ns"] != 0).any()
    assert not {"count", "replaced", "dtype", "shape"} & {part.name for part in found.parts}


def _delta(found: Comparison, name: str) -> int:
    return sum(part.delta_ns for part in found.parts if part.name == name)


def test_added_casts_explain_the_whole_difference() -> None:
    found = compare(training(steps=3), training(steps=3, casts=7))
    assert found.delta_ns == 3 * 7 * 200_000 == _delta(found, "casts")
    assert found.changes.row(0, named=True)["type"] == "Cast FLOAT to FLOAT16"


def test_fifty_thousand_ops_are_compared_in_seconds() -> None:
    before, after = training(steps=3_000, casts=4), training(steps=3_000, casts=9, noise_ns=50_000)
    assert after.ops.height == 54_000
    begin = time.process_time()
    found = compare(before, after)
    assert time.process_time() - begin < 3
    assert sum(part.delta_ns for part in found.parts) == found.delta_ns
    assert _delta(found, "count") == 0


def test_loader_waits_are_counted_as_waiting() -> None:
    found = compare(training(steps=4), training(steps=4, loader_ns=3_000_000))
    assert _delta(found, "waiting") == found.delta_ns
    assert found.delta_ns > 0


def test_halved_clock_is_counted_as_slower_kernels() -> None:
    found = compare(training(steps=3), training(steps=3, clock_drop_step=0))
    assert _delta(found, "kernel") == found.delta_ns == 3 * (5 * MATMUL_NS + 4 * VECTOR_NS)


def test_another_op_is_counted_as_added() -> None:
    found = compare(training(steps=3), training(steps=3, ai_cpu_ns=2_000_000))
    assert _delta(found, "count") == found.delta_ns == 6_000_000


def test_lower_dtype_counts_as_changed_despite_casts_in_between() -> None:
    before = training(steps=2)
    lower = pl.when(pl.col("type") == "MatMulV2")
    ops = training(steps=2, casts=3).ops.with_columns(
        *(
            lower.then(pl.col(name).str.replace_all("FLOAT", "FLOAT16"))
            .otherwise(pl.col(name))
            .alias(name)
            for name in ("input_types", "output_types")
        ),
        lower.then(pl.col("duration_ns") // 4)
        .otherwise(pl.col("duration_ns"))
        .alias("duration_ns"),
    )
    after = Profile(source="after", producer="jumar", kind="npu", ops=ops)
    found = compare(before, after)
    assert _delta(found, "dtype") == -2 * 5 * MATMUL_NS * 3 // 4
    assert _delta(found, "casts") == 2 * 3 * 200_000
    assert _delta(found, "kernel") == 0
    assert found.changes_dtypes


def test_op_replaced_by_two_is_counted_as_replaced() -> None:
    before = training(steps=2)
    first = (pl.col("type") == "Add") & (pl.col("module") == "layers.1")
    ops = before.ops.with_columns(
        pl.when(first).then(pl.lit("AddRelu")).otherwise(pl.col("type")).alias("type")
    )
    found = compare(before, Profile(source="fused", producer="jumar", kind="npu", ops=ops))
    row = found.changes.filter(part="replaced").row(0, named=True)
    assert row["type"] == "Add → AddRelu"
    assert (row["before_count"], row["after_count"]) == (2, 2)


def test_profile_without_times_is_refused() -> None:
    with pytest.raises(Impossible):
        compare(training(), Profile(source="x", producer="x", kind="npu", ops=training().ops[:0]))


def test_every_part_has_a_title_that_fits_a_table() -> None:
    assert all(len(title.en) <= 40 and len(title.zh) <= 20 for title in PART_TITLES.values())


def test_real_pair_adds_up(shared: Path) -> None:
    from jumar.profiling import read

    folder = shared / "data/msprof/torch_npu_level1_2rank"
    found = compare(read(folder / "rank0_ascend_pt"), read(folder / "rank1_ascend_pt"))
    assert sum(part.delta_ns for part in found.parts) == found.delta_ns
    # The same training on both ranks: the same ops, so nothing is added, gone or replaced.
    assert not {"count", "replaced", "dtype"} & {part.name for part in found.parts}


def test_unequal_step_counts_compare_the_common_number() -> None:
    result = compare(training(steps=5), training(steps=3, casts=2))
    assert len(result.before.steps) == len(result.after.steps)
    assert len(result.after.steps) == len(compare(training(steps=3), training(steps=3)).after.steps)
    same = compare(training(steps=3), training(steps=3, casts=2))
    assert result.delta_ns == same.delta_ns


def test_what_was_left_out_and_contradicts_is_noted_first() -> None:
    whole = training()
    gaps = [Missing(file=f"{number}.csv", what="2 lines left out") for number in range(6)]
    gaps[1] = Missing(file="1.json", what="steps: another clock", needed_for=("gate",))
    gaps[2] = Missing(file="2.json", what="not read: a copy")
    gaps.insert(0, Missing(file="a.csv", what="types of inputs", needed_for=("casts",)))
    own = pl.lit(9_000_000_000).alias("computing_ns")
    cut = replace(whole, source="cut", missing=tuple(gaps))
    cut = replace(cut, steps=_marked(whole).with_columns(own))
    notes = compare(whole, cut).notes
    assert [note.en for note in notes[:6]] == [
        "missing: 0.csv: 2 lines left out",
        "missing: 1.json: steps: another clock",
        "not read: 2.json: a copy",
        *(f"missing: {number}.csv: 2 lines left out" for number in (3, 4)),
        "cut: 1 more missing or not read; see: jumar profile show cut",
    ]
    assert notes[6].en.startswith("cut: computing is ")
    assert [note.zh for note in notes[4:6]] == [
        "缺失：4.csv: 2 lines left out",
        "cut 另有 1 项缺失或未读取，全部见：jumar profile show cut",
    ]
    assert notes[6].zh.startswith("cut：计算按算子为 ")
    (same,) = compare(whole, whole).notes
    assert same.en.startswith("both are the same capture")


def _marked(profile: Profile) -> pl.DataFrame:
    """Steps with the times of the profile's ops."""
    end = (pl.col("start_ns") + pl.col("duration_ns")).max().alias("end_ns")
    times = profile.ops.group_by("rank", "step").agg(pl.col("start_ns").min(), end)
    return frame(times.drop_nulls().to_dicts(), STEPS_SCHEMA)
