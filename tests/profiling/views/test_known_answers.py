"""Every view on profiles whose answer follows from how they were made."""

from contextlib import suppress
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jumar.profiling.profile import HOST_SCHEMA, OPS_SCHEMA, STEPS_SCHEMA, Profile, empty
from jumar.profiling.views import VIEWS, Impossible, Options, find_view
from jumar.profiling.views.critical_path import paths
from jumar.profiling.views.step_split import step_split
from jumar.profiling.views.windows import step_windows
from tests.profiling.generated import ALL_REDUCE_NS, BUSY_NS, EPOCH_NS, frame, training


def view(name: str, profile: Profile, **more: Any) -> pl.DataFrame:
    return VIEWS[name].make(profile, Options(**more))


def test_steps_are_split_to_the_nanosecond() -> None:
    profile = training(ranks=2, straggler=1, late_ns=3_000_000, loader_ns=2_000_000)
    split = step_split(profile)
    first = split.filter(pl.col("rank") == 0)
    assert set(first["computing_ns"]) == {BUSY_NS}
    assert set(first["communication_not_overlapped_ns"]) == {ALL_REDUCE_NS + 3_000_000}
    assert set(first["preparing_ns"]) == {2_000_000}
    late = split.filter(pl.col("rank") == 1)
    assert set(late["computing_ns"]) == {BUSY_NS + 3_000_000}
    parts = split.select(
        pl.col("computing_ns") + pl.col("communication_not_overlapped_ns") + pl.col("free_ns")
    ).to_series()
    assert parts.to_list() == (split["end_ns"] - split["start_ns"]).to_list()


def test_op_types_add_up_to_total_compute_time() -> None:
    types = view("types", training(casts=3, steps=2))
    assert types["total_ms"].sum() == pytest.approx(2 * (BUSY_NS + 600_000) / 1e6)
    assert types["type"].to_list() == ["MatMulV2", "Add", "Cast"]
    assert types["cumulative_%"][-1] == 100


def test_longest_ops_come_first_up_to_the_requested_number() -> None:
    ops = view("ops", training(ai_cpu_ns=5_000_000), top=3)
    assert ops.height == 3
    assert set(ops["type"]) == {"TopK"}


def test_ops_are_grouped_by_dtype_shape_core_and_module() -> None:
    profile = training(steps=1)
    assert view("by-core", profile)["core"].to_list() == ["AI_CORE", "AI_VECTOR_CORE"]
    assert view("by-module", profile).height == 5
    assert view("by-dtype", profile)["input_types"].to_list() == ["FLOAT;FLOAT"] * 2
    assert view("by-shape", profile)["total_ms"].to_list() == [8.0, 2.0]


def test_ai_cpu_op_on_doubles_is_listed_with_its_reason() -> None:
    profile = training(ai_cpu_ns=250_000, steps=4)
    (row,) = view("aicpu", profile).iter_rows(named=True)
    assert (row["type"], row["count"], row["total_ms"]) == ("TopK", 4, 1.0)
    assert "double precision" in row["reason"]
    assert row["use_instead"] == "use FLOAT or FLOAT16"
    assert view("aicpu-time", profile)["compute_ms"].to_list() == [1.0]


def test_casts_have_a_share_of_compute_time() -> None:
    (row,) = view("casts", training(casts=5, steps=1)).iter_rows(named=True)
    assert row["count"] == 5
    assert row["share_%"] == pytest.approx(100 * 1 / 11, abs=0.01)


def test_late_rank_is_named_with_its_activity() -> None:
    profile = training(ranks=3, straggler=2, late_ns=4_000_000)
    rows = view("collectives", profile)
    assert set(rows["late_rank"]) == {2}
    assert set(rows["late_ms"]) == {4.0}
    assert set(rows["late_rank_did"]) == {"4.000 ms of it computing Pad"}
    waits = rows.filter(pl.col("rank") == 0)
    assert set(waits["wait_ms"]) == {4.0}
    assert set(waits["uncovered_ms"]) == {(4_000_000 + ALL_REDUCE_NS) / 1e6}
    slow = view("ranks", profile).filter(pl.col("verdict") == "slow")
    assert slow["rank"].to_list() == [2]
    assert slow["computes_longer_%"].to_list() == [40.0]


