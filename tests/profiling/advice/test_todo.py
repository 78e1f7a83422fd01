"""The to-do list: faults that were put in come out with their milliseconds, and none twice."""

from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import jumar.profiling
from jumar.profiling.advice.todo import todo, todo_table
from jumar.profiling.profile import Profile
from jumar.profiling.views import Impossible, Options
from tests.profiling.generated import Training, training


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
def test_a_fault_is_won_back_to_the_nanosecond(fault: dict[str, Any], key: str, win: float) -> None:
    assert wins(training(), key) == []
    assert wins(training(**fault), key) == [pytest.approx(win, abs=1e-3)]


def test_the_late_rank_and_what_it_did_are_evidence() -> None:
    told = todo_table(training(ranks=2, straggler=1, late_ns=3_000_000))
    (evidence,) = told.filter(pl.col("key") == "collective-wait")["evidence"].to_list()
    assert any("rank 1 came 3.000 ms after" in line and "Pad 3.000 ms" in line for line in evidence)


def test_the_setting_of_a_recipe_that_helps_is_named() -> None:
    told = todo_table(training(casts=4, loader_ns=3_000_000))
    named = dict(told.select("key", "setting").iter_rows())
    assert named["casts"] == "precision.modify_mixlist"
    assert named["data-stall"] == "data.workers"
    assert named["wide-types"] == "precision.mode"


def test_the_largest_win_is_first() -> None:
    told = todo_table(training(casts=9, loader_ns=9_000_000, ai_cpu_ns=100_000))
    assert told["win_ms"].to_list() == sorted(told["win_ms"], reverse=True)
    assert told["key"][0] == "data-stall"


def test_warm_up_is_not_advice() -> None:
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
def test_all_wins_together_are_at_most_one_step(told: Training) -> None:
    rows = todo(training(told))
    assert sum(row.win_ns for row in rows) <= max([row.step_ns for row in rows], default=0) + 1e-6
    assert all(row.win_ns >= 0 for row in rows)


def test_ops_that_overlap_are_no_win_alone() -> None:
    one = training(casts=4, steps=1)
    twin = one.ops.with_columns(pl.lit("9").alias("stream"), pl.lit("Other").alias("type"))
    both = Profile(source="x", producer="x", kind="npu", ops=pl.concat([one.ops, twin]))
    assert wins(both, "casts") == []


def test_without_times_there_is_no_list() -> None:
    told = training(steps=1)
    ops = told.ops.with_columns(pl.lit(None, dtype=pl.Int64).alias("start_ns"))
    with pytest.raises(Impossible, match="start times"):
        todo(Profile(source="x", producer="x", kind="npu", ops=ops), Options())


def test_the_two_rank_sample_says_what_holds_it_up(shared: Path) -> None:
    profile = jumar.profiling.read(shared / "data/msprof/torch_npu_level1_2rank")
    told = todo_table(profile)
    rows = {row["key"]: row for row in told.iter_rows(named=True)}
    assert told["key"][0] == "collective-wait"
    wait = rows["collective-wait"]
    assert "hcom_allReduce__586_0_1 lasts 79.090 ms" in wait["what"]
    assert any("73.204 ms idle" in line for line in wait["evidence"])
    assert any("in aten::item" in line for line in wait["evidence"])
    assert any("ranks 2, 3, 4, 5, 6, 7" in line for line in wait["evidence"])
    assert "101.963 ms a step" in rows["uncovered-communication"]["what"]
    items = [line for line in told["what"] if "aten::item" in line]
    assert items == ["The host spends 92.927 ms a step in aten::item"]
    assert rows["format-changes"]["what"] == "TransData + Transpose take 17.4 % of compute"
    assert told["win_ms"].sum() < 154.5
