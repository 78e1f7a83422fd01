"""Rankings of ops, of their types, and of groups with something in common."""

from typing import Any

import polars as pl
import pytest

from jumar.profiling.views.op_statistic import op_statistic
from jumar.profiling.views.top import grouped, ops_by_duration, types_by_total
from jumar.profiling.views.view import LEVEL_1, VIEWS, Impossible, Options
from tests.profiling.generated import profile_of

_US = 1000


def _op(kind: str | None, length: int | None, start: int = 0, **more: Any) -> dict[str, Any]:
    row = {"rank": 0, "step": 1, "name": f"{kind}_1", "type": kind, "core": "AI_CORE"}
    row |= {"start_ns": start, "duration_ns": length, "input_shapes": "8", "input_types": "BF16"}
    return row | {"module": "head"} | more


_OPS = [
    _op("Add", 100 * _US, 30),
    _op("Mul", 300 * _US, 10),
    _op("Add", 200 * _US, 20, core="AI_VECTOR_CORE"),
    _op("Add", 100 * _US, 5, rank=1),
    _op("Add", 100 * _US, 5, name="second"),
    _op("Sub", None, 0),
    _op("allReduce", 200 * _US, 40, core="COMMUNICATION"),
]


def test_single_ops_are_sorted_by_duration_then_start_rank_and_row() -> None:
    table = VIEWS["ops"].make(profile_of(_OPS), Options(top=0))
    assert table.columns == [
        *("rank", "step", "name", "type", "core", "duration_ms", "share_%", "cumulative_%"),
        *("input_shapes", "input_types", "module"),
    ]
    columns = ("rank", "name", "core", "duration_ms", "share_%", "cumulative_%")
    assert table.select(columns).rows() == [
        (0, "Mul_1", "AI_CORE", 0.3, 30.0, 30.0),
        (0, "Add_1", "AI_VECTOR_CORE", 0.2, 20.0, 50.0),
        (0, "allReduce_1", "COMMUNICATION", 0.2, 20.0, 70.0),
        (0, "second", "AI_CORE", 0.1, 10.0, 80.0),
        (1, "Add_1", "AI_CORE", 0.1, 10.0, 90.0),
        (0, "Add_1", "AI_CORE", 0.1, 10.0, 100.0),
        (0, "Sub_1", "AI_CORE", None, None, None),
    ]


@pytest.mark.parametrize("top", range(1, 9))
def test_truncated_ranking_is_a_prefix_of_the_whole(top: int) -> None:
    whole = ops_by_duration(profile_of(_OPS), Options(top=0))
    found = ops_by_duration(profile_of(_OPS), Options(top=top))
    assert found.rows() == whole.head(top).rows()


def test_shares_have_two_decimals_and_ops_without_time_have_none() -> None:
    found = ops_by_duration(profile_of([_op("A", 1), _op("A", 5)]), Options())
    assert found.select("share_%", "cumulative_%").rows() == [(83.33, 83.33), (16.67, 100.0)]
    none = ops_by_duration(profile_of([_op("A", 0)]), Options())
    assert none.select("share_%", "cumulative_%").rows() == [(0.0, 0.0)]
    one = ops_by_duration(profile_of([_op("A", 1)]), Options())
    assert one.select("share_%", "cumulative_%").rows() == [(100.0, 100.0)]
    with pytest.raises(Impossible) as told:
        ops_by_duration(profile_of([_op("A", None)]), Options())
    assert str(told.value) == "needs ops with durations (column duration_ns)"


def test_types_are_sorted_by_total_without_collectives() -> None:
    table = VIEWS["types"].make(profile_of(_OPS), Options())
    assert table.columns == [
        *("type", "core", "count", "total_ms", "min_ms", "max_ms", "average_ms"),
        *("share_%", "cumulative_%"),
    ]
    assert table.rows() == [
        ("Add", "AI_CORE", 3, 0.3, 0.1, 0.1, 0.1, 37.5, 37.5),
        ("Mul", "AI_CORE", 1, 0.3, 0.3, 0.3, 0.3, 37.5, 75.0),
        ("Add", "AI_VECTOR_CORE", 1, 0.2, 0.2, 0.2, 0.2, 25.0, 100.0),
    ]
    for lacks in ("type", "duration_ns"):
        with pytest.raises(Impossible) as told:
            types_by_total(profile_of([_op("A", 5, **{lacks: None})]), Options())
        assert str(told.value) == f"needs ops with types (column {lacks}); {LEVEL_1}"