def test_without_a_split_waiting_is_the_excess_over_the_fastest_rank() -> None:
    told = training(ranks=2, straggler=0, late_ns=2_000_000)
    profile = Profile(source="x", producer="kineto", kind="npu", ops=told.ops)
    rows = view("collectives", profile)
    waits = rows.filter(pl.col("wait_ms") > 0)
    assert set(waits["rank"]) == {1}
    assert set(waits["wait_ms"]) == {2.0}


def test_free_time_is_attributed_to_the_loader_and_the_blocking_call() -> None:
    profile = training(loader_ns=2_000_000, item_ns=500_000, steps=5)
    rows = {row["cause"]: row for row in view("host", profile).iter_rows(named=True)}
    assert rows["waiting for data"]["free_ms"] == 10.0
    # That of the last step is after its last op, at the end of the profile.
    assert rows["aten::item"]["free_ms"] == 2.0
    assert rows["none of these, or no call recorded"]["free_ms"] == 0


def test_slow_loader_is_a_stall_and_a_fast_one_is_not() -> None:
    assert view("data", training(loader_ns=2_000_000))["verdict"].to_list() == ["stall"]
    assert view("data", training(loader_ns=100_000))["verdict"].to_list() == ["ok"]


@pytest.mark.parametrize("source", ["Data Aug Bound", "Preparing", "queue"])
def test_other_stacks_report_stalls_in_their_own_tables(source: str) -> None:
    told = training()
    steps = told.steps.with_columns(pl.lit(4_000_000).alias("data_ns"))
    if source == "Preparing":
        steps = told.steps.with_columns(pl.lit(4_000_000).alias("preparing_ns"))
    queue = pl.DataFrame({"node_name": ["q"] * 4, "queue_size": [0, 0, 3, 0]})
    profile = Profile(
        source="x",
        producer="msprof",
        kind="npu",
        ops=told.ops,
        steps=told.steps if source == "queue" else steps,
        statistics={"aicpu_mi": queue} if source == "queue" else {},
    )
    (verdict,) = view("data", profile)["verdict"]
    assert verdict == ("possible stall" if source == "Preparing" else "stall")


def test_clock_drop_costs_the_extra_op_time() -> None:
    profile = training(clock_drop_step=3, steps=5)
    (row,) = view("frequency", profile).iter_rows(named=True)
    assert (row["full_mhz"], row["lowest_mhz"]) == (1600.0, 800.0)
    assert row["low_ms"] == 2 * 2 * BUSY_NS / 1e6
    assert row["cost_ms"] == 2 * BUSY_NS / 1e6


def test_first_slow_step_is_warm_up_and_a_later_one_an_outlier() -> None:
    rows = view("variability", training(steps=6, warm_up_ns=40_000_000))
    assert rows["verdict"].to_list() == ["warm-up", "", "", "", "", ""]
    drop = view("variability", training(steps=8, clock_drop_step=7))
    assert drop["verdict"].to_list() == [""] * 7 + ["outlier"]
    assert drop["p50_ms"][0] == BUSY_NS / 1e6


def test_noise_shows_as_time_above_the_median() -> None:
    quiet = view("op-variability", training())["above_median_ms"].sum()
    noisy = view("op-variability", training(noise_ns=200_000))["above_median_ms"].sum()
    assert quiet == 0
    assert noisy > 0


def test_ops_leaving_cores_unused_are_ranked_by_cost() -> None:
    told = training(steps=1)
    blocks = pl.when(pl.col("type") == "Add").then(10).otherwise(20).alias("block_num")
    profile = Profile(source="x", producer="msprof", kind="npu", ops=told.ops.with_columns(blocks))
    (row,) = view("cores", profile).filter(pl.col("type") == "Add").iter_rows(named=True)
    assert (row["cores"], row["use_%"]) == (40, 25.0)
    assert row["idle_ms"] == 1.5


