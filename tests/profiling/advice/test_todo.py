"""The to-do list: faults that were put in come out with their milliseconds, and none twice."""

from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import jumar.profiling
from jumar.profiling.advice.todo import step_summary, todo, todo_table
from jumar.profiling.profile import Profile
from jumar.profiling.views import VIEWS, Impossible, Options
from tests.profiling.generated import Training, profile_of, training


def wins(profile: Profile, key: str) -> list[float]:
    table = todo_table(profile)
    return table.filter(pl.col("key") == key)["win_ms"].to_list()


@pytest.mark.parametrize(
    ("fault", "key", "win"),
    [
        ({"casts": 6}, "casts", 1.2),
        ({"format_changes": 2}, "format-changes", 0.6),
        ({"loader_ns": 3_000_000}, "data-stall", 3.0),
        ({"ai_cpu_ns": 700_000}, "ai-cpu", 0.7),
        ({"ranks": 2, "straggler": 1, "late_ns": 3_000_000}, "collective-wait", 3.0),
        ({"ranks": 2}, "uncovered-communication", 1.0),
        # The last of five steps ends before its call.
        ({"item_ns": 1_000_000}, "blocking-call", 0.8),
        # Two of five steps take twice as long.
        ({"clock_drop_step": 3}, "low-clock", 4.0),
    ],
)
def test_planted_fault_is_recovered_to_the_nanosecond(
    fault: dict[str, Any], key: str, win: float
) -> None:
    assert wins(training(), key) == []
    assert wins(training(**fault), key) == [pytest.approx(win, abs=1e-3)]


def test_late_rank_and_its_activity_are_evidence() -> None:
    told = todo_table(training(ranks=2, straggler=1, late_ns=3_000_000))
    (evidence,) = told.filter(pl.col("key") == "collective-wait")["evidence"].to_list()
    delay = "3.000 ms after the first rank"
    assert any(delay in line and "3.000 ms of it computing Pad" in line for line in evidence)


def test_helpful_recipe_setting_is_named() -> None:
    told = todo_table(training(casts=4, loader_ns=3_000_000))
    named = dict(told.select("key", "setting").iter_rows())
    assert named["casts"] == "precision.modify_mixlist"
    assert named["data-stall"] == "data.workers"
    assert named["wide-types"] == "precision.mode"


def test_largest_saving_is_first() -> None:
    told = todo_table(training(casts=9, loader_ns=9_000_000, ai_cpu_ns=100_000))
    assert told["win_ms"].to_list() == sorted(told["win_ms"], reverse=True)
    assert told["key"][0] == "data-stall"


def test_warm_up_gives_no_advice() -> None:
    assert wins(training(steps=6, warm_up_ns=90_000_000), "free") == []


TIMES = st.sampled_from([0, 0, 100_000, 4_000_000])


@given(
    told=st.builds(
        Training,
        steps=st.integers(1, 4),
        ranks=st.integers(1, 3),
        casts=st.integers(0, 4),
        format_changes=st.integers(0, 3),
        loader_ns=TIMES,
        straggler=st.sampled_from([None, 0]),
        late_ns=TIMES,
        ai_cpu_ns=TIMES,
        clock_drop_step=st.sampled_from([None, 1]),
        item_ns=TIMES,
        warm_up_ns=TIMES,
        noise_ns=st.sampled_from([0, 300_000]),
    )
)
@settings(max_examples=15)
def test_total_savings_are_at_most_one_step(told: Training) -> None:
    rows = todo(training(told))
    assert (
        sum(row.saving_ns for row in rows) <= max([row.step_ns for row in rows], default=0) + 1e-6
    )
    assert all(row.saving_ns >= 0 for row in rows)


def test_overlapping_ops_save_nothing_alone() -> None:
    one = training(casts=4, steps=1)
    twin = one.ops.with_columns(pl.lit("9").alias("stream"), pl.lit("Other").alias("type"))
    both = Profile(source="x", producer="x", kind="npu", ops=pl.concat([one.ops, twin]))
    assert wins(both, "casts") == []


def test_without_times_there_is_no_to_do_list() -> None:
    told = training(steps=1)
    ops = told.ops.with_columns(pl.lit(None, dtype=pl.Int64).alias("start_ns"))
    with pytest.raises(Impossible, match="start times"):
        todo(Profile(source="x", producer="x", kind="npu", ops=ops), Options())


def test_two_rank_sample_names_its_bottleneck(shared: Path) -> None:
    profile = jumar.profiling.read(shared / "data/msprof/torch_npu_level1_2rank")
    told = todo_table(profile)
    rows = {row["key"]: row for row in told.iter_rows(named=True)}
    assert told["key"][0] == "collective-wait"
    wait = rows["collective-wait"]
    assert "hcom_allReduce__586_0_1 takes 79.090 ms" in wait["what"]
    assert any("73.204 ms idle" in line for line in wait["evidence"])
    assert any("in aten::item" in line for line in wait["evidence"])
    assert any("ranks 2, 3, 4, 5, 6, 7" in line for line in wait["evidence"])
    assert "101.963 ms per step" in rows["uncovered-communication"]["what"]
    items = [line for line in told["what"] if "aten::item" in line]
    assert items == ["The host spends 92.927 ms per step in aten::item"]
    assert rows["format-changes"]["what"] == "TransData + Transpose take 17.4 % of compute time"
    assert told["win_ms"].sum() < 154.5


def _op(start: int, length: int, step: int = 0, **more: Any) -> dict[str, Any]:
    row = {"rank": 0, "step": step, "name": "a", "core": "CUDA"}
    return row | {"start_ns": start, "duration_ns": length} | more