def test_statistics_have_whole_nanoseconds_and_percent_of_compute_time() -> None:
    rows = [_op("A", 7), _op("A", 4), _op("B", 5), _op("B", 84), _op("C", None)]
    rows += [_op("C", 9, core=None, name="hcom_1"), _op("C", 900, core="COMMUNICATION")]
    assert op_statistic(profile_of(rows)).rows() == [
        ("B", "AI_CORE", 2, 89, 5, 44, 84, 89.0),
        ("A", "AI_CORE", 2, 11, 4, 5, 7, 11.0),
    ]
    equal = [_op(kind, 5, core=core) for kind in "BA" for core in ("MIX_AIV", "AI_CORE")]
    found = op_statistic(profile_of(equal)).select("type", "core").rows()
    assert found == [("A", "AI_CORE"), ("A", "MIX_AIV"), ("B", "AI_CORE"), ("B", "MIX_AIV")]
    assert op_statistic(profile_of([_op("A", 0)]))["ratio_percent"].to_list() == [0.0]
    assert op_statistic(profile_of([_op("A", 1)]))["ratio_percent"].to_list() == [100.0]


def test_ai_cpu_table_takes_precedence_over_ops() -> None:
    table = pl.DataFrame(
        {"node": ["b", "a", "b", "c"], "compute_time_ns": [1_000, 9_000, 2_000, 9_000]}
    )
    ops = [
        _op("TopK", 2 * _US, core="AI_CPU"),
        _op("TopK", 4 * _US, core="AI_CPU"),
        _op("TopK", 6 * _US, core="AI_CPU", input_types="DOUBLE"),
        _op("Sort", 8 * _US, core="AI_CPU"),
        _op("Add", 99 * _US),
    ]
    view = VIEWS["aicpu-time"]
    recorded = view.make(profile_of(ops, statistics={"aicpu": table}), Options())
    assert recorded.columns == ["node", "count", "compute_ms", "share_%", "cumulative_%"]
    assert recorded.rows() == [
        ("a", 1, 0.009, 42.86, 42.86),
        ("c", 1, 0.009, 42.86, 85.71),
        ("b", 2, 0.003, 14.29, 100.0),
    ]
    by_ops = [
        ("Sort", "BF16", 1, 0.008, 40.0, 40.0),
        ("TopK", "BF16", 2, 0.006, 30.0, 70.0),
        ("TopK", "DOUBLE", 1, 0.006, 30.0, 100.0),
    ]
    assert view.make(profile_of(ops), Options()).rows() == by_ops
    lacking = {"aicpu": table.drop("node")}
    assert view.make(profile_of(ops, statistics=lacking), Options()).rows() == by_ops
    with pytest.raises(Impossible) as told:
        view.make(profile_of([_op("A", 1, core=None)]), Options())
    assert str(told.value) == f"needs the core of each op, or an aicpu table; {LEVEL_1}"
    with pytest.raises(Impossible, match="needs a profile of an NPU, the only device with an AI"):
        view.make(profile_of([_op("A", 1, core="CUDA")], kind="cuda"), Options())


@pytest.mark.parametrize(
    ("by", "columns"),
    [
        ("core", ("core",)),
        ("shape", ("type", "input_shapes")),
        ("dtype", ("type", "input_types")),
        ("module", ("module",)),
    ],
)
def test_groups_are_sorted_by_total_then_key(by: str, columns: tuple[str, ...]) -> None:
    def group(first: str, second: str, *lengths: int) -> list[dict[str, Any]]:
        own = dict(zip(columns, (second,) if len(columns) == 1 else (first, second), strict=True))
        return [_op("A", length) | own for length in lengths]

    rows = group("X", "b", 10 * _US, 40 * _US) + group("W", "a", 50 * _US) + group("X", "c", 0)
    rows += group("X", "d", 100 * _US)
    table = VIEWS[f"by-{by}"].make(profile_of(rows), Options())
    assert table.columns == [
        *(*columns, "count", "total_ms", "average_ms", "share_%", "cumulative_%")
    ]
    place = len(columns) - 1
    assert [row[place:] for row in table.rows()] == [
        ("d", 1, 0.1, 0.1, 50.0, 50.0),
        ("a", 1, 0.05, 0.05, 25.0, 75.0),
        ("b", 2, 0.05, 0.025, 25.0, 100.0),
        ("c", 1, 0.0, 0.0, 0.0, 100.0),
    ]
    with pytest.raises(Impossible) as told:
        grouped(by, profile_of([_op("A", 5, **{columns[-1]: None})]), Options())
    how = "record with `jumar profile`, which records layers" if by == "module" else LEVEL_1
    assert str(told.value) == f"needs ops with their {by} (column {columns[-1]}); {how}"