def test_recurring_chains_are_fusion_candidates() -> None:
    shape = {"input_shapes": "8,8", "output_shapes": "8,8", "core": "AI_VECTOR_CORE"}
    rows = [
        {"rank": 0, "stream": "1", "type": kind, "start_ns": 20 * index, "duration_ns": 10, **shape}
        for index, kind in enumerate(["Mul", "Add", "Sqrt", "MatMul"] * 3)
    ]
    profile = Profile(source="x", producer="msprof", kind="npu", ops=frame(rows, OPS_SCHEMA))
    (row,) = view("fusion", profile).iter_rows(named=True)
    assert (row["sequence"], row["length"], row["times"]) == ("Mul > Add > Sqrt", 3, 3)


def test_fused_ops_are_listed_with_the_ops_they_replace() -> None:
    table = pl.DataFrame({"fusion_op": ["a"], "original_ops": ["conv;bn;relu"]})
    profile = Profile(
        source="x",
        producer="msprof",
        kind="npu",
        ops=empty(OPS_SCHEMA),
        statistics={"fusion_op": table},
    )
    assert view("fused", profile)["replaces"].to_list() == [3]


def test_memory_peak_names_its_holders() -> None:
    mib = 1 << 20
    held = pl.DataFrame(
        {
            "name": ["conv", "relu", "gone"],
            "size_bytes": [6 * mib, 2 * mib, 9 * mib],
            "allocation_time_ns": [10, 20, 1],
            "release_time_ns": [None, 40, 2],
        }
    )
    late = held.with_columns(
        pl.when(pl.col("name") == "gone").then(5 * mib).otherwise("size_bytes").alias("size_bytes")
    )
    record = pl.DataFrame(
        {
            "component": ["PTA", "PTA"],
            "total_allocated_bytes": [mib, 8 * mib],
            "total_reserved_bytes": [10 * mib, 10 * mib],
        }
    )
    profile = Profile(
        source="x",
        producer="torch_npu",
        kind="npu",
        ops=empty(OPS_SCHEMA),
        statistics={"operator_memory": late, "memory_record": record},
    )
    assert view("memory-by-op", profile)["name"].to_list() == ["conv", "relu"]
    (row,) = view("memory", profile).iter_rows(named=True)
    assert (row["peak_allocated_mib"], row["largest_gap_mib"], row["gap_at_peak_mib"]) == (8, 9, 2)


OPS = st.lists(st.tuples(st.integers(0, 500), st.integers(0, 90)), min_size=1, max_size=20)


@given(OPS, st.lists(st.integers(0, 600), max_size=3))
@settings(max_examples=100)
def test_critical_path_fills_the_steps_without_gaps(
    ops: list[tuple[int, int]], cuts: list[int]
) -> None:
    rows = [
        {"rank": 0, "name": "n", "type": "t", "start_ns": start, "duration_ns": size}
        for start, size in ops
    ]
    profile = Profile(source="x", producer="x", kind="npu", ops=frame(rows, OPS_SCHEMA))
    for begin, end in step_windows(profile).select("begin_ns", "end_ns").iter_rows():
        edges = sorted({begin, *(cut for cut in cuts if begin < cut < end), end})
        steps = pl.DataFrame({"begin_ns": edges[:-1], "end_ns": edges[1:]})
        pieces = paths(profile, 0, steps)
        starts, ends = pieces["start_ns"].to_list(), pieces["end_ns"].to_list()
        assert (starts[0], ends[-1]) == (begin, end)
        assert starts[1:] == ends[:-1]
        assert set(edges) <= {*starts, end}
        for what, start, stop in zip(pieces["what"], starts, ends, strict=True):
            assert start < stop
            if what == "t":
                assert any(s <= start and stop <= s + size for s, size in ops)
            else:
                assert not any(size and start < s + size <= stop for s, size in ops)


def test_critical_path_names_the_call_in_each_gap_of_each_step() -> None:
    us = 1000
    ops = [
        {"rank": 0, "type": "t", "start_ns": at * us, "duration_ns": us} for at in range(0, 60, 10)
    ]
    calls = [
        {"rank": 0, "layer": "op", "name": f"at {at}", "start_ns": at * us, "duration_ns": 10 * us}
        for at in range(0, 60, 10)
    ]
    told = Profile(
        source="x",
        producer="x",
        kind="npu",
        ops=frame(ops, OPS_SCHEMA),
        host=frame(calls, HOST_SCHEMA),
    )
    steps = pl.DataFrame({"begin_ns": [0, 30 * us], "end_ns": [30 * us, 60 * us]})
    waits = paths(told, 0, steps).filter(pl.col("place") == "host")
    assert waits["what"].to_list() == [f"at {at}" for at in range(0, 60, 10)]
    assert waits["start_ns"].to_list() == [(at + 1) * us for at in range(0, 60, 10)]