def _gapped(*gaps: int) -> Profile:
    """Ops with these gaps between them; the step lasts a million nanoseconds."""
    ops = [_op(0, 10)]
    now = 10
    for gap in gaps:
        ops.append(_op(now + gap, 10))
        now += gap + 10
    return profile_of([*ops, _op(now, 1_000_000 - now)], kind="cuda")


@pytest.mark.parametrize(("gap", "worth"), [(1000, True), (999, False)])
def test_saving_of_a_thousandth_of_a_step_gets_a_line(gap: int, worth: bool) -> None:
    rows = todo_table(_gapped(gap)).select("key", "win_ms", "share_%").rows()
    assert rows == ([("free", 0.001, 0.1)] if worth else [])


@pytest.mark.parametrize(("length", "stands"), [(200_000, True), (199_999, False)])
def test_call_blocking_for_a_tenth_of_the_steps_gets_a_line_without_a_saving(
    length: int, stands: bool
) -> None:
    call = {"rank": 0, "layer": "op", "name": "aten::item", "start_ns": 0, "duration_ns": length}
    sent = {"core": "COMMUNICATION"}
    ops = [_op(0, 1_000_000), _op(1_000_000, 1_000_000, 1), _op(100, 5, **sent)]
    # What is not beside idle time or uncovered communication is no claim at all.
    assert todo_table(profile_of(ops, kind="cuda", host=[call])).is_empty()
    ops = [_op(5, 999_995), _op(1_000_000, 1_000_000, 1), _op(0, 5, **sent)]
    table = todo_table(profile_of(ops, kind="cuda", host=[call]))
    assert table.select("key", "win_ms").rows() == ([("blocking-call", 0.0)] if stands else [])


def test_line_has_its_longest_moments_in_order_of_time() -> None:
    gaps = [100 + 7 * number % 22 for number in range(22)]
    (line,) = todo(_gapped(*gaps))
    assert (line.finding.name, line.saving_ns, line.step_ns) == ("free", sum(gaps), 1_000_000)
    assert line.count == 22
    assert line.claim.spans.is_empty()
    found = [end - start for _, start, end in line.longest.rows()]
    shortest = sorted(gaps)[1]
    assert found == [gap for gap in gaps if gap > shortest]
    assert line.longest["start_ns"].is_sorted()
    # Of equally long moments the first are taken.
    (line,) = todo(_gapped(*[100] * 22))
    assert line.longest["start_ns"].to_list() == [10 + 110 * number for number in range(20)]
    assert "longest" not in repr(line)
    with pytest.raises(AttributeError):
        line.count = 3  # pyright: ignore[reportAttributeAccessIssue]


def test_to_do_list_is_cached_per_options() -> None:
    profile = _gapped(5_000)
    assert todo(profile) is todo(profile, Options())
    assert todo(profile) is not todo(profile, Options(top=3))


def test_rows_have_milliseconds_with_three_decimals_and_percent_with_two() -> None:
    (row,) = todo_table(_gapped(12_345, 3)).to_dicts()
    assert row == {
        "win_ms": 0.012,
        "share_%": 1.23,
        "what": "Device idle, cause unknown: 0.012 ms per step",
        "evidence": ["the profile has no host calls"],
        "change": row["change"],
        "setting": "training.compile",
        "view": "launches",
        "key": "free",
        "estimate": True,
    }
    told = todo_table(training(loader_ns=9_000_000)).row(0, named=True)
    assert (told["key"], told["estimate"]) == ("data-stall", False)
    shown = VIEWS["todo"].make(_gapped(12_345, 3), Options())
    assert shown.columns == list(row)


def test_moment_is_claimed_only_if_a_single_op_runs() -> None:
    casts = {"type": "Cast", "input_types": "FLOAT", "output_types": "BF16"}
    ops = [_op(0, 1000, **casts), _op(600, 800), _op(1400, 8600), _op(0, 900, rank=1, **casts)]
    table = todo_table(profile_of(ops, kind="cuda"))
    assert table.select("key", "win_ms").rows() == [("casts", 0.001)]
    (line,) = todo(profile_of(ops, kind="cuda"))
    assert (line.saving_ns, line.longest.rows()) == (600.0, [(0, 0, 1000)])


def test_to_do_list_names_its_rank_and_steps() -> None:
    one = profile_of([_op(0, 1_500_000)])
    end = "; savings are upper limits, and no time is counted twice"
    assert step_summary(one, Options()) == f"1.500 ms per step (1 step){end}"
    zh = "；收益为上限，每个时刻只计一次"
    assert step_summary(one, Options(language="zh")) == f"每迭代 1.500 ms（1 个稳定迭代）{zh}"
    ops = [_op(0, 10, rank=0), _op(0, 1_000_000, rank=4), _op(1_000_000, 2_000_000, 1, rank=4)]
    two = profile_of(ops)
    said = f"rank 4, the slowest: 1.500 ms per step (average of 2 steady steps){end}"
    assert step_summary(two, Options()) == said
    assert step_summary(two, Options(language="zh")) == (
        f"卡 4（最慢）：每迭代 1.500 ms（2 个稳定迭代的平均值）{zh}"
    )
    unmarked = profile_of([_op(0, 1_500_000) | {"step": None}])
    assert step_summary(unmarked, Options()) == (
        f"1.500 ms per step (no steps are marked: the whole capture counts as one){end}"
    )
    assert (
        step_summary(unmarked, Options(language="zh"))
        == f"每迭代 1.500 ms（未标出迭代，全部视为一个）{zh}"
    )