def test_critical_path_names_the_loader_and_the_ops() -> None:
    path = view("critical", training(loader_ns=2_000_000, steps=5))
    told = {row["what"]: row["path_ms"] for row in path.iter_rows(named=True)}
    assert told["MatMulV2"] == 40.0
    assert told["enumerate(DataLoader)#_Single.__next__"] == 10.0
    assert sum(told.values()) == 5 * (BUSY_NS + 2_000_000) / 1e6


def test_launching_ahead_fills_the_queue_and_launching_late_does_not() -> None:
    def ops(ahead: int) -> pl.DataFrame:
        launched = [EPOCH_NS + 100 * index - ahead for index in range(50)]
        rows = [
            {"rank": 0, "start_ns": EPOCH_NS + 100 * index, "duration_ns": 90, "launch_ns": at}
            for index, at in enumerate(launched)
        ]
        return frame(rows, OPS_SCHEMA)

    def row(ahead: int) -> dict[str, Any]:
        told = Profile(source="x", producer="x", kind="npu", ops=ops(ahead))
        return view("launches", told).row(0, named=True)

    assert row(1000)["queue_p50"] == 10
    assert row(1)["queue_empty_%"] == 100


@pytest.mark.parametrize("name", sorted(VIEWS))
def test_every_view_of_an_empty_profile_says_what_it_needs(name: str) -> None:
    nothing = Profile(source="x", producer="x", kind="npu", ops=empty(OPS_SCHEMA))
    with pytest.raises(Impossible, match=r"needs .+"):
        view(name, nothing)


@pytest.mark.parametrize("name", sorted(VIEWS))
def test_every_view_accepts_a_mostly_empty_profile(name: str) -> None:
    rows = [{"name": "a", "duration_ns": 5}, {"name": None, "duration_ns": None}]
    poor = Profile(source="x", producer="x", kind="npu", ops=frame(rows, OPS_SCHEMA))
    with suppress(Impossible):
        assert isinstance(view(name, poor), pl.DataFrame)


_OP = {"name": "a", "type": "MatMul", "core": "AI_CORE", "duration_ns": 100}
_CALL = {"rank": 0, "name": "x", "layer": "op", "start_ns": 1, "duration_ns": 4}
_TWO = (0, 1)
_LITTLE = {
    "ops without start times": ([_OP | {"rank": rank} for rank in _TWO], []),
    "ops without length": (
        [_OP | {"rank": rank, "start_ns": 5, "duration_ns": 0, "launch_ns": 1} for rank in _TWO],
        [],
    ),
    "starts and launches of different ops": ([_OP | {"start_ns": 5}, _OP | {"launch_ns": 1}], []),
    "steps alone": ([], [{"rank": rank, "step": 0, "start_ns": 1, "end_ns": 9} for rank in _TWO]),
}


@pytest.mark.parametrize("what", sorted(_LITTLE))
@pytest.mark.parametrize(
    ("name", "needs"),
    [
        ("ranks", "start times|two ranks"),
        ("host", "ops with start"),
        ("launches", "launch time of each op|times of launched ops"),
    ],
)
def test_insufficient_data_for_a_view_is_reported_without_a_crash(
    what: str, name: str, needs: str
) -> None:
    ops, steps = _LITTLE[what]
    told = Profile(
        source="x",
        producer="x",
        kind="npu",
        ops=frame(ops, OPS_SCHEMA),
        steps=frame(steps, STEPS_SCHEMA),
        host=frame([_CALL], HOST_SCHEMA),
    )
    possible = {
        ("launches", "ops without length"),
        ("host", "starts and launches of different ops"),
    }
    if (name, what) in possible:
        assert view(name, told).height
        return
    with pytest.raises(Impossible, match=needs):
        view(name, told)


def test_wrong_name_suggests_the_nearest() -> None:
    with pytest.raises(Exception, match="collectives"):
        find_view("colectives")
